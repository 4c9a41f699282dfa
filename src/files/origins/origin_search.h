// SPDX-License-Identifier: BSD-3-Clause
//
// Finds the tensors of a checkpoint, and the steps, that give exactly the bytes of a payload.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/result.h"
#include "etstream/scalar_type.h"
#include "files/origins/weight_payloads.h"
#include "files/origins/weight_steps.h"

namespace etstream {

/// Tries steps on the tensors of a checkpoint, which outlives it, the usual ones first. Some bytes of each
/// result are kept, so that the time is in proportion to the number of tensors plus that of payloads; a
/// payload is compared in full with what has those bytes. Memory: 200 bytes for each tensor and way that was
/// tried, and that of reading.
class OriginSearch {
 public:
  /// `head_dims` are the numbers of rows that may make up a head.
  OriginSearch(const Checkpoint& checkpoint, std::vector<std::uint32_t> head_dims)
      : checkpoint_(checkpoint), head_dims_(std::move(head_dims)) {}

  /// Returns all that give the bytes of `payload` by steps of the first kind that has any; none if no kind
  /// has. Error: that of reading.
  [[nodiscard]] Result<std::vector<WeightSteps>> find(const WeightPayload& payload);

 private:
  /// The kinds of steps, in the order in which they are tried.
  enum class Kind : std::uint8_t { kInOrder, kPermuted, kRope };
  /// The elements that steps are to give.
  struct Wanted {
    Kind kind = Kind::kInOrder;
    ScalarType type = ScalarType::kFloat32;
    std::uint64_t count = 0;            // of elements; 0 for a part of the payload
    std::vector<std::uint64_t> groups;  // how many integers may share a scale
    bool is_quantized = false;
    bool is_of_nibbles = false;
    bool channels_are_outermost = true;
    std::uint64_t row = 0;  // of a part: how many elements it has a multiple of

    auto operator<=>(const Wanted&) const = default;
  };
  using Known = std::multimap<std::string, TensorSteps>;  // by some bytes of the result

  [[nodiscard]] static std::optional<Wanted> wanted(const WeightPayload& payload);
  [[nodiscard]] std::vector<std::vector<WeightStep>> ways(const CheckpointTensor& tensor,
                                                          const Wanted& wanted) const;
  Result<const Known*> known(const Wanted& wanted);
  Result<std::vector<WeightSteps>> find_whole(const WeightPayload& payload, const Wanted& wanted);
  Result<std::vector<WeightSteps>> find_joined(const WeightPayload& payload, Wanted wanted);

  const Checkpoint& checkpoint_;
  std::vector<std::uint32_t> head_dims_;
  std::map<Wanted, Known> known_;
};

}  // namespace etstream
