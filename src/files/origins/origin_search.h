// SPDX-License-Identifier: BSD-3-Clause
//
// Finds the tensors of a checkpoint, and the steps, that give exactly the bytes of a payload.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/file_budget.h"
#include "etstream/result.h"
#include "etstream/tensor.h"
#include "files/origins/weight_payloads.h"
#include "formats/recipe/weight_steps.h"
#include "formats/tensor/batch_norm.h"

namespace etstream {

/// Returns what messages call a checkpoint: its first file, or `in_memory` if it has none.
[[nodiscard]] std::string name_of(const Checkpoint& checkpoint, std::string_view in_memory);

/// The tensors of pieces that give a payload joined, and are too many to be kept.
struct TooManyPieces {
  std::set<std::size_t> tensors;
  bool may_be_others = false;  // as some were not compared
};

/// Tries steps on the tensors of a checkpoint, which outlives it. Some bytes of each result are kept, so that
/// the time is in proportion to the number of tensors plus that of payloads; a payload is compared in full
/// with what has those bytes. Memory: 16 bytes for each tensor and way that was tried, and that of reading.
class OriginSearch {
 public:
  /// `head_dims` are the numbers of rows that may make up a head.
  OriginSearch(const Checkpoint& checkpoint, std::vector<std::uint32_t> head_dims);

  /// Returns the pieces of all ways to the bytes of `payload`, and to those of its `scales` unless null: of
  /// tensors as they are, cast, quantized, in other orders, with batch norms, and joined. Errors: that of
  /// reading; kTooLarge for more ways than most_tries(), as a hostile file may need. If too many are joined,
  /// they are not among these, but in too_many().
  [[nodiscard]] Result<std::vector<WeightPiece>> find(const WeightPayload& payload,
                                                      const WeightPayload* scales = nullptr,
                                                      bool with_norms = true);
  [[nodiscard]] const TooManyPieces& too_many() const noexcept { return too_many_; }

  /// Returns the ways to float32 of so many channels that may be the bias of `weights`, whose ways these are:
  /// tensors as they are, cast, or with the batch norm of a way.
  [[nodiscard]] std::vector<TensorSteps> biases(const WeightPayload& weights,
                                                const std::vector<WeightPiece>& ways,
                                                std::uint64_t channels) const;

  /// Adds the steps to `out` if they give the bytes of `payload` from `at` on, and those of its `scales`
  /// unless null. Steps that a tensor does not allow give none. Returns how many bytes were compared and are
  /// the same. Error: that of reading.
  [[nodiscard]] Result<std::uint64_t> add_if_same(const WeightPayload& payload, const WeightPayload* scales,
                                                  std::uint64_t at, TensorSteps steps,
                                                  std::vector<WeightPiece>& out) const;

  /// Returns the scales of `piece`, which is of `integers`, if they are at their place in `scales`.
  [[nodiscard]] Result<std::optional<WeightPiece>> scales_in(const WeightPayload& scales,
                                                             const WeightPayload& integers,
                                                             const WeightPiece& piece) const;

  /// Counts a way that is tried. Error: kTooLarge after most_tries().
  [[nodiscard]] Result<void> count_try();
  [[nodiscard]] std::uint64_t most_tries() const noexcept;

  /// Finds the checkpoint's tensors.
  [[nodiscard]] const FindTensor& tensors() const noexcept { return tensors_; }

 private:
  using Steps = std::vector<WeightStep>;
  /// The elements that steps are to give.
  struct Wanted {
    ScalarType type = ScalarType::kFloat32;
    std::uint64_t count = 0;                  // of elements; 0 for a part of the payload
    std::vector<Quantization> quantizations;  // that may give them; empty for other elements than integers
    bool channels_are_outermost = true;       // of those that have scales
    std::uint64_t row = 0;                    // of a part: how many elements it has a multiple of
    std::vector<std::uint64_t> sizes = {};    // that are not 1; empty if they do not matter

    auto operator<=>(const Wanted&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  /// A way from a tensor.
  struct KnownWay {
    std::uint64_t probe = 0;  // a hash of some bytes of its result
    std::uint32_t tensor = 0;
    std::uint32_t way = 0;  // the place among its ways()
  };
  struct Known {
    std::vector<KnownWay> ways;       // in the order of probes
    std::set<std::uint64_t> lengths;  // of results, up to that of a probe

    [[nodiscard]] std::span<const KnownWay> with_probe(std::uint64_t bytes) const {
      const auto begin = std::ranges::lower_bound(ways, bytes, {}, &KnownWay::probe);
      return {begin, std::ranges::upper_bound(begin, ways.end(), bytes, {}, &KnownWay::probe)};
    }
  };
  /// A tensor with a batch norm.
  struct KnownNorm {
    float first = 0;  // the first element of the result
    std::uint32_t tensor = 0;
    std::uint32_t norm = 0;  // the place in norms_
    NormStep::Part part = NormStep::Part::kWeights;
    std::uint8_t axis = 0;
  };

  [[nodiscard]] static std::vector<Wanted> wanted(const WeightPayload& payload);
  [[nodiscard]] std::vector<Steps> orders(const std::vector<std::int32_t>& sizes, const Wanted& wanted,
                                          bool has_norm) const;
  [[nodiscard]] std::vector<Steps> ways(std::size_t tensor, const Wanted& wanted,
                                        const NormStep* norm = nullptr) const;
  Result<const Known*> known(const Wanted& wanted);
  Result<void> add_known_norms(std::uint32_t tensor, std::vector<KnownNorm>& out);
  Result<const std::vector<KnownNorm>*> known_norms(std::uint64_t count);
  Result<void> find_whole(const WeightPayload& payload, const WeightPayload* scales, const Wanted& wanted,
                          std::vector<WeightPiece>& out);
  Result<void> find_with_norm(const WeightPayload& payload, const WeightPayload* scales, const Wanted& wanted,
                              std::vector<WeightPiece>& out);
  Result<void> find_joined(const WeightPayload& payload, const WeightPayload* scales, Wanted wanted,
                           std::vector<WeightPiece>& out);

  const Checkpoint& checkpoint_;
  FindTensor tensors_;
  std::vector<std::uint32_t> head_dims_;
  std::vector<NormStep> norms_;         // the batch norms of the checkpoint
  std::vector<BatchNorm> first_norms_;  // with their first channels alone
  std::multimap<std::uint64_t, std::uint32_t> norms_of_channels_;
  std::multimap<std::size_t, std::uint32_t> norms_of_tensors_;  // by their weights and biases
  std::map<Wanted, Known> known_;
  std::map<std::uint64_t, std::vector<KnownNorm>> known_norms_;  // by number of elements; smaller first
  TooManyPieces too_many_;                                       // of the last payload
  std::uint64_t tries_ = 0;
  FileBudget budget_;  // for comparing payloads with several tensors
};

}  // namespace etstream
