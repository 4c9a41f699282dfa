// SPDX-License-Identifier: BSD-3-Clause
//
// Segmented bundles (BPS1): the content of a bundled program with the program, and large tensors, in segments
// behind the metadata. schema/segmented_bundle.md is the specification.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "etstream/bundled_program.h"
#include "etstream/layout.h"
#include "etstream/result.h"
#include "flatbuffer/schema.h"

namespace etstream {

/// Compiled in; the same object at every call.
[[nodiscard]] Result<const Schema*> segmented_bundle_schema();

/// How a BP08 file that packing does not give again was laid out: its bytes but the payloads, and where which
/// of its ranges was a payload.
struct OriginalLayout {
  struct Payload {
    std::uint64_t offset = 0;
    ByteSource source;  // the program, or a tensor's data
  };
  ByteSource metadata;
  std::vector<Payload> payloads;  // by offset
};

struct SegmentedBundleOptions {
  bool hash = true;
  std::uint32_t program_alignment = 32;  // of the program in a BP08 file of the same content
  // The BP08 file that the content was read from, where its layout is to be kept.
  const ByteSource* original = nullptr;
};

/// The plan of the file. Nothing is checked but what it takes to write it. Errors: kTooLarge for metadata
/// over 2^31 - 1 bytes or more than 2^32 - 1 segments.
[[nodiscard]] Result<Layout> plan_segmented_bundle(const BundledProgram& bundle,
                                                   const SegmentedBundleOptions& options);

}  // namespace etstream
