// SPDX-License-Identifier: BSD-3-Clause
//
// Finds the tensors of a checkpoint, and the steps, that give exactly the bytes of a payload.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/file_budget.h"
#include "etstream/checkpoint_tensor.h"
#include "etstream/result.h"
#include "etstream/scalar_type.h"
#include "files/origins/weight_payloads.h"
#include "files/origins/weight_steps.h"

namespace etstream {

/// Returns what messages call a checkpoint: its first file, or `in_memory` if it has none.
[[nodiscard]] std::string name_of(const Checkpoint& checkpoint, std::string_view in_memory);

/// Tries steps on the tensors of a checkpoint, which outlives it, the usual ones first. Some bytes of each
/// result are kept, so that the time is in proportion to the number of tensors plus that of payloads; a
/// payload is compared in full with what has those bytes. Memory: 200 bytes for each tensor and way that was
/// tried, and that of reading.
class OriginSearch {
 public:
  /// `head_dims` are the numbers of rows that may make up a head.
  OriginSearch(const Checkpoint& checkpoint, std::vector<std::uint32_t> head_dims);

  /// Returns all that give the bytes of `payload`, and those of its `scales` unless null, by steps of the
  /// first kind that has any; none if no kind has. Errors: that of reading; kTooLarge after 4 million ways,
  /// as a hostile file may need.
  [[nodiscard]] Result<std::vector<WeightSteps>> find(const WeightPayload& payload,
                                                      const WeightPayload* scales = nullptr);

  /// Returns the ways to float32 of so many channels that may be a bias: tensors as they are, cast, or with a
  /// batch norm.
  [[nodiscard]] std::vector<TensorSteps> biases(std::uint64_t channels) const;

  /// Returns whether `steps` quantize, and give these scales.
  [[nodiscard]] Result<bool> gives_scales(const WeightSteps& steps, const WeightPayload& scales) const;

  /// Counts a way that is tried. Error: kTooLarge after 4 million.
  [[nodiscard]] Result<void> count_try();

  /// Finds the checkpoint's tensors.
  [[nodiscard]] const FindTensor& tensors() const noexcept { return tensors_; }

 private:
  using Steps = std::vector<WeightStep>;
  /// The kinds of steps, in the order in which they are tried.
  enum class Kind : std::uint8_t { kInOrder, kPermuted, kRope, kWithNorm };
  /// The elements that steps are to give.
  struct Wanted {
    Kind kind = Kind::kInOrder;
    ScalarType type = ScalarType::kFloat32;
    std::uint64_t count = 0;                  // of elements; 0 for a part of the payload
    std::vector<Quantization> quantizations;  // that may give them; empty for other elements than integers
    bool channels_are_outermost = true;       // of those that have scales
    std::uint64_t row = 0;                    // of a part: how many elements it has a multiple of
    std::vector<std::uint64_t> sizes = {};    // that are not 1; empty if they do not matter

    auto operator<=>(const Wanted&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  using Known = std::multimap<std::string, TensorSteps>;  // by some bytes of the result

  [[nodiscard]] static std::vector<Wanted> wanted(const WeightPayload& payload);
  [[nodiscard]] std::vector<Steps> orders(const std::vector<std::int32_t>& sizes, const Wanted& wanted) const;
  [[nodiscard]] std::vector<Steps> norm_steps(std::size_t tensor) const;
  [[nodiscard]] std::vector<Steps> ways(std::size_t tensor, const Wanted& wanted) const;
  Result<const Known*> known(const Wanted& wanted);
  Result<bool> gives(const WeightSteps& steps, const ByteSource& data, const WeightPayload* scales) const;
  Result<std::vector<WeightSteps>> find_whole(const WeightPayload& payload, const WeightPayload* scales,
                                              const Wanted& wanted);
  Result<std::vector<WeightSteps>> find_joined(const WeightPayload& payload, const WeightPayload* scales,
                                               Wanted wanted);

  const Checkpoint& checkpoint_;
  FindTensor tensors_;
  std::vector<std::uint32_t> head_dims_;
  std::vector<NormStep> norms_;  // the batch norms of the checkpoint
  std::map<Wanted, Known> known_;
  std::uint64_t tries_ = 0;
  FileBudget budget_;  // for comparing payloads with several tensors
};

}  // namespace etstream
