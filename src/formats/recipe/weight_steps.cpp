// SPDX-License-Identifier: BSD-3-Clause
#include "formats/recipe/weight_steps.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/match.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/tensor.h"
#include "formats/checkpoint/rename/rename_rules.h"
#include "formats/tensor/batch_norm.h"
#include "formats/tensor/converted_floats.h"
#include "formats/tensor/dimensions.h"
#include "formats/tensor/scaled_floats.h"
#include "formats/tensor/strided_source.h"

namespace etstream {
namespace {

constexpr std::uint64_t kMostChannels = 65536;

Result<std::vector<float>> read_floats(const ByteSource& source) {
  if (source.size() > kMostChannels * sizeof(float) || source.size() % sizeof(float) != 0) {
    return error_in(ErrorCode::kInvalidArgument, source.name(), "expected at most {} float32, found {}",
                    kMostChannels, counted(source.size(), "byte"));
  }
  std::vector<float> out(static_cast<std::size_t>(source.size() / sizeof(float)));
  ETSTREAM_TRY(source.read_at(0, std::as_writable_bytes(std::span(out))));
  return out;
}

template <class Number>
ByteSource source_of(const std::vector<Number>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return ByteSource::owned({bytes.begin(), bytes.end()});
}

/// Returns a bias as the program has it: quantize_per_channel and quantize_per_tensor of torch 2.13, whose
/// scales are products in float32 and in float64. `file` and `tensor` are those of the bias in messages.
Result<ByteSource> quantize_bias(const std::vector<float>& bias, const std::vector<float>& weight_scales,
                                 const QuantizeBiasStep& step, const std::string& file,
                                 const std::string& tensor) {
  const bool by_channel = weight_scales.size() > 1;
  std::vector<float> scales;
  std::vector<std::int32_t> integers;
  for (std::size_t i = 0; i < (by_channel || !step.are_scales ? bias.size() : 1); ++i) {
    const float own = weight_scales[by_channel ? i : 0];
    const double exact = double{own} * double{step.input_scale};
    const float scale = own * step.input_scale;
    const float inverse = by_channel ? 1.0F / scale : static_cast<float>(1.0 / exact);
    scales.push_back(scale);
    const float product = bias[i] * inverse;
    if (std::isnan(product)) {
      return error_in(ErrorCode::kInvalidArgument, file,
                      "tensor {}: element {} is to be quantized as a bias: expected a number, found a NaN",
                      quote(tensor), i);
    }
    constexpr float kMost = 2147483648.0F;
    const double rounded = std::nearbyint(std::clamp(product, -kMost, kMost));
    integers.push_back(static_cast<std::int32_t>(std::min(rounded, double{kMost} - 1)));
  }
  return step.are_scales ? source_of(scales) : source_of(integers);
}

/// A tensor between two steps.
class Between {
 public:
  Between(const FindTensor& find, const CheckpointTensor& tensor)
      : find_(find), name_(tensor.name), data_(tensor.data), type_(tensor.layout->scalar_type) {
    for (const std::int32_t size : tensor.layout->sizes) sizes_.push_back(static_cast<std::uint64_t>(size));
  }

  [[nodiscard]] const ByteSource& data() const noexcept { return data_; }

  Result<void> take(const CastStep& step) {
    ETSTREAM_ASSIGN(data_, convert_floats(data_, type_, step.type));
    type_ = step.type;
    return {};
  }

  Result<void> take(const PermuteStep& step) {
    if (step.groups > 1) {
      if (sizes_.empty() || sizes_[0] % step.groups != 0) return refuse("groups");
      sizes_[0] /= step.groups;
      sizes_.insert(sizes_.begin(), step.groups);
    }
    std::vector<std::uint8_t> all = step.order;
    std::ranges::sort(all);
    if (all != contiguous_dim_order(sizes_.size())) return refuse("dimensions");
    const std::vector<std::int64_t> dense = dense_strides(sizes_, item_size(type_));
    StridedElements elements{.item_size = item_size(type_), .sizes = {}, .strides = {}};
    for (const std::uint8_t dimension : step.order) {
      elements.sizes.push_back(sizes_[dimension]);
      elements.strides.push_back(dense[dimension]);
    }
    sizes_ = elements.sizes;
    ETSTREAM_ASSIGN(data_, gather(data_, std::move(elements)));
    return {};
  }

  Result<void> take(const InterleaveRopeStep& step) {
    const bool has_halves = step.head_dim != 0 && step.head_dim % 2 == 0;
    if (!has_halves || sizes_.empty() || sizes_[0] == 0 || sizes_[0] % step.head_dim != 0) {
      return refuse("rows");
    }
    data_ = interleave_rope(data_, step.head_dim, data_.size() / sizes_[0]);
    return {};
  }

  Result<void> take(const QuantizeStep& step) {
    if (type_ != ScalarType::kFloat32) return refuse("elements");
    ETSTREAM_ASSIGN(data_, quantize(data_, step.how, name_));
    type_ = ScalarType::kInt8;
    return {};
  }

  Result<void> take(const ScalesStep& step) {
    if (type_ != ScalarType::kFloat32) return refuse("elements");
    ETSTREAM_ASSIGN(data_, etstream::scales_of(data_, step.how, name_));
    sizes_ = {data_.size() / sizeof(float)};
    return {};
  }

  Result<void> take(const NormStep& step) {
    if (type_ != ScalarType::kFloat32) return refuse("elements");
    BatchNorm norm;
    norm.epsilon = step.epsilon;
    ETSTREAM_ASSIGN(norm.mean, floats_at(step.mean));
    ETSTREAM_ASSIGN(norm.variance, floats_at(step.variance));
    ETSTREAM_ASSIGN(norm.weight, floats_at(step.weight));
    ETSTREAM_ASSIGN(norm.bias, floats_at(step.bias));
    const std::size_t channels = norm.mean.size();
    if (norm.variance.size() != channels || norm.weight.size() != channels || norm.bias.size() != channels) {
      return refuse("channels of a batch norm");
    }
    if (step.part == NormStep::Part::kWeights) {
      if (step.axis >= sizes_.size() || sizes_[step.axis] != channels) return refuse("channels");
      std::uint64_t inner = 1;
      for (std::size_t i = step.axis + std::size_t{1}; i < sizes_.size(); ++i) inner *= sizes_[i];
      if (data_.size() != 0) data_ = scale_channels(data_, folded_factors(norm), inner);
      return {};
    }
    ETSTREAM_ASSIGN(const std::vector<float> own, read_floats(data_));
    if (own.size() != channels) return refuse("channels");
    switch (step.part) {
      case NormStep::Part::kBias:
      case NormStep::Part::kLinearBias:
        data_ = source_of(folded_bias(norm,
                                      step.has_bias ? std::span<const float>(own) : std::span<const float>(),
                                      step.part == NormStep::Part::kLinearBias));
        break;
      case NormStep::Part::kAsConvolution:
        data_ = source_of(weights_of(norm));
        break;
      default:
        data_ = source_of(bias_of(norm));
    }
    return {};
  }

  Result<void> take(const QuantizeBiasStep& step) {
    if (type_ != ScalarType::kFloat32) return refuse("elements");
    ETSTREAM_ASSIGN(const std::vector<float> bias, read_floats(data_));
    ETSTREAM_ASSIGN(const ByteSource source, take_steps(find_, step.scales));
    ETSTREAM_ASSIGN(const std::vector<float> scales, read_floats(source));
    if (scales.empty() || (scales.size() != 1 && scales.size() != bias.size())) return refuse("scales");
    ETSTREAM_ASSIGN(data_, quantize_bias(bias, scales, step, data_.name(), name_));
    type_ = step.are_scales ? ScalarType::kFloat32 : ScalarType::kInt32;
    return {};
  }

 private:
  Result<std::vector<float>> floats_at(std::size_t place) const {
    ETSTREAM_ASSIGN(const CheckpointTensor* tensor, find_(place));
    return read_floats(tensor->data);
  }

  [[nodiscard]] Error refuse(std::string_view what) const {
    return error_in(ErrorCode::kInvalidArgument, data_.name(), "expected other {}, found a tensor of {}",
                    what, list_text(sizes_));
  }

  const FindTensor& find_;
  const std::string& name_;
  ByteSource data_;
  ScalarType type_;
  std::vector<std::uint64_t> sizes_;
};

std::string describe_quantization(const Quantization& how) {
  return text("integers from {} to {}, {} a scale{}", how.lowest, how.highest, how.group,
              how.in_bfloat16 ? ", in bfloat16" : "");
}

std::string describe_permutation(const PermuteStep& step) {
  if (step.groups == 1 && step.order == std::vector<std::uint8_t>{1, 0}) return "transposed";
  const std::string order = text("dimensions in the order {}", list_text(step.order));
  return step.groups == 1 ? order : text("{}, of {}", order, counted(step.groups, "group"));
}

std::string describe_norm(const NormStep& step) {
  switch (step.part) {
    case NormStep::Part::kWeights:
      return "with the batch norm behind it";
    case NormStep::Part::kBias:
    case NormStep::Part::kLinearBias:
      return step.has_bias ? "with the batch norm behind it" : "as bias with the rest of its batch norm";
    case NormStep::Part::kAsConvolution:
      return "its batch norm as a convolution";
    default:
      return "its batch norm as a convolution, the bias";
  }
}

}  // namespace

std::string describe(const WeightStep& step) {
  return match(
      step, [](const CastStep& cast) { return text("cast to {}", name_of(cast.type)); },
      [](const PermuteStep& permute) { return describe_permutation(permute); },
      [](const InterleaveRopeStep& rope) {
        return text("rows of heads of {} interleaved for rotary embeddings", rope.head_dim);
      },
      [](const QuantizeStep& quantize) {
        return text("quantized to {}", describe_quantization(quantize.how));
      },
      [](const ScalesStep& scales) { return text("the scales of {}", describe_quantization(scales.how)); },
      [](const NormStep& norm) { return describe_norm(norm); },
      [](const QuantizeBiasStep& bias) {
        return text("{} of 32 bits, by the weights' scales and that of the input, {}",
                    bias.are_scales ? "the scales of integers" : "quantized to integers",
                    exact_text(bias.input_scale));
      });
}

WeightSteps one_way(const std::vector<WeightPiece>& pieces) {
  WeightSteps out;
  std::uint64_t at = 0;
  for (const WeightPiece& piece : pieces) {
    if (piece.at != at) continue;
    out.push_back(piece.steps);
    at += piece.size;
  }
  return out;
}

void keep_ways(std::vector<WeightPiece>& pieces, std::uint64_t size) {
  std::ranges::stable_sort(pieces, {}, &WeightPiece::at);
  std::set<std::uint64_t> begins = {0};
  std::erase_if(pieces, [&](const WeightPiece& piece) {
    if (piece.size == 0 || !begins.contains(piece.at)) return true;
    begins.insert(piece.at + piece.size);
    return false;
  });
  std::set<std::uint64_t> ends = {size};
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    if (ends.contains(piece->at + piece->size)) ends.insert(piece->at);
  }
  std::erase_if(pieces, [&](const WeightPiece& piece) { return !ends.contains(piece.at + piece.size); });
}

const NormStep* norm_in(const TensorSteps& steps) {
  for (const WeightStep& step : steps.steps) {
    if (const auto* const norm = std::get_if<NormStep>(&step)) return norm;
  }
  return nullptr;
}

std::vector<std::size_t> tensors_in(const TensorSteps& steps) {
  std::vector<std::size_t> out = {steps.tensor};
  for (const WeightStep& step : steps.steps) {
    if (const auto* const norm = std::get_if<NormStep>(&step)) {
      out.insert(out.end(), {norm->mean, norm->variance, norm->weight, norm->bias});
    }
  }
  return out;
}

bool is_plain(const CheckpointTensor& tensor) {
  return tensor.layout && tensor.layout->dim_order == contiguous_dim_order(tensor.layout->sizes.size());
}

FindTensor tensors_of(const std::vector<CheckpointTensor>& tensors) {
  return [&tensors](std::size_t place) -> Result<const CheckpointTensor*> { return &tensors[place]; };
}

Result<ByteSource> take_steps(const FindTensor& find, const TensorSteps& steps) {
  ETSTREAM_ASSIGN(const CheckpointTensor* tensor, find(steps.tensor));
  Between between(find, *tensor);
  for (const WeightStep& step : steps.steps) {
    ETSTREAM_TRY(match(step, [&](const auto& one) { return between.take(one); }));
  }
  return between.data();
}

Result<ByteSource> take_steps(const FindTensor& find, const WeightSteps& steps) {
  std::vector<ByteSource> parts;
  for (const TensorSteps& part : steps) {
    ETSTREAM_ASSIGN(parts.emplace_back(), take_steps(find, part));
  }
  return parts.size() == 1 ? parts.front() : ByteSource::concatenation(std::move(parts));
}

std::optional<WeightSteps> scales_of(const WeightSteps& steps, ScalarType type) {
  WeightSteps out;
  for (const TensorSteps& part : steps) {
    TensorSteps& own = out.emplace_back(TensorSteps{part.tensor, {}});
    const auto quantizes = [](const WeightStep& step) { return std::holds_alternative<QuantizeStep>(step); };
    const auto found = std::ranges::find_if(part.steps, quantizes);
    if (found == part.steps.end()) return std::nullopt;
    // The steps behind it are about the order of the integers.
    own.steps.assign(part.steps.begin(), found);
    own.steps.emplace_back(ScalesStep{std::get_if<QuantizeStep>(&*found)->how});
    if (type != ScalarType::kFloat32) own.steps.emplace_back(CastStep{type});
  }
  return out;
}

std::optional<WeightPiece> scales_of(const WeightPiece& piece, ScalarType type) {
  auto steps = scales_of(WeightSteps{piece.steps}, type);
  if (!steps) return std::nullopt;
  const ScalesStep* how = nullptr;
  for (const WeightStep& step : steps->front().steps) {
    if (const auto* const scales = std::get_if<ScalesStep>(&step)) how = scales;
  }
  const bool are_nibbles = how->how.highest - how->how.lowest == 15;
  const std::uint64_t integers = are_nibbles ? 2 * piece.at : piece.at;
  return WeightPiece{integers / how->how.group * item_size(type), 0, std::move(steps->front())};
}

}  // namespace etstream
