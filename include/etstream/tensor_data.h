// SPDX-License-Identifier: BSD-3-Clause
//
// Tensor data (.ptd, identifier FT01): the weights of programs in a separate file. To describe one for
// writing:
//
//   etstream::TensorData weights;
//   weights.buffers.push_back({etstream::ByteSource::zeros(24)});
//   weights.entries.push_back(
//       {"linear.weight", 0, etstream::TensorLayout{etstream::ScalarType::kFloat32, {2, 3}, {0, 1}}});
//   const auto plan = etstream::plan(weights);
//   if (!plan) return plan.error();
//
// Reads tensor data (.ptd, identifier FT01) in place: the weights that programs ask for by name.
//
//   auto weights = etstream::TensorDataFile::open(etstream::ByteSource::file("model.ptd").value());
//   if (!weights) return weights.error();
//   for (const auto& entry : weights->entries().value()) {
//     std::printf("%s: %zu bytes\n", entry.key.c_str(), static_cast<std::size_t>(entry.data.size()));
//   }
//
// Tensor data in several files (shards) that a program is loaded with together: NAME-00001-of-00003.ptd.
//
//   const auto shards = etstream::split(etstream::TensorData(), std::uint64_t{1} << 30);
//   if (!shards) return shards.error();
//   const auto count = static_cast<std::uint32_t>(shards->size());
//   for (std::uint32_t i = 1; i <= count; ++i) std::puts(etstream::shard_path("w.ptd", i, count).c_str());
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/file_kind.h"
#include "etstream/result.h"
#include "etstream/sink.h"
#include "etstream/tensor.h"

namespace etstream {

/// Returns the segment alignment of the .ptd files that a release of ExecuTorch writes, in bytes.
[[nodiscard]] constexpr std::uint32_t default_segment_alignment(ExecutorchRelease release) {
  return release == ExecutorchRelease::k1_0 ? 16 : 128;
}

/// A description of tensor data, for planning.
struct TensorData {
  /// Data that becomes a segment.
  struct Buffer {
    ByteSource data;
    std::uint32_t alignment = 1;  // its own minimum, a power of two up to 2^30
  };
  /// A key, and the data that it stands for.
  struct Entry {
    std::string key;
    std::uint32_t buffer = 0;  // an index in `buffers`; several entries may share one
    /// The layout of a tensor that a program asks for by name; none for data that a backend asks for.
    std::optional<TensorLayout> layout = std::nullopt;
  };

  std::vector<Buffer> buffers;  // each in a segment, in the order in which entries first refer to them
  std::vector<Entry> entries;
  /// The alignment of each segment, a power of two up to 2^30. The default is ExecuTorch's; that of its
  /// release 1.0 is 16, the only difference in its files.
  std::uint32_t segment_alignment = default_segment_alignment(kLatestRelease);
  /// Skips the check that layouts fit their data, as ExecuTorch does: its runtime refuses those that don't.
  bool unchecked = false;
};

/// Plans the file, byte for byte as ExecuTorch serializes it. Errors: kInvalidArgument for a repeated key, an
/// invalid buffer index, an invalid alignment, or, unless `unchecked`, a layout that does not have its data's
/// size or has an invalid dim_order; kTooLarge for a flatbuffer over 2^31 - 1 bytes.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan(const TensorData& data);

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

/// Splits `data` into shards with at most `most` bytes of data each, not counting tables and padding. The
/// shards are those of ExecuTorch (externalize_pte_data in exir/_serialize/_named_data_store.py): sorted by
/// key, with all keys of the same bytes together, and the same for the same content. Drops buffers that no
/// entry has. Returns at least one shard. Errors: kInvalidArgument for a `most` of 0, an invalid buffer
/// index, and data over `most` bytes, as no data is cut.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<TensorData>> split(const TensorData& data,
                                                                    std::uint64_t most);

/// Returns the path of shard `number`, from 1 on: "out/w-00001-of-00003.ptd" for "out/w.ptd". Adds the
/// extension .ptd if `path` does not have it.
[[nodiscard]] ETSTREAM_EXPORT std::string shard_path(const std::string& path, std::uint32_t number,
                                                     std::uint32_t count);

}  // namespace etstream
