// SPDX-License-Identifier: BSD-3-Clause
#include "files/origins/weight_steps.h"

#include <algorithm>
#include <utility>

#include "core/base/match.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/dim_order.h"
#include "formats/checkpoint/rename/rope_rows.h"
#include "formats/tensor/converted_floats.h"
#include "formats/tensor/dimensions.h"
#include "formats/tensor/strided_source.h"

namespace etstream {
namespace {

/// A tensor between two steps.
struct Between {
  ByteSource data;
  ScalarType type = ScalarType::kFloat32;
  std::vector<std::uint64_t> sizes;

  Result<void> take(const CastStep& step) {
    ETSTREAM_ASSIGN(data, convert_floats(data, type, step.type));
    type = step.type;
    return {};
  }

  Result<void> take(const PermuteStep& step) {
    const std::vector<std::int64_t> dense = dense_strides(sizes, item_size(type));
    StridedElements elements{.item_size = item_size(type), .sizes = {}, .strides = {}};
    if (step.order.size() != sizes.size()) return refuse("dimensions");
    for (const std::uint8_t dimension : step.order) {
      elements.sizes.push_back(sizes[dimension]);
      elements.strides.push_back(dense[dimension]);
    }
    sizes = elements.sizes;
    ETSTREAM_ASSIGN(data, gather(data, std::move(elements)));
    return {};
  }

  Result<void> take(const InterleaveRopeStep& step) {
    if (sizes.empty() || sizes[0] == 0 || sizes[0] % step.head_dim != 0) return refuse("rows");
    data = interleave_rope(data, step.head_dim, data.size() / sizes[0]);
    return {};
  }

  Result<void> take(const QuantizeStep& step) {
    ETSTREAM_ASSIGN(data, quantize(data, step.how));
    type = ScalarType::kInt8;
    return {};
  }

  Result<void> take(const ScalesStep& step) {
    ETSTREAM_ASSIGN(data, scales_of(data, step.how));
    sizes = {data.size() / sizeof(float)};
    return {};
  }

  [[nodiscard]] Error refuse(std::string_view what) const {
    return error_in(ErrorCode::kInvalidArgument, data.name(), "expected other {}, found a tensor of {}", what,
                    list_text(sizes));
  }
};

}  // namespace

std::string describe(const WeightStep& step) {
  const auto of_quantization = [](const Quantization& how) {
    return text("integers from {} to {}, {} a scale", how.lowest, how.highest, how.group);
  };
  return match(
      step, [](const CastStep& cast) { return text("cast to {}", name_of(cast.type)); },
      [](const PermuteStep& permute) {
        return permute.order == std::vector<std::uint8_t>{1, 0}
                   ? std::string("transposed")
                   : text("dimensions in the order {}", list_text(permute.order));
      },
      [](const InterleaveRopeStep& rope) {
        return text("rows of heads of {} interleaved for rotary embeddings", rope.head_dim);
      },
      [&](const QuantizeStep& quantize) { return text("quantized to {}", of_quantization(quantize.how)); },
      [&](const ScalesStep& scales) { return text("the scales of {}", of_quantization(scales.how)); });
}

bool is_plain(const CheckpointTensor& tensor) {
  return tensor.layout && tensor.layout->dim_order == contiguous_dim_order(tensor.layout->sizes.size());
}

Result<ByteSource> take_steps(const CheckpointTensor& tensor, const std::vector<WeightStep>& steps) {
  Between between{tensor.data, tensor.layout->scalar_type, {}};
  for (const std::int32_t size : tensor.layout->sizes) {
    between.sizes.push_back(static_cast<std::uint64_t>(size));
  }
  for (const WeightStep& step : steps) {
    ETSTREAM_TRY(match(step, [&](const auto& one) { return between.take(one); }));
  }
  return between.data;
}

Result<ByteSource> take_steps(const std::vector<CheckpointTensor>& tensors, const WeightSteps& steps) {
  std::vector<ByteSource> parts;
  for (const TensorSteps& part : steps) {
    ETSTREAM_ASSIGN(parts.emplace_back(), take_steps(tensors[part.tensor], part.steps));
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

}  // namespace etstream
