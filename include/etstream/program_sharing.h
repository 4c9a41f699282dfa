// SPDX-License-Identifier: BSD-3-Clause
//
// Plans programs that share weights with the container that they may go into, as `etstream share` does.
//
//   std::vector<etstream::SharingInput> inputs;
//   for (const std::string name : {"xnnpack", "vulkan"}) {
//     auto program = etstream::ByteSource::file(name + ".pte");
//     if (!program) return program.error();
//     inputs.push_back({name, *std::move(program)});
//   }
//   const auto planned = etstream::plan_sharing(inputs, {.into_container = true});
//   if (!planned) return planned.error();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/file_plan.h"
#include "etstream/result.h"
#include "etstream/shared_weights.h"

namespace etstream {

/// A program that gets its weights from a file that others share.
struct SharingInput {
  std::string name;  // of the payload in a container, and what reports call it
  ByteSource program;
};

/// Options of plan_sharing().
struct SharingOptions {
  std::uint64_t least_size = kDefaultLeastShared;  // in bytes, of weights that are shared
  bool into_container = false;                     // also plan a fat container of the programs as they become
  std::uint32_t container_alignment = 1;           // of its payloads
};

/// Plans of the files and, if it is requested, of the container.
struct SharingPlan {
  SharedWeightsPlan files;
  std::optional<FilePlan> container;
};

/// Opens, checks and plans programs that share weights. Errors: those of ProgramFile::open(), of
/// plan(SharedWeights) and plan(FatContainer); kCorrupt for a program that verify() finds an error in.
[[nodiscard]] ETSTREAM_EXPORT Result<SharingPlan> plan_sharing(const std::vector<SharingInput>& inputs,
                                                               const SharingOptions& options);

}  // namespace etstream
