// SPDX-License-Identifier: BSD-3-Clause
//
// Reads a weight cache of XNNPACK (XPWC) in place. ExecuTorch's XNNPACK backend writes it on a device, under
// the path of its option packed_cache_path, and maps it later instead of packing the weights again.
//
//   const auto cache = etstream::XnnpackCacheFile::open(etstream::ByteSource::file("model.xpwc").value());
//   if (!cache) return cache.error();
//   for (const etstream::XnnpackCacheEntry& entry : cache->entries()) std::puts(entry.name.c_str());
//
// The format is that of backends/xnnpack/runtime/XNNWeightsCache.cpp in ExecuTorch 1.5.1.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/findings.h"
#include "etstream/result.h"

namespace etstream {

/// Weights that XNNPACK has packed.
struct XnnpackCacheEntry {
  std::string name;          // the key of the weights, and behind it that of the bias, if it is packed too
  std::uint64_t offset = 0;  // in the file, in bytes
  ByteSource data;           // it is not copied
  /// A number of the kernel that they are packed for. The runtime packs them again for a kernel with another.
  std::uint32_t seed = 0;
};

/// An open weight cache. Holds its index in memory: 100 bytes and a name for each entry. All functions may be
/// called from several threads at once.
class ETSTREAM_EXPORT XnnpackCacheFile {
 public:
  /// Reads the index as ExecuTorch does, and checks that weights lie in front of it. Errors: kCorrupt for
  /// what ExecuTorch does not load, naming file, offset, expected and found; kUnsupported for another
  /// version; kTooLarge for an index over 16 MiB; kIo.
  [[nodiscard]] static Result<XnnpackCacheFile> open(ByteSource file);

  /// Returns the source that was opened.
  [[nodiscard]] const ByteSource& file() const noexcept { return file_; }
  /// Returns the version of the format, the only one that is read.
  [[nodiscard]] static constexpr std::uint32_t version() noexcept { return 2; }
  /// Returns the entries in the order of the index. Of several with one name, the runtime takes the last.
  [[nodiscard]] const std::vector<XnnpackCacheEntry>& entries() const noexcept { return entries_; }
  /// Returns where the index begins in the file, in bytes.
  [[nodiscard]] std::uint64_t index_offset() const noexcept { return index_offset_; }
  /// Returns how many bytes in front of the index no entry refers to: padding up to pages, and the weights
  /// and indexes that later ones have replaced. The runtime never removes these.
  [[nodiscard]] std::uint64_t dead_bytes() const;

  /// Checks what open() does not: that all entries are there, and are for ranges of their own that kernels
  /// can read. Reads no weights. Adds the problems to `findings`.
  void verify(Findings& findings) const;

 private:
  XnnpackCacheFile(ByteSource file, std::uint64_t index_offset)
      : file_(std::move(file)), index_offset_(index_offset) {}

  ByteSource file_;
  std::uint64_t index_offset_;
  std::uint64_t index_end_ = 0;  // where the last entry that was read ends
  std::uint32_t count_ = 0;      // of the entries, as the footer has it
  std::vector<XnnpackCacheEntry> entries_;
  std::vector<std::uint64_t> positions_;  // of the entries in the file, in bytes
};

}  // namespace etstream
