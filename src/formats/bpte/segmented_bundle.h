// SPDX-License-Identifier: BSD-3-Clause
//
// Segmented bundles (BPS1): the content of a bundled program with the program, and large tensors, in segments
// behind the metadata. schema/segmented_bundle.md is the specification.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "etstream/bundled_program.h"
#include "etstream/file_plan.h"
#include "etstream/result.h"
#include "flatbuffer/schema.h"

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

}  // namespace etstream
