// SPDX-License-Identifier: BSD-3-Clause
//
// Programs that get their weights from one file: opened, checked and planned, with the container that they
// may go into.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/file_plan.h"
#include "etstream/result.h"
#include "etstream/shared_weights.h"

namespace etstream {

struct SharingInput {
  std::string name;  // of the payload in a container, and what reports call it
  ByteSource program;
};

struct SharingOptions {
  std::uint64_t least_size = kDefaultLeastShared;
  bool into_container = false;  // also plan a fat container of the programs as they become
};

struct SharingPlan {
  SharedWeightsPlan files;
  std::optional<FilePlan> container;
};

/// Errors: those of ProgramFile::open() and of plan(SharedWeights), plan(FatContainer); kCorrupt for a
/// program that verify() finds an error in.
[[nodiscard]] Result<SharingPlan> plan_sharing(const std::vector<SharingInput>& inputs,
                                               const SharingOptions& options);

}  // namespace etstream
