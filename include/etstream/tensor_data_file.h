// SPDX-License-Identifier: BSD-3-Clause
//
// Tensor data (.ptd, identifier FT01), read where it lies: the weights that programs ask for by name.
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
  std::string key;                     // of portable programs a tensor's fully qualified name
  std::optional<TensorLayout> layout;  // none where a backend knows what the data is
  std::uint32_t segment = 0;           // its index
  std::uint64_t offset = 0;            // in the file, in bytes
  ByteSource data;                     // which stays where it is
};

/// An open tensor data file. Holds at most 512 KiB of it in memory, whatever its size. All functions may be
/// called from several threads at once. Errors: kCorrupt, naming file, offset, expected and found; kIo.
class ETSTREAM_EXPORT TensorDataFile {
 public:
  /// Reads the header and all metadata, and checks its structure: every table, vector and string, and the
  /// zeros between them. Memory while it does: 16 bytes an object.
  [[nodiscard]] static Result<TensorDataFile> open(ByteSource file);

  TensorDataFile(TensorDataFile&&) noexcept;
  TensorDataFile& operator=(TensorDataFile&&) noexcept;
  ~TensorDataFile();

  [[nodiscard]] const ByteSource& file() const noexcept;
  /// The bytes that are the flatbuffer, from the start of the file on, header included.
  [[nodiscard]] std::uint64_t flatbuffer_size() const noexcept;
  /// Where the header says that segments begin and how many bytes they are.
  [[nodiscard]] std::uint64_t segment_base_offset() const noexcept;
  [[nodiscard]] std::uint64_t segment_data_size() const noexcept;

  [[nodiscard]] Result<std::uint32_t> version() const;
  /// In file order.
  [[nodiscard]] Result<std::vector<NamedTensorData>> entries() const;
  /// By index; the use of each is its first key and that tensor's layout, "'bias': float32 [10]", and how
  /// many more keys it has.
  [[nodiscard]] Result<std::vector<SegmentInfo>> segments() const;

  /// Checks what open() does not: what ExecuTorch 1.5.1 checks when it loads the file and asks for data, and
  /// that each key is there once, that data is as long as its layout says, that segments are apart from each
  /// other and aligned, with zeros between them. What is wrong is added to `findings`; what can't be followed
  /// ends the check. Error: kIo, kOutOfMemory.
  [[nodiscard]] Result<void> verify(Findings& findings) const;

 private:
  struct ETSTREAM_HIDDEN Impl;
  explicit TensorDataFile(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace etstream
