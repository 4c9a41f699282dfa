// SPDX-License-Identifier: BSD-3-Clause
#include "bpte/segmented_bundle_directory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "base/checked.h"
#include "base/content_hash.h"
#include "base/text.h"
#include "base/try.h"

namespace etstream {
namespace {

using Directory = SegmentedBundleDirectory;

constexpr std::uint32_t kHashedFlag = 1;

/// As it lies in the file, in front of the entries.
struct DirectoryHeader {
  static constexpr std::array<char, 4> kMagic = {'B', 'P', 'S', 'd'};
  static constexpr std::uint32_t kVersion = 1;

  std::array<char, 4> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t segments = 0;
  std::uint32_t parts = 0;
  std::uint32_t flags = 0;
  std::array<std::uint32_t, 3> reserved{};
  ContentHash metadata{};
  ContentHash own{};  // of the directory, with zeros here
};
static_assert(sizeof(DirectoryHeader) == Directory::kHeaderSize);

template <class T>
void append_bytes(std::vector<std::byte>& out, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

ContentHash hash_of(std::span<const std::byte> bytes) {
  ContentHasher hasher;
  hasher.update(bytes);
  return hasher.hash();
}

/// "FILE: offset N: segmented bundle: expected..., found...".
template <class... Arguments>
Error wrong(ErrorCode code, const ByteSource& file, std::uint64_t offset, Template<Arguments...> words,
            const Arguments&... arguments) {
  return unexpected(code, {file.name(), offset, "segmented bundle"}, words, arguments...);
}

Result<void> check_segment_entries(const ByteSource& file, const SegmentedBundleHeader& header,
                                   const Directory& directory) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < directory.segments.size(); ++i) {
    const Directory::Segment& segment = directory.segments[i];
    const std::uint64_t place = header.directory_offset + Directory::kHeaderSize + sizeof(segment) * i;
    if (segment.codec != 0) {
      return wrong(ErrorCode::kUnsupported, file, place + 24, "codec 0, which stores, found {}",
                   segment.codec);
    }
    if (segment.reserved != 0 || segment.reserved_too != decltype(segment.reserved_too){}) {
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
  }
  return {};
}

Result<void> check_part_entries(const ByteSource& file, std::uint64_t place, const Directory& directory) {
  std::uint32_t segment = 0;
  std::uint64_t end = 0;  // of the part before, in its segment
  for (const Directory::Part& part : directory.parts) {
    if (part.segment > segment) end = 0;
    if (part.segment >= directory.segments.size() || part.segment < segment || part.offset < end ||
        part.reserved != 0 ||
        !range_fits(part.offset, part.size, directory.segments[part.segment].logical_size)) {
      return wrong(ErrorCode::kCorrupt, file, place,
                   "parts in order and apart, inside their segments, found {} bytes at {} of segment {}",
                   part.size, part.offset, part.segment);
    }
    segment = part.segment;
    end = part.offset + part.size;
    place += sizeof(part);
  }
  return {};
}

}  // namespace

std::vector<std::byte> to_bytes(const SegmentedBundleHeader& header) {
  std::vector<std::byte> out(SegmentedBundleHeader::kSize);
  write_extended_header(header.extended, out);
  std::memcpy(out.data() + 32, &header.directory_offset, sizeof(header.directory_offset));
  std::memcpy(out.data() + 40, &header.directory_size, sizeof(header.directory_size));
  return out;
}

std::vector<std::byte> to_bytes(const Directory& directory) {
  DirectoryHeader header;
  header.segments = static_cast<std::uint32_t>(directory.segments.size());
  header.parts = static_cast<std::uint32_t>(directory.parts.size());
  header.flags = directory.hashed ? kHashedFlag : 0;
  header.metadata = directory.metadata;
  std::vector<std::byte> out;
  out.reserve(directory.size());
  append_bytes(out, std::span<const DirectoryHeader>(&header, 1));
  append_bytes(out, std::span(directory.segments));
  append_bytes(out, std::span(directory.parts));
  header.own = hash_of(out);
  std::memcpy(out.data(), &header, sizeof(header));
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
  std::array<std::uint64_t, 4> own{};  // behind the extended header
  ETSTREAM_TRY(file.read_at(kPosition + ExtendedHeader::kSize, std::as_writable_bytes(std::span(own))));
  header.directory_offset = own[0];
  header.directory_size = own[1];
  if (own[2] != 0 || own[3] != 0) {
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
  DirectoryHeader head;
  ETSTREAM_TRY(file.read_at(at, std::as_writable_bytes(std::span(&head, 1))));
  if (head.magic != DirectoryHeader::kMagic) {
    return wrong(ErrorCode::kCorrupt, file, at, "the directory's magic BPSd, found none");
  }
  if (head.version != DirectoryHeader::kVersion) {
    return wrong(ErrorCode::kUnsupported, file, at + 4, "directory version {}, found {}",
                 DirectoryHeader::kVersion, head.version);
  }
  const std::uint64_t parts_at = Directory::kHeaderSize + sizeof(Directory::Segment) * head.segments;
  const std::uint64_t size = parts_at + sizeof(Directory::Part) * head.parts;
  if (size != header.directory_size) {
    return wrong(ErrorCode::kCorrupt, file, at + 8,
                 "a directory of {} bytes, found {} segments and {} parts, which take {}",
                 header.directory_size, head.segments, head.parts, size);
  }
  if (head.flags > kHashedFlag || head.reserved != decltype(head.reserved){}) {
    return wrong(ErrorCode::kCorrupt, file, at + 16, "zeros, which are reserved, found others");
  }
  Directory out{head.flags == kHashedFlag, head.metadata, std::vector<Directory::Segment>(head.segments),
                std::vector<Directory::Part>(head.parts)};
  ETSTREAM_TRY(file.read_at(at + Directory::kHeaderSize, std::as_writable_bytes(std::span(out.segments))));
  ETSTREAM_TRY(file.read_at(at + parts_at, std::as_writable_bytes(std::span(out.parts))));
  if (!std::equal(head.own.begin(), head.own.end(), to_bytes(out).begin() + offsetof(DirectoryHeader, own))) {
    return wrong(ErrorCode::kCorrupt, file, at, "a directory with the hash that it names, found another");
  }
  ETSTREAM_TRY(check_segment_entries(file, header, out));
  ETSTREAM_TRY(check_part_entries(file, at + parts_at, out));
  const bool has_hash =
      out.metadata != ContentHash{} || !out.parts.empty() ||
      std::any_of(out.segments.begin(), out.segments.end(),
                  [](const Directory::Segment& segment) { return segment.hash != ContentHash{}; });
  if (!out.hashed && has_hash) {
    return wrong(ErrorCode::kCorrupt, file, at + 16, "no hashes and no parts, as the flags say, found some");
  }
  return out;
}

}  // namespace etstream
