// SPDX-License-Identifier: BSD-3-Clause
#include "bpte/segmented_bundle_directory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>

#include "base/checked.h"
#include "base/content_hash.h"
#include "base/text.h"
#include "base/try.h"

namespace etstream {
namespace {

using Directory = SegmentedBundleDirectory;

constexpr std::string_view kDirectoryMagic = "BPSd";
constexpr std::uint32_t kDirectoryVersion = 1;
constexpr std::uint32_t kHashedFlag = 1;
constexpr std::size_t kHashPosition = 48;  // of the directory's own hash

template <class T>
void put(std::span<std::byte> out, std::size_t offset, const T& value) {
  std::memcpy(out.data() + offset, &value, sizeof(value));
}

template <class T>
T take(std::span<const std::byte> bytes, std::size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

ContentHash hash_of(std::span<const std::byte> bytes) {
  ContentHasher hasher;
  hasher.update(bytes);
  return hasher.hash();
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

/// "FILE: offset N: segmented bundle: expected..., found...".
template <class... Arguments>
Error wrong(ErrorCode code, const ByteSource& file, std::uint64_t offset, Template<Arguments...> words,
            const Arguments&... arguments) {
  return unexpected(code, {file.name(), offset, "segmented bundle"}, words, arguments...);
}

}  // namespace

std::vector<std::byte> to_bytes(const SegmentedBundleHeader& header) {
  std::vector<std::byte> out(SegmentedBundleHeader::kSize);
  write_extended_header(header.extended, out);
  put(out, 32, header.directory_offset);
  put(out, 40, header.directory_size);
  return out;
}

std::vector<std::byte> to_bytes(const Directory& directory) {
  std::vector<std::byte> out(directory.size());
  std::memcpy(out.data(), kDirectoryMagic.data(), kDirectoryMagic.size());
  put(out, 4, kDirectoryVersion);
  put(out, 8, static_cast<std::uint32_t>(directory.segments.size()));
  put(out, 12, static_cast<std::uint32_t>(directory.parts.size()));
  put(out, 16, directory.hashed ? kHashedFlag : 0U);
  put(out, 32, directory.metadata);
  std::span<std::byte> rest = std::span(out).subspan(Directory::kHeaderSize);
  for (const Directory::Segment& segment : directory.segments) {
    put(rest, 0, segment.offset);
    put(rest, 8, segment.stored_size);
    put(rest, 16, segment.logical_size);
    put(rest, 24, segment.codec);
    put(rest, 32, segment.hash);
    rest = rest.subspan(Directory::kSegmentSize);
  }
  for (const Directory::Part& part : directory.parts) {
    put(rest, 0, part.segment);
    put(rest, 8, part.offset);
    put(rest, 16, part.size);
    put(rest, 24, part.hash);
    rest = rest.subspan(Directory::kPartSize);
  }
  put(out, kHashPosition, hash_of(out));
  return out;
}

Result<SegmentedBundleHeader> read_segmented_bundle_header(const ByteSource& file) {
  constexpr std::uint64_t kPosition = ExtendedHeader::kPosition;
  SegmentedBundleHeader header;
  ETSTREAM_ASSIGN(header.extended, read_extended_header(file, file.name()));
  if (header.extended.length < SegmentedBundleHeader::kSize) {
    return wrong(ErrorCode::kCorrupt, file, kPosition + 4,
                 "an extended header of at least {} bytes, found {}", SegmentedBundleHeader::kSize,
                 header.extended.length);
  }
  std::array<std::byte, SegmentedBundleHeader::kSize> bytes{};
  ETSTREAM_TRY(file.read_at(kPosition, bytes));
  header.directory_offset = take<std::uint64_t>(bytes, 32);
  header.directory_size = take<std::uint64_t>(bytes, 40);
  if (!all_zero(std::span(bytes).subspan(48))) {
    return wrong(ErrorCode::kCorrupt, file, kPosition + 48, "zeros, which are reserved, found others");
  }
  const auto end = checked_add(header.directory_offset, header.directory_size);
  if (!end || *end != file.size() || header.directory_size < Directory::kHeaderSize ||
      header.directory_offset % Directory::kAlignment != 0 ||
      header.directory_offset < header.extended.program_size) {
    return wrong(ErrorCode::kCorrupt, file, kPosition + 32,
                 "a directory behind the metadata that ends the file's {} bytes, found {} bytes from {} on",
                 file.size(), header.directory_size, header.directory_offset);
  }
  const ExtendedHeader& extended = header.extended;
  const auto segments_end = checked_add(extended.segment_base_offset, extended.segment_data_size);
  if (!segments_end || *segments_end > header.directory_offset ||
      extended.segment_base_offset < extended.program_size) {
    return wrong(ErrorCode::kCorrupt, file, kPosition + 16,
                 "segments between metadata and directory, found {} bytes from {} on",
                 extended.segment_data_size, extended.segment_base_offset);
  }
  return header;
}

Result<Directory> read_segmented_bundle_directory(const ByteSource& file,
                                                  const SegmentedBundleHeader& header) {
  const std::uint64_t at = header.directory_offset;
  std::array<std::byte, Directory::kHeaderSize> head{};
  ETSTREAM_TRY(file.read_at(at, head));
  if (std::string_view(reinterpret_cast<const char*>(head.data()), kDirectoryMagic.size()) !=
      kDirectoryMagic) {
    return wrong(ErrorCode::kCorrupt, file, at, "the directory's magic {}, found none", kDirectoryMagic);
  }
  if (const auto version = take<std::uint32_t>(head, 4); version != kDirectoryVersion) {
    return wrong(ErrorCode::kUnsupported, file, at + 4, "directory version {}, found {}", kDirectoryVersion,
                 version);
  }
  const std::uint64_t segments = take<std::uint32_t>(head, 8);
  const std::uint64_t parts = take<std::uint32_t>(head, 12);
  const auto flags = take<std::uint32_t>(head, 16);
  const std::uint64_t size =
      Directory::kHeaderSize + Directory::kSegmentSize * segments + Directory::kPartSize * parts;
  if (size != header.directory_size) {
    return wrong(ErrorCode::kCorrupt, file, at + 8,
                 "a directory of {} bytes, found {} segments and {} parts, which take {}",
                 header.directory_size, segments, parts, size);
  }
  if (flags > kHashedFlag || !all_zero(std::span(head).subspan(20, 12))) {
    return wrong(ErrorCode::kCorrupt, file, at + 16, "zeros, which are reserved, found others");
  }
  std::vector<std::byte> bytes(size);
  ETSTREAM_TRY(file.read_at(at, bytes));
  const auto told = take<ContentHash>(bytes, kHashPosition);
  put(std::span(bytes), kHashPosition, ContentHash{});
  if (hash_of(bytes) != told) {
    return wrong(ErrorCode::kCorrupt, file, at, "a directory with the hash that it names, found another");
  }
  Directory out;
  out.hashed = (flags & kHashedFlag) != 0;
  out.metadata = take<ContentHash>(bytes, 32);
  std::span<const std::byte> rest = std::span<const std::byte>(bytes).subspan(Directory::kHeaderSize);
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < segments; ++i, rest = rest.subspan(Directory::kSegmentSize)) {
    const std::uint64_t place = at + Directory::kHeaderSize + Directory::kSegmentSize * i;
    Directory::Segment segment;
    segment.offset = take<std::uint64_t>(rest, 0);
    segment.stored_size = take<std::uint64_t>(rest, 8);
    segment.logical_size = take<std::uint64_t>(rest, 16);
    segment.codec = take<std::uint32_t>(rest, 24);
    segment.hash = take<ContentHash>(rest, 32);
    if (segment.codec != 0) {
      return wrong(ErrorCode::kUnsupported, file, place + 24, "codec 0, which stores, found {}",
                   segment.codec);
    }
    if (!all_zero(rest.subspan(28, 4)) || !all_zero(rest.subspan(48, 16))) {
      return wrong(ErrorCode::kCorrupt, file, place + 28, "zeros, which are reserved, found others");
    }
    if (segment.offset < end ||
        !range_fits(segment.offset, segment.stored_size, header.extended.segment_data_size) ||
        segment.stored_size != segment.logical_size) {
      return wrong(ErrorCode::kCorrupt, file, place,
                   "segment {} from offset {} on inside the {} bytes of segments, stored as it is, "
                   "found {} bytes at {} for {}",
                   i, end, header.extended.segment_data_size, segment.stored_size, segment.offset,
                   segment.logical_size);
    }
    end = segment.offset + segment.stored_size;
    out.segments.push_back(segment);
  }
  std::uint64_t part_end = 0;
  for (std::uint64_t i = 0; i < parts; ++i, rest = rest.subspan(Directory::kPartSize)) {
    Directory::Part part;
    part.segment = take<std::uint32_t>(rest, 0);
    part.offset = take<std::uint64_t>(rest, 8);
    part.size = take<std::uint64_t>(rest, 16);
    part.hash = take<ContentHash>(rest, 24);
    if (out.parts.empty() || part.segment > out.parts.back().segment) part_end = 0;
    const bool in_order = out.parts.empty() || part.segment >= out.parts.back().segment;
    if (part.segment >= segments || !in_order || part.offset < part_end || !all_zero(rest.subspan(4, 4)) ||
        !range_fits(part.offset, part.size, out.segments[part.segment].logical_size)) {
      return wrong(
          ErrorCode::kCorrupt, file,
          at + Directory::kHeaderSize + Directory::kSegmentSize * segments + Directory::kPartSize * i,
          "parts in order and apart, inside their segments, found {} bytes at {} of segment {}", part.size,
          part.offset, part.segment);
    }
    part_end = part.offset + part.size;
    out.parts.push_back(part);
  }
  const bool has_hash =
      out.metadata != ContentHash{} || parts != 0 ||
      std::any_of(out.segments.begin(), out.segments.end(),
                  [](const Directory::Segment& segment) { return segment.hash != ContentHash{}; });
  if (!out.hashed && has_hash) {
    return wrong(ErrorCode::kCorrupt, file, at + 16, "no hashes and no parts, as the flags say, found some");
  }
  return out;
}

}  // namespace etstream
