// SPDX-License-Identifier: BSD-3-Clause
//
// What a segmented bundle has around its metadata, as BundledProgramFile reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bpte/bundle_fields.h"
#include "bpte/segmented_bundle.h"
#include "bpte/segmented_bundle_directory.h"
#include "etstream/byte_source.h"
#include "etstream/findings.h"
#include "etstream/result.h"
#include "flatbuffer/table_reader.h"

namespace etstream {

class SegmentedBundleFile {
 public:
  /// Reads header and directory. Errors: those of segmented_bundle_directory.h.
  [[nodiscard]] static Result<SegmentedBundleFile> open(ByteSource file);

  /// The bytes of the metadata, of which only the size was checked.
  [[nodiscard]] ByteSource metadata() const { return file_.slice(0, header_.extended.program_size).value(); }
  /// Reads from the metadata what it says of the segments. Error: kCorrupt where the metadata's segments are
  /// not those of the directory, in number, size and alignment.
  [[nodiscard]] Result<void> match(const TableReader& root);

  [[nodiscard]] UsedRange header_range() const noexcept { return header_.extended.range(); }
  [[nodiscard]] const SegmentedBundleDirectory& directory() const noexcept { return directory_; }
  [[nodiscard]] ByteSource program() const { return segment(program_segment_); }
  [[nodiscard]] std::uint32_t program_segment() const noexcept { return program_segment_; }
  /// The bytes of segment `number`, which is below directory().segments.size().
  [[nodiscard]] ByteSource segment(std::uint32_t number) const;
  /// Of the program in a BP08 file of the same content.
  [[nodiscard]] std::uint32_t program_alignment() const noexcept { return program_alignment_; }
  /// Of the BP08 file that it was converted from, where that was kept.
  [[nodiscard]] const std::optional<OriginalFile>& original_file() const noexcept { return original_file_; }
  /// The segment that holds a tensor's data, if one does. Error: kCorrupt for one that is not there.
  [[nodiscard]] Result<std::optional<std::uint32_t>> data_segment(const TableReader& tensor) const;

  /// Reads all of the file: adds what is not zero in the padding, and what has another hash than the
  /// directory says. `names` are what the segments are called.
  [[nodiscard]] Result<void> verify(const std::vector<std::string>& names, Findings& findings) const;

 private:
  Result<void> read_original_file(const TableReader& root);

  SegmentedBundleFile(ByteSource file, const SegmentedBundleHeader& header,
                      SegmentedBundleDirectory directory, const Schema& schema)
      : file_(std::move(file)), header_(header), directory_(std::move(directory)), fields_{schema} {}

  ByteSource file_;
  SegmentedBundleHeader header_;
  SegmentedBundleDirectory directory_;
  bpte::SegmentedBundleFields fields_;
  std::uint32_t program_segment_ = 0;
  std::uint32_t program_alignment_ = 0;
  std::optional<OriginalFile> original_file_;
};

}  // namespace etstream
