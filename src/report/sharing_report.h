// SPDX-License-Identifier: BSD-3-Clause
//
// What programs have in common, what becomes of it and what stays, as people and programs want to see it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "etstream/shared_weights.h"

namespace etstream {

/// A program as it was.
struct SharingProgram {
  std::string name;
  std::uint64_t size = 0;
};

/// On standard output, with what stays as sums by program and reason.
void print_sharing(const std::vector<SharingProgram>& before, const SharedWeightsPlan& plan);

/// All of it: {"size_before", "size_after", "programs", "shared", "kept", "renamed"}, and "weights" where
/// something is shared.
[[nodiscard]] nlohmann::ordered_json sharing_to_json(const std::vector<SharingProgram>& before,
                                                     const SharedWeightsPlan& plan);

}  // namespace etstream
