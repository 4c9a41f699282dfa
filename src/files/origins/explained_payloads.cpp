// SPDX-License-Identifier: BSD-3-Clause
#include "files/origins/explained_payloads.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/findings.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "core/layout/same_bytes.h"
#include "etstream/program_weights.h"
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

/// Compares names with the numbers in them as numbers: "layers.2" is before "layers.10".
bool is_before(std::string_view a, std::string_view b) {
  const auto digits = [](std::string_view text) {
    return std::min(text.find_first_not_of("0123456789"), text.size());
  };
  while (!a.empty() && !b.empty()) {
    const std::size_t in_a = digits(a);
    const std::size_t in_b = digits(b);
    if (in_a != 0 && in_b != 0) {
      if (in_a != in_b) return in_a < in_b;
      if (const int order = a.compare(0, in_a, b, 0, in_b); order != 0) return order < 0;
      a.remove_prefix(in_a);
      b.remove_prefix(in_b);
    } else {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
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
    for (std::size_t i = 0; i < out_.size(); ++i) {
      if (!is_searched(out_[i].payload)) continue;
      const auto scales = out_[i].payload.scales;
      ETSTREAM_ASSIGN(out_[i].steps,
                      search_.find(out_[i].payload, scales ? &out_[*scales].payload : nullptr));
    }
    ETSTREAM_TRY(explain_scales());
    for (ExplainedPayload& each : out_) {
      if (!each.payload.bias_of) continue;
      const ExplainedPayload& weights = out_[*each.payload.bias_of];
      if (is_quantized_bias(each.payload)) {
        ETSTREAM_TRY(explain_bias(each));
      } else if (!weights.steps.empty() && each.steps.size() > 1) {
        std::vector<WeightSteps> kept;
        std::ranges::copy_if(each.steps, std::back_inserter(kept),
                             [&](const WeightSteps& way) { return has_norm_of(weights, way.front()); });
        if (!kept.empty()) each.steps = std::move(kept);
      }
    }
    ETSTREAM_TRY(choose_among_equals());
    for (ExplainedPayload& each : out_) ETSTREAM_TRY(explain_without_weights(each));
    std::size_t described = 0;
    for (ExplainedPayload& each : out_) {
      if (!each.is_explained() && ++described <= kMostDescribed) ETSTREAM_TRY(find_nearest(each));
    }
    return std::move(out_);
  }

 private:
  /// Returns whether a way to a bias has the batch norm of the way to its weights, or none as that has none.
  static bool has_norm_of(const ExplainedPayload& weights, const TensorSteps& bias) {
    const auto norm_of = [](const TensorSteps& way) -> const NormStep* {
      for (const WeightStep& step : way.steps) {
        if (const auto* const norm = std::get_if<NormStep>(&step)) return norm;
      }
      return nullptr;
    };
    const NormStep* const of_weights = norm_of(weights.steps.front().front());
    const NormStep* const of_bias = norm_of(bias);
    if (of_weights == nullptr || of_bias == nullptr) return of_weights == of_bias;
    if (of_weights->mean != of_bias->mean || of_weights->epsilon != of_bias->epsilon) return false;
    if (of_weights->part == NormStep::Part::kAsConvolution)
      return of_bias->part == NormStep::Part::kBiasOfConvolution;
    const auto& layout = weights.payload.layout;
    const bool is_linear = layout && layout->sizes.size() == 2;
    return of_bias->part == (is_linear ? NormStep::Part::kLinearBias : NormStep::Part::kBias);
  }

  /// Returns whether a payload is explained by itself, and not by others.
  static bool is_searched(const WeightPayload& payload) {
    return !payload.are_scales && !payload.is_opaque && !payload.is_calibrated && !is_quantized_bias(payload);
  }

  static bool is_quantized_bias(const WeightPayload& payload) {
    return payload.bias_of && payload.input_scale && payload.layout &&
           payload.layout->scalar_type == ScalarType::kInt32;
  }

  /// Explains integers of 32 bits, and their scales, by the scales of the weights and of the input, which
  /// stays as it was calibrated.
  Result<void> explain_bias(ExplainedPayload& bias) {
    const ExplainedPayload& weights = out_[*bias.payload.bias_of];
    const auto scales =
        weights.steps.empty() ? std::nullopt : scales_of(weights.steps.front(), ScalarType::kFloat32);
    if (!scales) return {};
    QuantizeBiasStep step{*scales, *bias.payload.input_scale};
    const std::uint64_t channels = bias.payload.data.size() / sizeof(std::int32_t);
    for (TensorSteps& way : search_.biases(channels)) {
      if (!has_norm_of(weights, way)) continue;
      ETSTREAM_TRY(search_.count_try());
      way.steps.emplace_back(step);
      const auto made = take_steps(search_.tensors(), way);
      // A tensor that allows no such steps gives no bias.
      if (!made && made.error().code == ErrorCode::kInvalidArgument) continue;
      if (!made) return made.error();
      ETSTREAM_ASSIGN(const bool same, same_bytes(*made, bias.payload.data));
      if (same) bias.steps.push_back({std::move(way)});
    }
    if (bias.steps.empty() || !bias.payload.scales) return {};
    ExplainedPayload& own = out_[*bias.payload.scales];
    step.are_scales = true;
    for (const WeightSteps& way : bias.steps) {
      WeightSteps of_scales = way;
      of_scales.front().steps.back() = step;
      ETSTREAM_ASSIGN(const ByteSource made, take_steps(search_.tensors(), of_scales));
      ETSTREAM_ASSIGN(const bool same, same_bytes(made, own.payload.data));
      if (same) own.steps.push_back(std::move(of_scales));
    }
    if (own.steps.empty()) bias.steps.clear();
    return {};
  }

  /// Sets the steps of `scales` to those that give the scales of `integers`.
  static void take_scales(const ExplainedPayload& integers, ExplainedPayload& scales) {
    for (const WeightSteps& steps : integers.steps) {
      auto own = scales_of(steps, scales.payload.layout->scalar_type);
      if (own) scales.steps.push_back(*std::move(own));
    }
  }

  /// Explains scales by what explains their integers. Integers without their scales are not explained.
  Result<void> explain_scales() {
    for (ExplainedPayload& each : out_) {
      if (each.steps.empty() || !scales_of(each.steps.front(), ScalarType::kFloat32)) continue;
      if (each.payload.scales) {
        take_scales(each, out_[*each.payload.scales]);
      } else {
        ETSTREAM_ASSIGN(const bool found, find_scales(each));
        if (!found) each.steps.clear();
      }
    }
    return {};
  }

  /// Looks for the scales among the payloads of floating-point numbers.
  Result<bool> find_scales(ExplainedPayload& integers) {
    for (const ScalarType type :
         {ScalarType::kFloat32, ScalarType::kBFloat16, ScalarType::kFloat16, ScalarType::kFloat64}) {
      ETSTREAM_ASSIGN(const ByteSource scales,
                      take_steps(search_.tensors(), *scales_of(integers.steps.front(), type)));
      ETSTREAM_ASSIGN(const auto* const known, floats_of(type, scales.size()));
      if (known->empty()) continue;
      ETSTREAM_ASSIGN(const ContentHash hash, hash_of(scales));
      const auto found = known->find(hash);
      if (found == known->end()) continue;
      ExplainedPayload& own = out_[found->second];
      own.steps.clear();
      own.payload.are_scales = true;
      take_scales(integers, own);
      return true;
    }
    return false;
  }

  using ByHash = std::map<ContentHash, std::size_t>;

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

  /// Takes one of several tensors that give a payload: the one of its name, or the one in its place, if as
  /// many payloads as tensors have these bytes. If neither tells, all of them may be meant.
  Result<void> choose_among_equals() {
    std::map<std::pair<std::vector<std::size_t>, ContentHash>, std::vector<ExplainedPayload*>> groups;
    for (ExplainedPayload& each : out_) {
      std::vector<std::size_t> tensors;
      for (const WeightSteps& steps : each.steps) tensors.push_back(steps.front().tensor);
      std::ranges::sort(tensors,
                        [&](std::size_t a, std::size_t b) { return is_before(name_of(a), name_of(b)); });
      tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
      if (tensors.size() < 2) continue;
      ETSTREAM_ASSIGN(const ContentHash hash, hash_of(each.payload.data));
      groups[{std::move(tensors), hash}].push_back(&each);
    }
    for (const auto& [group, payloads] : groups) {
      const std::vector<std::size_t>& tensors = group.first;
      for (std::size_t i = 0; i < payloads.size(); ++i) {
        ExplainedPayload& each = *payloads[i];
        auto chosen = std::ranges::find(tensors, each.payload.name,
                                        [&](std::size_t tensor) { return name_of(tensor); });
        if (chosen == tensors.end() && payloads.size() == tensors.size()) {
          chosen = tensors.begin() + static_cast<std::ptrdiff_t>(i);
        }
        if (chosen == tensors.end()) continue;
        each.equals = tensors;
        std::erase(each.equals, *chosen);
        std::erase_if(each.steps, [&](const WeightSteps& steps) { return steps.front().tensor != *chosen; });
      }
    }
    return {};
  }

  [[nodiscard]] const std::string& name_of(std::size_t tensor) const {
    return checkpoint_.tensors[tensor].name;
  }

  /// Notes if no weights need to be behind a payload. Where a tensor has its bytes, that is noted for one
  /// number, zeros and ones alone.
  Result<void> explain_without_weights(ExplainedPayload& each) {
    const WeightPayload& payload = each.payload;
    if (payload.is_calibrated) each.constant = "calibrated with data";
    if (!payload.layout || payload.is_opaque || payload.is_of_nibbles || payload.is_calibrated ||
        payload.are_scales) {
      return {};
    }
    if (!each.steps.empty()) {
      ETSTREAM_ASSIGN(const bool may_be, may_be_no_weight(each.payload));
      const bool is_named = checkpoint_.tensors[each.steps.front().front().tensor].name == each.payload.name;
      if (!may_be || is_named) return {};
    }
    if (each.payload.bias_of || each.payload.integers) {
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

  /// Finds the tensors of as many elements, the nearest first by the elements at some places.
  Result<void> find_nearest(ExplainedPayload& each) {
    const WeightPayload& payload = each.payload;
    if (!payload.layout) return {};
    const std::uint64_t elements = payload.data.size() / item_size(payload.layout->scalar_type);
    // A byte may hold two.
    const bool are_halves = payload.is_of_nibbles || payload.layout->scalar_type == ScalarType::kUInt8;
    std::vector<std::pair<double, std::size_t>> found;
    for (std::size_t i = 0; i < checkpoint_.tensors.size(); ++i) {
      const CheckpointTensor& tensor = checkpoint_.tensors[i];
      if (!tensor.layout) continue;
      const std::uint64_t count = tensor.data.size() / item_size(tensor.layout->scalar_type);
      if (count != elements && !(are_halves && count == 2 * elements)) continue;
      ETSTREAM_ASSIGN(const double distance, distance_of(payload, tensor));
      found.emplace_back(distance, i);
    }
    std::ranges::sort(found);
    for (const auto& [distance, tensor] : found) {
      if (each.nearest.size() < kMostNearest) each.nearest.push_back(tensor);
    }
    return {};
  }

  static constexpr std::size_t kSamples = 16;

  /// Returns the mean difference of some elements; infinity where they can't be compared.
  static Result<double> distance_of(const WeightPayload& payload, const CheckpointTensor& tensor) {
    const ScalarType type = payload.layout->scalar_type;
    const ScalarType other = tensor.layout->scalar_type;
    constexpr double kFar = std::numeric_limits<double>::max();
    if (!is_floating_point(type) || !is_floating_point(other)) return kFar;
    ETSTREAM_ASSIGN(const ByteSource ours, convert_floats(payload.data, type, ScalarType::kFloat32));
    ETSTREAM_ASSIGN(const ByteSource theirs, convert_floats(tensor.data, other, ScalarType::kFloat32));
    const std::uint64_t count = ours.size() / sizeof(float);
    double sum = 0;
    for (std::size_t i = 0; i < kSamples; ++i) {
      const std::uint64_t at = count * i / kSamples * sizeof(float);
      std::array<float, 2> numbers{};
      ETSTREAM_TRY(ours.read_at(at, std::as_writable_bytes(std::span(numbers).first(1))));
      ETSTREAM_TRY(theirs.read_at(at, std::as_writable_bytes(std::span(numbers).last(1))));
      sum += std::abs(double{numbers[0]} - double{numbers[1]});
    }
    return std::isnan(sum) ? kFar : sum;
  }

  const Checkpoint& checkpoint_;
  OriginSearch search_;
  std::vector<ExplainedPayload> out_;
  std::map<std::pair<ScalarType, std::uint64_t>, ByHash> floats_;
};

}  // namespace

Result<std::vector<ExplainedPayload>> explain_payloads(const ProgramFile& program,
                                                       const std::vector<const TensorDataFile*>& weights,
                                                       const Checkpoint& checkpoint) {
  ETSTREAM_ASSIGN(auto payloads, read_weight_payloads(program, weights));
  ETSTREAM_ASSIGN(const Findings findings, verify(program, weights));
  ETSTREAM_TRY(require_sound(program.file().name(), findings));
  ETSTREAM_ASSIGN(auto head_dims, head_dims_of(checkpoint));
  return Explainer(std::move(payloads), checkpoint, std::move(head_dims)).run();
}

}  // namespace etstream
