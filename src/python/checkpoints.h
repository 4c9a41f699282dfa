// SPDX-License-Identifier: BSD-3-Clause
//
// Weights: a checkpoint whose tensors are found by their names, and the files that are made of tensor data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "etstream/checkpoint.h"
#include "etstream/result.h"
#include "etstream/sink.h"
#include "etstream/tensor_data.h"

namespace etstream::python {

/// Weights, whose tensors do not change. A copy shares them.
class CheckpointByName : public Checkpoint {
 public:
  explicit CheckpointByName(Checkpoint checkpoint)
      : Checkpoint(std::move(checkpoint)), order_(tensors.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_, {},
                             [this](std::size_t i) -> std::string_view { return tensors[i].name; });
  }

  /// Returns the first tensor of that name; null if there is none.
  [[nodiscard]] const CheckpointTensor* find(std::string_view name) const {
    const auto name_at = [this](std::size_t i) -> std::string_view { return tensors[i].name; };
    const auto found = std::ranges::lower_bound(order_, name, {}, name_at);
    return found != order_.end() && name_at(*found) == name ? &tensors[*found] : nullptr;
  }

 private:
  std::vector<std::size_t> order_;  // of the tensors, by name
};

/// Opens files so that reading them can be interrupted.
[[nodiscard]] CheckpointOptions checkpoint_options(bool partial);

/// Plans tensor data: one file or, with `most`, shards with data of at most so many bytes each.
[[nodiscard]] Result<std::vector<FilePlan>> plan_files(const TensorData& data,
                                                       std::optional<std::uint64_t> most);

}  // namespace etstream::python
