// SPDX-License-Identifier: BSD-3-Clause
//
// A fat container (NFAT, version 1): named payloads, such as one program for each backend. To describe one
// for writing:
//
//   etstream::FatContainer container;
//   container.payloads.push_back({"portable", etstream::ByteSource::zeros(24)});
//   const auto plan = etstream::plan(container);
//   if (!plan) return plan.error();
//
// Reads a fat container (NFAT) in place.
//
//   const auto fat = etstream::FatContainerFile::open(etstream::ByteSource::file("model.fat").value());
//   if (!fat) return fat.error();
//   for (const etstream::FatPayload& payload : fat->payloads()) std::puts(payload.name.c_str());
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/file_kind.h"
#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream {

/// A description of a fat container, for planning.
struct FatContainer {
  /// A file in the container, or data that only a backend can read.
  struct Payload {
    std::string name;  // 1 to 32 printable ASCII characters
    ByteSource data;
  };

  /// The payloads in file order, which is the order in which a reader prefers them.
  std::vector<Payload> payloads;
  /// The alignment of each payload in the file, a power of two up to 2^30. With 1, payloads follow each other
  /// without padding, as ExecuTorch packs them; with the page size, each can be mapped and cloned.
  std::uint32_t alignment = 1;
  /// Stores payloads with equal bytes once. To find them, payloads of equal size are read.
  bool share_equal = true;
};

/// Plans the file. The bytes are those that ExecuTorch's native backend packs (backends/native/fat_pte.py) if
/// the alignment is 1 and either payloads are distinct or share_equal is false. Errors: kInvalidArgument for
/// an invalid or repeated name, or an invalid alignment; kTooLarge over 65,536 payloads or 2^64 - 1 bytes;
/// with share_equal, read errors, and kTooLarge if payloads of equal size overlap so that each byte would be
/// read more than 4 times on average.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan(const FatContainer& container);

/// A payload of an open fat container.
struct FatPayload {
  std::string name;          // as in the file, up to its first zero byte
  std::uint64_t offset = 0;  // in the file, in bytes
  ByteSource data;           // it is not copied
};

/// An open fat container. Holds its table in memory: 48 bytes per payload in the file. All functions may be
/// called from several threads at once.
class ETSTREAM_EXPORT FatContainerFile {
 public:
  /// Reads the table and checks that payloads are inside the file, that no two overlap unless they are the
  /// same range, and that names are filled up with zeros. Errors: kCorrupt, naming file, offset, expected and
  /// found; kUnsupported for another version; kTooLarge over 65,536 payloads; kIo.
  [[nodiscard]] static Result<FatContainerFile> open(ByteSource file);

  /// Returns the source that was opened.
  [[nodiscard]] const ByteSource& file() const noexcept { return file_; }
  /// Returns the version of the format, the only one that there is.
  [[nodiscard]] static constexpr std::uint32_t version() noexcept { return 1; }
  /// Returns the payloads in the order of the table.
  [[nodiscard]] const std::vector<FatPayload>& payloads() const noexcept { return payloads_; }
  /// Returns the first payload of that name, or null.
  [[nodiscard]] const FatPayload* find(std::string_view name) const noexcept;

  /// Checks what open() does not: names, and that only zeros are between the payloads and after them. Does
  /// not read the payloads. Adds the problems to `findings`. Error: kIo.
  [[nodiscard]] Result<void> verify(Findings& findings) const;

 private:
  FatContainerFile(ByteSource file, std::vector<FatPayload> payloads)
      : file_(std::move(file)), payloads_(std::move(payloads)) {}

  ByteSource file_;
  std::vector<FatPayload> payloads_;
};

/// Returns the kind of file that the payload is, detected from its first bytes; nothing for data that only a
/// backend can read. Error: kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<std::optional<FileKind>> kind_of(const FatPayload& payload);

}  // namespace etstream
