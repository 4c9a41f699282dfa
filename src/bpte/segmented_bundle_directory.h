// SPDX-License-Identifier: BSD-3-Clause
//
// What lies around the metadata of a segmented bundle: the header in front and the directory at the end
// (schema/segmented_bundle.md has their byte tables).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "container/extended_header.h"
#include "etstream/byte_source.h"
#include "etstream/content_hash.h"
#include "etstream/file_plan.h"
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

  /// An entry as it lies in the file.
  struct Segment {
    std::uint64_t offset = 0;  // from the segment base offset
    std::uint64_t stored_size = 0;
    std::uint64_t logical_size = 0;
    std::uint32_t codec = 0;  // 0: stored as it is
    std::uint32_t reserved = 0;
    ContentHash hash{};  // of the logical bytes
    std::array<std::uint64_t, 2> reserved_too{};
  };
  /// A piece of a segment with a hash of its own, so that damage can be located; as it lies in the file.
  struct Part {
    std::uint32_t segment = 0;
    std::uint32_t reserved = 0;
    std::uint64_t offset = 0;  // in the segment
    std::uint64_t size = 0;
    ContentHash hash{};
  };

  bool hashed = false;
  ContentHash metadata{};  // of all before the end of the metadata
  std::vector<Segment> segments;
  std::vector<Part> parts;  // by segment and offset

  [[nodiscard]] std::uint64_t size() const noexcept {
    return kHeaderSize + sizeof(Segment) * segments.size() + sizeof(Part) * parts.size();
  }
};

/// Calls `visit(range, hash, segment, part)` with each range of the file that `directory` has a hash of, in
/// the order in which they begin: the metadata, then each segment and its parts. `segment` is the segment's
/// number, none of the metadata; `part` is null but for a part.
template <class Directory, class Visit>
void visit_hashes(Directory& directory, const ExtendedHeader& header, Visit visit) {
  using Part = SegmentedBundleDirectory::Part;
  constexpr const Part* kNoPart = nullptr;
  visit(Trailer::Range{0, header.program_size}, directory.metadata, std::optional<std::size_t>(), kNoPart);
  auto part = directory.parts.begin();
  for (std::size_t i = 0; i < directory.segments.size(); ++i) {
    auto& segment = directory.segments[i];
    const std::uint64_t begin = header.segment_base_offset + segment.offset;
    visit(Trailer::Range{begin, segment.stored_size}, segment.hash, std::optional(i), kNoPart);
    for (; part != directory.parts.end() && part->segment == i; ++part) {
      const Part* const found = &*part;
      visit(Trailer::Range{begin + part->offset, part->size}, part->hash, std::optional(i), found);
    }
  }
}

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
