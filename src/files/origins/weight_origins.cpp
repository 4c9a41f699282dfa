// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/weight_origins.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "core/base/text.h"
#include "core/base/try.h"
#include "files/origins/explained_payloads.h"

namespace etstream {

WeightOrigins origins_of(const std::vector<ExplainedPayload>& payloads, const Checkpoint& checkpoint) {
  WeightOrigins out;
  std::vector<bool> is_used(checkpoint.tensors.size());
  for (const ExplainedPayload& each : payloads) {
    PayloadOrigin& origin = out.payloads.emplace_back();
    origin.label = each.payload.label;
    origin.name = each.payload.name;
    origin.data = each.payload.data;
    origin.file = each.payload.file;
    origin.offset = each.payload.offset;
    origin.constant = each.constant;
    origin.are_scales = each.payload.are_scales;
    if (each.payload.is_of_nibbles) {
      origin.type = text("{} of 4 bits", counted(2 * each.payload.data.size(), "integer"));
    } else if (each.payload.layout) {
      origin.type = describe(*each.payload.layout);
    }
    std::set<std::size_t> shown;
    for (const TensorSteps& part : one_way(each.pieces)) {
      const std::vector<std::size_t> tensors = tensors_in(part);
      shown.insert(tensors.begin(), tensors.end());
      TensorOrigin& tensor =
          origin.tensors.emplace_back(TensorOrigin{checkpoint.tensors[part.tensor].name, {}});
      for (const WeightStep& step : part.steps) tensor.steps.push_back(describe(step));
    }
    std::vector<std::size_t> others = each.equals;
    for (const WeightPiece& piece : each.pieces) {
      const std::vector<std::size_t> tensors = tensors_in(piece.steps);
      others.insert(others.end(), tensors.begin(), tensors.end());
    }
    for (const std::size_t tensor : others) {
      is_used[tensor] = true;
      if (shown.insert(tensor).second) origin.equals.push_back(checkpoint.tensors[tensor].name);
    }
    for (const std::size_t tensor : each.nearest) origin.nearest.push_back(checkpoint.tensors[tensor].name);
  }
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    if (!is_used[i]) out.unused.push_back(checkpoint.tensors[i].name);
  }
  return out;
}

KeyNames key_names_of(const WeightOrigins& origins) {
  KeyNames out;
  for (const PayloadOrigin& each : origins.payloads) {
    if (each.name.empty() || each.tensors.empty()) continue;
    std::string& names = out[each.name];
    if (!names.empty()) continue;
    for (const TensorOrigin& tensor : each.tensors) names += (names.empty() ? "" : ", ") + tensor.tensor;
    // Its own name says which of several tensors it is.
    if (each.tensors.front().tensor != each.name) {
      for (const std::string& other : each.equals) names += " or " + other;
    }
    if (each.are_scales) names += " (scales)";
  }
  return out;
}

bool WeightOrigins::are_explained() const noexcept {
  return std::ranges::all_of(payloads, &PayloadOrigin::is_explained);
}

Result<WeightOrigins> explain(const ProgramFile& program, const std::vector<const TensorDataFile*>& weights,
                              const Checkpoint& checkpoint) {
  return without_exceptions([&]() -> Result<WeightOrigins> {
    ETSTREAM_ASSIGN(const auto payloads, explain_payloads(program, weights, checkpoint));
    return origins_of(payloads, checkpoint);
  });
}

}  // namespace etstream
