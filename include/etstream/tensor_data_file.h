// SPDX-License-Identifier: BSD-3-Clause
//
// Reads tensor data (.ptd, identifier FT01) in place: the weights that programs ask for by name.
//
//   auto weights = etstream::TensorDataFile::open(etstream::ByteSource::file("model.ptd").value());
//   if (!weights) return weights.error();
//   for (const auto& entry : weights->entries().value()) {
//     std::printf("%s: %zu bytes\n", entry.key.c_str(), static_cast<std::size_t>(entry.data.size()));
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/findings.h"
#include "etstream/result.h"
#include "etstream/segment_info.h"
#include "etstream/tensor_layout.h"

namespace etstream {

/// Data under a name. Several names may share one segment.
struct NamedTensorData {
  std::string key;                     // for portable programs, a tensor's fully qualified name
  std::optional<TensorLayout> layout;  // none for data that only a backend can read
  std::uint32_t segment = 0;           // its index
  std::uint64_t offset = 0;            // in the file, in bytes
  ByteSource data;                     // it is not copied
  ByteSource key_place;                // the key's characters, in the file
};

/// An open tensor data file. Whatever its size, it holds at most 512 KiB of the file in memory. All functions
/// may be called from several threads at once. Errors: kCorrupt, naming file, offset, expected and found;
/// kIo.
class ETSTREAM_EXPORT TensorDataFile {
 public:
  /// Reads the header and all metadata, and checks its structure: every table, vector and string, and the
  /// zeros between them. Memory during the check: 16 bytes per object.
  [[nodiscard]] static Result<TensorDataFile> open(ByteSource file);

  TensorDataFile(TensorDataFile&&) noexcept;
  TensorDataFile& operator=(TensorDataFile&&) noexcept;
  ~TensorDataFile();

  /// Returns the source that was opened.
  [[nodiscard]] const ByteSource& file() const noexcept;
  /// Returns the size of the flatbuffer, which is at the start of the file and includes the header.
  [[nodiscard]] std::uint64_t flatbuffer_size() const noexcept;

  /// Returns the version of the schema.
  [[nodiscard]] Result<std::uint32_t> version() const;
  /// Reads the entries in file order.
  [[nodiscard]] Result<std::vector<NamedTensorData>> entries() const;
  /// Returns the segments by index. The `use` of each is its first key with that tensor's layout, "'bias':
  /// float32 [10]", and how many other keys it has.
  [[nodiscard]] Result<std::vector<SegmentInfo>> segments() const;

  /// Checks what open() does not: what ExecuTorch 1.5.1 checks when it loads the file and asks for data; that
  /// each key occurs once; that data has the size that its layout implies; that segments are disjoint and
  /// aligned, with zeros between them. Adds the problems to `findings`; a reference that can't be followed
  /// ends the check. Errors: kIo, kOutOfMemory.
  [[nodiscard]] Result<void> verify(Findings& findings) const;

 private:
  struct ETSTREAM_HIDDEN Impl;
  explicit TensorDataFile(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace etstream
