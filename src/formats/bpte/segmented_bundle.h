// SPDX-License-Identifier: BSD-3-Clause
//
// Segmented bundles (BPS1): the content of a bundled program with the program, and large tensors, in segments
// behind the metadata. A header is at the start, and a directory at the end. schema/segmented_bundle.md is
// the specification, with their byte tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "etstream/bundled_program.h"
#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/sink.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/table_reader.h"
#include "formats/segments/data_segments.h"
#include "segmented_bundle_fields_generated.h"

namespace etstream {

/// Returns the schema that is compiled in; the same object at every call.
[[nodiscard]] Result<const Schema*> segmented_bundle_schema();

/// The data that restores a BP08 file if packing its content gives other bytes: all bytes but the payloads,
/// and the ranges that were payloads.
struct OriginalFile {
  struct Payload {
    std::uint64_t offset = 0;
    ByteSource source;  // the program, or a tensor's data
  };
  ByteSource metadata;
  std::vector<Payload> payloads;  // by offset
};

/// An element of OriginalFile.payloads in the metadata, as it lies there.
struct OriginalPayload {
  std::uint64_t offset = 0;  // in the original file
  std::uint32_t segment = 0;
  std::uint32_t padding = 0;
};

struct SegmentedBundleOptions {
  bool hash = true;
  std::uint32_t program_alignment = 32;  // of the program in a BP08 file of the same content
  // The BP08 file that the content was read from, if its layout is to be kept.
  const ByteSource* original = nullptr;
};

/// Plans the file. Checks nothing except what writing needs. Errors: kTooLarge for metadata over 2^31 - 1
/// bytes or more than 2^32 - 1 segments.
[[nodiscard]] Result<FilePlan> plan_segmented_bundle(const BundledProgram& bundle,
                                                     const SegmentedBundleOptions& options);

/// The header at offset 8: ExecuTorch's extended header, with a length that includes ours behind it.
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
    std::uint64_t size = 0;
    std::uint64_t same_size = 0;
    std::uint64_t reserved = 0;
    ContentHash hash{};
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

/// Reads the header of `file` and checks its bounds: the directory ends the file, behind metadata and
/// segments. Errors: kCorrupt; kIo.
[[nodiscard]] Result<SegmentedBundleHeader> read_segmented_bundle_header(const ByteSource& file);

class SegmentedBundleFile {
 public:
  /// Reads the header and the directory, whose segments lie in order and apart. Memory: the directory's size,
  /// which is checked against the file's. Errors: kCorrupt; kUnsupported for an unknown version; kIo.
  [[nodiscard]] static Result<SegmentedBundleFile> open(ByteSource file);

  /// Returns the bytes of the metadata. Only their size was checked.
  [[nodiscard]] ByteSource metadata() const { return file_.slice(0, header_.extended.program_size).value(); }
  /// Reads what the metadata says about the segments. Error: kCorrupt if its segments differ from the
  /// directory's in number, size or alignment.
  [[nodiscard]] Result<void> match(const TableReader& root);

  [[nodiscard]] UsedRange header_range() const noexcept { return header_.extended.range(); }
  [[nodiscard]] const SegmentedBundleDirectory& directory() const noexcept { return directory_; }
  [[nodiscard]] ByteSource program() const { return segment(program_segment_); }
  [[nodiscard]] std::uint32_t program_segment() const noexcept { return program_segment_; }
  /// Returns the bytes of segment `number`, which is below directory().segments.size().
  [[nodiscard]] ByteSource segment(std::uint32_t number) const;
  /// Returns the program's alignment in a BP08 file of the same content.
  [[nodiscard]] std::uint32_t program_alignment() const noexcept { return program_alignment_; }
  [[nodiscard]] bool is_hashed() const noexcept { return directory_.hashed; }
  /// Returns the BP08 file that it was converted from, if its layout was kept.
  [[nodiscard]] const std::optional<OriginalFile>& original_file() const noexcept { return original_file_; }
  /// Returns the segment that holds a tensor's data, if one does. Error: kCorrupt for a segment that does not
  /// exist.
  [[nodiscard]] Result<std::optional<std::uint32_t>> data_segment(const TableReader& tensor) const;

  /// Reads all of the file. Adds bytes in the padding that are not zero, and ranges whose hash differs from
  /// the directory's. `names` are the names of the segments.
  [[nodiscard]] Result<void> verify(const std::vector<std::string>& names, Findings& findings) const;

 private:
  Result<void> read_original_file(const TableReader& root);

  SegmentedBundleFile(ByteSource file, const SegmentedBundleHeader& header,
                      SegmentedBundleDirectory directory, const Schema& schema)
      : file_(std::move(file)), header_(header), directory_(std::move(directory)), fields_(schema) {}

  ByteSource file_;
  SegmentedBundleHeader header_;
  SegmentedBundleDirectory directory_;
  segmented_bundle::Fields fields_;
  std::uint32_t program_segment_ = 0;
  std::uint32_t program_alignment_ = 0;
  std::optional<OriginalFile> original_file_;
};

}  // namespace etstream
