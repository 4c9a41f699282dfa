// SPDX-License-Identifier: BSD-3-Clause
//
// What lies around the metadata of a segmented bundle: the header in front and the directory at the end
// (schema/segmented_bundle.md has their byte tables).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "container/extended_header.h"
#include "etstream/byte_source.h"
#include "etstream/content_hash.h"
#include "etstream/result.h"

namespace etstream {

/// At offset 8: ExecuTorch's extended header, whose length says that ours follows it.
struct SegmentedBundleHeader {
  static constexpr std::uint32_t kSize = 64;

  ExtendedHeader extended;
  std::uint64_t directory_offset = 0;
  std::uint64_t directory_size = 0;
};

struct SegmentedBundleDirectory {
  static constexpr std::uint64_t kAlignment = 64;
  static constexpr std::uint64_t kHeaderSize = 64;
  static constexpr std::uint64_t kSegmentSize = 64;
  static constexpr std::uint64_t kPartSize = 40;

  struct Segment {
    std::uint64_t offset = 0;  // from the segment base offset
    std::uint64_t stored_size = 0;
    std::uint64_t logical_size = 0;
    std::uint32_t codec = 0;  // 0: stored as it is
    ContentHash hash{};       // of the logical bytes
  };
  /// A piece of a segment with a hash of its own, so that damage can be located.
  struct Part {
    std::uint32_t segment = 0;
    std::uint64_t offset = 0;  // in the segment
    std::uint64_t size = 0;
    ContentHash hash{};
  };

  bool hashed = false;
  ContentHash metadata{};  // of all before the end of the metadata
  std::vector<Segment> segments;
  std::vector<Part> parts;  // by segment and offset

  [[nodiscard]] std::uint64_t size() const noexcept {
    return kHeaderSize + kSegmentSize * segments.size() + kPartSize * parts.size();
  }
};

[[nodiscard]] std::vector<std::byte> to_bytes(const SegmentedBundleHeader& header);
/// With the directory's own hash.
[[nodiscard]] std::vector<std::byte> to_bytes(const SegmentedBundleDirectory& directory);

/// Of `file`, in bounds: the directory ends the file, segments lie between metadata and directory, in order
/// and apart. Memory: as the directory's size, which is checked against the file's. Errors: kCorrupt;
/// kUnsupported for a version or a codec that is not known; kIo.
[[nodiscard]] Result<SegmentedBundleHeader> read_segmented_bundle_header(const ByteSource& file);
[[nodiscard]] Result<SegmentedBundleDirectory> read_segmented_bundle_directory(
    const ByteSource& file, const SegmentedBundleHeader& header);

}  // namespace etstream
