// SPDX-License-Identifier: BSD-3-Clause
//
// The payloads of a program with the steps that give them.
#pragma once

#include <string>
#include <vector>

#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/reweight.h"
#include "etstream/tensor.h"
#include "etstream/tensor_data.h"
#include "files/origins/origin_search.h"
#include "files/origins/weight_payloads.h"
#include "formats/recipe/weight_steps.h"

namespace etstream {

struct ExplainedPayload {
  WeightPayload payload;
  std::vector<WeightPiece> pieces;   // of all ways to its bytes that may be meant; empty if there is none
  std::vector<std::size_t> equals;   // tensors that give them too, and are not meant, as its name says
  TooManyPieces too_many;            // that may be meant, too
  std::string constant;              // why no weights need to be behind it, or empty
  std::vector<std::size_t> nearest;  // tensors like it, if nothing explains it
  bool follows_nearest = false;      // as integers with scales that were searched for do

  [[nodiscard]] bool is_explained() const noexcept { return !pieces.empty() || !constant.empty(); }
};

/// Does what explain() does. Adds to `checkpoint` the tensors that no checkpoint has and payloads are: see
/// read_frequencies().
[[nodiscard]] Result<std::vector<ExplainedPayload>> explain_payloads(
    const ProgramFile& program, const std::vector<const TensorDataFile*>& weights, Checkpoint& checkpoint);

/// Returns them as users see them.
[[nodiscard]] WeightOrigins origins_of(const std::vector<ExplainedPayload>& payloads,
                                       const Checkpoint& checkpoint);

}  // namespace etstream
