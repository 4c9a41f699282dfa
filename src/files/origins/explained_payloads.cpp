// SPDX-License-Identifier: BSD-3-Clause
#include "files/origins/explained_payloads.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "core/layout/same_bytes.h"
#include "etstream/program_weights.h"
#include "etstream/reweight.h"
#include "files/origins/origin_search.h"
#include "files/origins/weight_free.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/tensor/converted_floats.h"

namespace etstream {
namespace {

constexpr std::size_t kMostNearest = 3;
constexpr std::size_t kMostDescribed = 100;  // payloads that get the tensors nearest to them

/// Returns the numbers of rows that may make up a head: that of config.json, or those of usual models.
Result<std::vector<std::uint32_t>> head_dims_of(const Checkpoint& checkpoint) {
  if (!checkpoint.files.empty()) {
    ETSTREAM_ASSIGN(const ModelConfig config, read_model_config(folder_of(checkpoint.files.front())));
    if (config.head_dim && *config.head_dim != 0 && *config.head_dim % 2 == 0) {
      return std::vector{*config.head_dim};
    }
  }
  return std::vector<std::uint32_t>{128, 64, 96, 80, 256, 32, 48, 112, 192, 16, 8};
}

/// Adds the frequencies that payloads have the numbers of.
Result<void> add_frequencies(const std::vector<WeightPayload>& payloads, Checkpoint& to) {
  ETSTREAM_ASSIGN(const auto known, read_frequencies(to));
  std::set<std::string> names;
  for (const WeightPayload& payload : payloads) {
    if (!payload.layout || payload.is_opaque || !is_floating_point(payload.layout->scalar_type)) continue;
    const ScalarType type = payload.layout->scalar_type;
    std::vector<CheckpointTensor> like;
    if (!known && type == ScalarType::kFloat32) {
      ETSTREAM_ASSIGN(like, frequencies_like(payload.data));
    }
    for (const CheckpointTensor& tensor : known ? *known : like) {
      ETSTREAM_ASSIGN(const ByteSource cast, convert_floats(tensor.data, ScalarType::kFloat32, type));
      if (cast.size() != payload.data.size()) continue;
      ETSTREAM_ASSIGN(const bool same, same_bytes(cast, payload.data));
      if (same && names.insert(tensor.name).second) to.tensors.push_back(tensor);
    }
  }
  return {};
}

class Explainer {
 public:
  Explainer(std::vector<WeightPayload> payloads, const Checkpoint& checkpoint,
            std::vector<std::uint32_t> head_dims)
      : checkpoint_(checkpoint), search_(checkpoint, std::move(head_dims)) {
    for (WeightPayload& payload : payloads) {
      ExplainedPayload& each = out_.emplace_back();
      each.payload = std::move(payload);
    }
  }

  Result<std::vector<ExplainedPayload>> run() {
    for (const ExplainedPayload& each : out_) {
      if (each.payload.scales) out_[*each.payload.scales].payload.are_scales = true;
    }
    for (ExplainedPayload& each : out_) {
      const WeightPayload& payload = each.payload;
      if (payload.are_scales || payload.is_opaque || payload.is_calibrated || is_bias(payload)) continue;
      const auto scales = payload.scales;
      ETSTREAM_ASSIGN(each.pieces, search_.find(payload, scales ? &out_[*scales].payload : nullptr));
      each.too_many = search_.too_many();
    }
    ETSTREAM_TRY(explain_scales());
    for (ExplainedPayload& each : out_) {
      if (is_bias(each.payload)) ETSTREAM_TRY(explain_bias(each));
    }
    for (ExplainedPayload& each : out_) {
      keep_ways(each.pieces, each.payload.data.size());
      const bool is_named = take_tensors_of_names(each);
      ETSTREAM_TRY(explain_without_weights(each, is_named));
    }
    ETSTREAM_TRY(find_nearest());
    return std::move(out_);
  }

 private:
  /// Returns whether the program has a payload as the bias of some weights alone.
  static bool is_bias(const WeightPayload& payload) {
    return !payload.bias_of.empty() && payload.bias_of.size() == payload.uses;
  }

  /// Explains a bias by what explains the weights of each of its uses: one behind a batch norm has the rest
  /// of that. Integers of 32 bits, and their scales, follow from the scales of the weights and that of the
  /// input, which stays as it was calibrated.
  Result<void> explain_bias(ExplainedPayload& bias) {
    if (!bias.payload.layout) return {};
    const ScalarType type = bias.payload.layout->scalar_type;
    bool may_have_no_norm = false;
    std::set<std::pair<std::size_t, float>> seen;
    for (const BiasUse& use : bias.payload.bias_of) {
      if (!seen.emplace(use.filter, use.input_scale.value_or(0)).second) continue;
      const ExplainedPayload& weights = out_[use.filter];
      const bool is_quantized = use.input_scale && type == ScalarType::kInt32;
      const auto scales = scales_of(one_way(weights.pieces), ScalarType::kFloat32);
      if (is_quantized && (weights.pieces.empty() || !scales)) continue;
      const std::uint64_t channels = bias.payload.data.size() / item_size(type);
      may_have_no_norm |= !is_quantized && (weights.pieces.empty() || has_way_without_norm(weights.pieces));
      for (TensorSteps& way : search_.biases(weights.payload, weights.pieces, channels)) {
        if (is_quantized) {
          way.steps.emplace_back(QuantizeBiasStep{*scales, *use.input_scale});
        } else if (norm_in(way) == nullptr) {
          continue;  // which is found below
        } else if (type != ScalarType::kFloat32) {
          way.steps.emplace_back(CastStep{type});
        }
        ETSTREAM_TRY(search_.count_try());
        ETSTREAM_TRY(search_.add_if_same(bias.payload, nullptr, 0, std::move(way), bias.pieces));
      }
    }
    if (may_have_no_norm) {
      ETSTREAM_ASSIGN(const auto found, search_.find(bias.payload, nullptr, false));
      bias.too_many = search_.too_many();
      bias.pieces.insert(bias.pieces.end(), found.begin(), found.end());
    }
    if (bias.pieces.empty() || !bias.payload.scales) return {};
    ExplainedPayload& own = out_[*bias.payload.scales];
    for (const WeightPiece& piece : bias.pieces) {
      TensorSteps steps = piece.steps;
      auto* const step = steps.steps.empty() ? nullptr : std::get_if<QuantizeBiasStep>(&steps.steps.back());
      if (step == nullptr) continue;
      step->are_scales = true;
      ETSTREAM_TRY(search_.add_if_same(own.payload, nullptr, 0, std::move(steps), own.pieces));
    }
    keep_ways(own.pieces, own.payload.data.size());
    if (own.pieces.empty()) bias.pieces.clear();
    return {};
  }

  static bool has_way_without_norm(const std::vector<WeightPiece>& pieces) {
    return std::ranges::any_of(pieces,
                               [](const WeightPiece& piece) { return norm_in(piece.steps) == nullptr; });
  }

  static bool is_quantized(const WeightPiece& piece) {
    return scales_of(piece, ScalarType::kFloat32).has_value();
  }

  /// Explains scales by what explains their integers. Integers without their scales are not explained.
  Result<void> explain_scales() {
    for (ExplainedPayload& each : out_) {
      if (std::ranges::none_of(each.pieces, is_quantized)) continue;
      if (each.payload.scales) {
        ETSTREAM_TRY(take_scales(each, out_[*each.payload.scales]));
      } else {
        ETSTREAM_TRY(find_scales(each));
      }
    }
    return {};
  }

  /// Adds to `scales` what of it the pieces of `integers` give. Returns these pieces.
  Result<std::vector<WeightPiece>> take_scales(const ExplainedPayload& integers, ExplainedPayload& scales) {
    std::vector<WeightPiece> with_scales;
    std::vector<WeightPiece> found;
    for (const WeightPiece& piece : integers.pieces) {
      ETSTREAM_ASSIGN(auto own, search_.scales_in(scales.payload, integers.payload, piece));
      if (!own) continue;
      found.push_back(*std::move(own));
      with_scales.push_back(piece);
    }
    keep_ways(found, scales.payload.data.size());
    scales.pieces.insert(scales.pieces.end(), found.begin(), found.end());
    return with_scales;
  }

  /// Looks for the scales of each way among the payloads of floating-point numbers, and drops ways that have
  /// none.
  Result<void> find_scales(ExplainedPayload& integers) {
    const auto is_whole = [&](const WeightPiece& piece) {
      return piece.size == integers.payload.data.size();
    };
    std::vector<WeightPiece> parts;
    std::vector<WeightSteps> ways;
    for (const WeightPiece& piece : integers.pieces) {
      if (is_whole(piece)) {
        ways.push_back({piece.steps});
      } else {
        parts.push_back(piece);
      }
    }
    if (!parts.empty()) ways.push_back(one_way(parts));
    std::set<std::size_t> places;
    for (const WeightSteps& way : ways) {
      for (const ScalarType type :
           {ScalarType::kFloat32, ScalarType::kBFloat16, ScalarType::kFloat16, ScalarType::kFloat64}) {
        const auto own = scales_of(way, type);
        if (!own) break;
        ETSTREAM_ASSIGN(const ByteSource scales, take_steps(search_.tensors(), *own));
        ETSTREAM_ASSIGN(const auto* const known, floats_of(type, scales.size()));
        if (known->empty()) continue;
        ETSTREAM_ASSIGN(const ContentHash hash, hash_of(scales));
        const auto [begin, end] = known->equal_range(hash);
        for (auto each = begin; each != end; ++each) places.insert(each->second);
      }
    }
    std::vector<WeightPiece> kept;
    std::ranges::copy_if(integers.pieces, std::back_inserter(kept), std::not_fn(is_quantized));
    for (const std::size_t place : places) {
      ETSTREAM_ASSIGN(const auto pieces, take_scales(integers, out_[place]));
      out_[place].payload.are_scales |= !pieces.empty();
      kept.insert(kept.end(), pieces.begin(), pieces.end());
    }
    integers.pieces = std::move(kept);
    keep_ways(integers.pieces, integers.payload.data.size());
    return {};
  }

  using ByHash = std::multimap<ContentHash, std::size_t>;

  /// Returns the payloads of that type and size.
  Result<const ByHash*> floats_of(ScalarType type, std::uint64_t size) {
    const auto [there, is_new] = floats_.try_emplace({type, size});
    for (std::size_t i = 0; i < out_.size() && is_new; ++i) {
      const WeightPayload& payload = out_[i].payload;
      if (!payload.layout || payload.layout->scalar_type != type || payload.data.size() != size) continue;
      ETSTREAM_ASSIGN(const ContentHash hash, hash_of(payload.data));
      there->second.emplace(hash, i);
    }
    return &there->second;
  }

  /// Takes the tensors that a payload has the names of, if all its names are those of tensors that give it:
  /// in their order, if they have its elements in that. Returns whether it did.
  bool take_tensors_of_names(ExplainedPayload& each) const {
    std::set<std::size_t> meant;
    std::set<std::string_view> found;
    const auto is_whole = [&](const WeightPiece& piece) { return piece.size == each.payload.data.size(); };
    for (const WeightPiece& piece : each.pieces) {
      const std::string& name = checkpoint_.tensors[piece.steps.tensor].name;
      if (!is_whole(piece) || !each.payload.names.contains(name)) continue;
      meant.insert(piece.steps.tensor);
      found.insert(name);
    }
    if (found.empty() || found.size() != each.payload.names.size()) return false;
    std::set<std::size_t> in_order;
    for (const WeightPiece& piece : each.pieces) {
      if (is_whole(piece) && is_in_order(piece)) in_order.insert(piece.steps.tensor);
    }
    std::set<std::size_t> others;
    std::erase_if(each.pieces, [&](const WeightPiece& piece) {
      const std::size_t tensor = piece.steps.tensor;
      const bool is_meant = is_whole(piece) && meant.contains(tensor);
      if (!meant.contains(tensor)) others.insert(tensor);
      return !is_meant || (in_order.contains(tensor) && !is_in_order(piece));
    });
    each.equals.assign(others.begin(), others.end());
    each.too_many = {};
    return true;
  }

  static bool is_in_order(const WeightPiece& piece) {
    return std::ranges::none_of(piece.steps.steps, [](const WeightStep& step) {
      return std::holds_alternative<PermuteStep>(step) || std::holds_alternative<InterleaveRopeStep>(step);
    });
  }

  /// Notes if no weights need to be behind a payload. Where a tensor has its bytes, that is noted for one
  /// number, zeros and ones alone.
  Result<void> explain_without_weights(ExplainedPayload& each, bool is_named) const {
    const WeightPayload& payload = each.payload;
    if (payload.is_calibrated) each.constant = "calibrated with data";
    if (!payload.layout || payload.is_opaque || payload.is_of_nibbles || payload.is_calibrated ||
        payload.are_scales) {
      return {};
    }
    if (!each.pieces.empty()) {
      ETSTREAM_ASSIGN(const bool may_be, may_be_no_weight(each.payload));
      if (!may_be || is_named) return {};
    }
    if (!each.payload.bias_of.empty() || each.payload.integers) {
      // Other numbers than zeros are weights, however few they are.
      const ByteSource& data = each.payload.data;
      ETSTREAM_ASSIGN(const bool are_zeros, same_bytes(data, ByteSource::zeros(data.size())));
      if (!are_zeros) return {};
    }
    ETSTREAM_ASSIGN(each.constant, describe_weight_free(each.payload.data, *each.payload.layout));
    return {};
  }

  /// Returns whether a payload is one number, or begins with 0 or 1 as masks and untrained weights do.
  static Result<bool> may_be_no_weight(const WeightPayload& payload) {
    const ScalarType type = payload.layout->scalar_type;
    if (!is_floating_point(type)) return false;
    if (payload.data.size() == item_size(type)) return true;
    ETSTREAM_ASSIGN(const ByteSource first, payload.data.slice(0, item_size(type)));
    ETSTREAM_ASSIGN(const ByteSource converted, convert_floats(first, type, ScalarType::kFloat32));
    float number = 0;
    ETSTREAM_TRY(converted.read_at(0, std::as_writable_bytes(std::span(&number, 1))));
    return number == 0 || number == 1;
  }

  static constexpr std::size_t kSamples = 16;
  using Samples = std::array<float, kSamples>;

  /// Returns some elements, or nothing if they are no floating-point numbers.
  static Result<std::optional<Samples>> samples_of(const ByteSource& data, ScalarType type) {
    std::optional<Samples> out;
    if (!is_floating_point(type)) return out;
    ETSTREAM_ASSIGN(const ByteSource floats, convert_floats(data, type, ScalarType::kFloat32));
    const std::uint64_t count = floats.size() / sizeof(float);
    if (count == 0) return out;
    out.emplace();
    for (std::size_t i = 0; i < kSamples; ++i) {
      const std::uint64_t at = count * i / kSamples * sizeof(float);
      ETSTREAM_TRY(floats.read_at(at, std::as_writable_bytes(std::span(&(*out)[i], 1))));
    }
    return out;
  }

  /// Returns some of the integers of a payload; `are_halves` if a byte holds two.
  static Result<Samples> integers_of(const WeightPayload& payload, bool are_halves) {
    Samples out{};
    const std::uint64_t count = payload.data.size() * (are_halves ? 2 : 1);
    for (std::size_t i = 0; i < kSamples; ++i) {
      const std::uint64_t at = count * i / kSamples;
      std::int8_t byte = 0;
      ETSTREAM_TRY(
          payload.data.read_at(are_halves ? at / 2 : at, std::as_writable_bytes(std::span(&byte, 1))));
      const bool is_high = (at % 2 == 1) == payload.is_of_nibbles;  // which embeddings have first
      const int half = (is_high ? byte >> 4 : byte) & 15;
      out[i] = static_cast<float>(are_halves ? half : byte);
    }
    return out;
  }

  /// Returns 1 less their correlation; the largest number where they can't be compared.
  static double unlikeness_of(const std::optional<Samples>& a, const std::optional<Samples>& b) {
    if (!a || !b) return std::numeric_limits<double>::max();
    const auto mean_of = [](const Samples& all) {
      return std::accumulate(all.begin(), all.end(), 0.0) / kSamples;
    };
    const double mean_a = mean_of(*a);
    const double mean_b = mean_of(*b);
    double product = 0;
    double square_a = 0;
    double square_b = 0;
    for (std::size_t i = 0; i < kSamples; ++i) {
      const double from_a = (*a)[i] - mean_a;
      const double from_b = (*b)[i] - mean_b;
      product += from_a * from_b;
      square_a += from_a * from_a;
      square_b += from_b * from_b;
    }
    const double out = 1 - product / std::sqrt(square_a * square_b);
    return std::isnan(out) ? std::numeric_limits<double>::max() : out;
  }

  /// Returns the sum of their differences; the largest number where they can't be compared.
  static double distance_of(const std::optional<Samples>& a, const std::optional<Samples>& b) {
    constexpr double kFar = std::numeric_limits<double>::max();
    if (!a || !b) return kFar;
    double sum = 0;
    for (std::size_t i = 0; i < kSamples; ++i) sum += std::abs(double{(*a)[i]} - double{(*b)[i]});
    return std::isnan(sum) ? kFar : sum;
  }

  /// Finds the tensors of as many elements, the nearest first by the elements at some places, for payloads
  /// that nothing explains. Reads each tensor once for all of them.
  Result<void> find_nearest() {
    struct Open {
      ExplainedPayload* payload = nullptr;
      std::uint64_t elements = 0;
      bool are_halves = false;  // a byte may hold two
      bool are_integers = false;
      std::optional<Samples> samples = {};
      std::vector<std::pair<double, std::size_t>> found = {};
    };
    std::vector<Open> open;
    std::size_t described = 0;
    for (ExplainedPayload& each : out_) {
      const WeightPayload& payload = each.payload;
      if (each.is_explained() || ++described > kMostDescribed || !payload.layout) continue;
      const ScalarType type = payload.layout->scalar_type;
      Open& one = open.emplace_back(Open{&each, payload.data.size() / item_size(type)});
      one.are_halves = payload.is_of_nibbles || type == ScalarType::kUInt8;
      one.are_integers = one.are_halves || type == ScalarType::kInt8;
      if (one.are_integers && one.elements != 0) {
        ETSTREAM_ASSIGN(one.samples, integers_of(payload, one.are_halves));
      } else {
        ETSTREAM_ASSIGN(one.samples, samples_of(payload.data, type));
      }
    }
    for (std::size_t i = 0; i < checkpoint_.tensors.size(); ++i) {
      const CheckpointTensor& tensor = checkpoint_.tensors[i];
      if (!tensor.layout) continue;
      const ScalarType type = tensor.layout->scalar_type;
      const std::uint64_t count = tensor.data.size() / item_size(type);
      std::optional<Samples> samples;
      for (Open& one : open) {
        if (count != one.elements && !(one.are_halves && count == 2 * one.elements)) continue;
        if (!samples) {
          ETSTREAM_ASSIGN(samples, samples_of(tensor.data, type));
        }
        const auto distance = one.are_integers ? unlikeness_of : distance_of;
        one.found.emplace_back(distance(one.samples, samples), i);
        std::ranges::sort(one.found);
        if (one.found.size() > kMostNearest) one.found.pop_back();
      }
    }
    for (const Open& one : open) {
      for (const auto& [distance, tensor] : one.found) one.payload->nearest.push_back(tensor);
      constexpr double kAlike = 0.1;  // which four bits and scales of groups leave
      one.payload->follows_nearest =
          one.are_integers && !one.found.empty() && one.found.front().first < kAlike;
    }
    return {};
  }

  const Checkpoint& checkpoint_;
  OriginSearch search_;
  std::vector<ExplainedPayload> out_;
  std::map<std::pair<ScalarType, std::uint64_t>, ByHash> floats_;
};

}  // namespace

Result<std::vector<ExplainedPayload>> explain_payloads(const ProgramFile& program,
                                                       const std::vector<const TensorDataFile*>& weights,
                                                       Checkpoint& checkpoint) {
  ETSTREAM_ASSIGN(auto payloads, read_weight_payloads(program, weights));
  ETSTREAM_ASSIGN(const Findings findings, verify(program, weights));
  ETSTREAM_TRY(require_sound(program.file().name(), findings));
  ETSTREAM_TRY(add_frequencies(payloads, checkpoint));
  ETSTREAM_ASSIGN(auto head_dims, head_dims_of(checkpoint));
  return Explainer(std::move(payloads), checkpoint, std::move(head_dims)).run();
}

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
    Checkpoint known = checkpoint;
    ETSTREAM_ASSIGN(const auto payloads, explain_payloads(program, weights, known));
    return origins_of(payloads, known);
  });
}

}  // namespace etstream
