// SPDX-License-Identifier: BSD-3-Clause
//
// What a BundledProgramFile is made of, for the files that implement it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bpte/bundle_fields.h"
#include "bpte/segmented_bundle_file.h"
#include "etstream/bundled_program_file.h"
#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/table_reader.h"

namespace etstream {

struct BundledProgramFile::Impl {
  Impl(ByteSource given, FlatbufferView metadata, std::optional<SegmentedBundleFile> around)
      : file(std::move(given)),
        view(std::move(metadata)),
        fields(view.schema()),
        segmented(std::move(around)) {}

  ByteSource file;
  FlatbufferView view;                           // of the metadata
  bpte::BundleFields fields;                     // of its schema
  std::optional<SegmentedBundleFile> segmented;  // none of BP08
  std::uint32_t version = 0;
  ByteSource program;
  std::uint64_t program_offset = 0;
  std::vector<Suite> suites;

  [[nodiscard]] const SegmentedBundleFile* segmented_file() const {
    return segmented ? &*segmented : nullptr;
  }
  Result<void> fill();
  [[nodiscard]] Result<TableReader> test_case(const Suite& suite, std::uint32_t index) const;
  /// What each segment of a segmented bundle holds: the program, or a tensor of a test case.
  [[nodiscard]] Result<std::vector<std::string>> segment_names() const;
  /// Adds a warning for what no builder of flatbuffers leaves in the metadata.
  [[nodiscard]] Result<void> add_flaws_of_layout(Findings& findings) const;
};

}  // namespace etstream
