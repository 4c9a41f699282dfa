// SPDX-License-Identifier: BSD-3-Clause
#include "files/origins/origin_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/same_bytes.h"

namespace etstream {
namespace {

constexpr std::uint64_t kProbe = 64;      // bytes
constexpr std::size_t kMostPermuted = 4;  // dimensions of more than one element
constexpr std::size_t kMostParts = 4096;  // that are joined
// The most ways that are tried: so many for each tensor, and some more. Real exports took fewer than 64 for
// each tensor and 4,096.
constexpr std::uint64_t kMostTriesOfTensor = 256;
constexpr std::uint64_t kFreeTries = std::uint64_t{1} << 16;

constexpr std::string_view kInMemory = "the checkpoint";

/// Symmetric quantizations of torchao, and of pt2e's XNNPACKQuantizer. The least scales are torchao's, and
/// that of the observers.
constexpr float kLeastOfTorchao = std::numeric_limits<float>::min();
constexpr Quantization kNibbles = {0, -8, 7, kLeastOfTorchao};
constexpr Quantization kBytes = {0, -128, 127, kLeastOfTorchao};
constexpr Quantization kObservedBytes = {0, -127, 127, 1.0F / 4096};

/// Groups of elements that quantizers use, besides rows and whole tensors.
constexpr std::array<std::uint64_t, 5> kGroups = {32, 64, 128, 256, 16};

/// Epsilons of torch.nn's batch norms, by default and in usual models. A program does not say its own.
constexpr std::array kEpsilons = {1e-5F, 1e-3F, 1e-6F, 1e-4F, 2e-5F};

std::uint64_t count_of(const CheckpointTensor& tensor) {
  return tensor.data.size() / item_size(tensor.layout->scalar_type);
}

bool is_list_of_floats(const CheckpointTensor& tensor) {
  return is_plain(tensor) && tensor.layout->scalar_type == ScalarType::kFloat32 &&
         tensor.layout->sizes.size() == 1;
}

std::uint64_t size_of(const Checkpoint& checkpoint) {
  std::uint64_t out = 0;
  for (const CheckpointTensor& tensor : checkpoint.tensors) out += tensor.data.size();
  return out;
}

/// Finds batch norms by the names that torch.nn gives their tensors.
std::vector<NormStep> find_norms(const std::vector<CheckpointTensor>& tensors) {
  constexpr std::string_view kMean = "running_mean";
  std::map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (is_list_of_floats(tensors[i])) by_name.emplace(tensors[i].name, i);
  }
  std::vector<NormStep> out;
  for (const auto& [name, mean] : by_name) {
    if (!name.ends_with(kMean)) continue;
    const std::string module(name.substr(0, name.size() - kMean.size()));
    const auto variance = by_name.find(module + "running_var");
    const auto weight = by_name.find(module + "weight");
    const auto bias = by_name.find(module + "bias");
    if (variance == by_name.end() || weight == by_name.end() || bias == by_name.end()) continue;
    NormStep norm{.mean = mean, .variance = variance->second, .weight = weight->second, .bias = bias->second};
    for (const float epsilon : kEpsilons) {
      norm.epsilon = epsilon;
      out.push_back(norm);
    }
  }
  return out;
}

/// Returns up to kProbe bytes from the beginning and, of a whole payload, from the middle.
Result<std::string> probe(const ByteSource& source, bool is_whole) {
  const std::uint64_t size = std::min(kProbe, source.size());
  std::string out(static_cast<std::size_t>(is_whole ? 2 * size : size), '\0');
  const auto bytes = std::as_writable_bytes(std::span(out));
  ETSTREAM_TRY(source.read_at(0, bytes.first(static_cast<std::size_t>(size))));
  if (is_whole) {
    ETSTREAM_TRY(source.read_at(std::min(source.size() / 2, source.size() - size),
                                bytes.subspan(static_cast<std::size_t>(size))));
  }
  return out;
}

/// Returns `sizes` without those of 1.
template <class Sizes>
std::vector<std::uint64_t> long_sizes(const Sizes& sizes) {
  std::vector<std::uint64_t> out;
  for (const auto size : sizes) {
    if (size != 1) out.push_back(static_cast<std::uint64_t>(size));
  }
  return out;
}

/// Returns the orders of the dimensions of more than one element that give `wanted`, but for the one that
/// they have. The others stay where they are.
std::vector<PermuteStep> permutations(const std::vector<std::int32_t>& sizes,
                                      const std::vector<std::uint64_t>& wanted) {
  std::vector<std::uint8_t> long_ones;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1) long_ones.push_back(static_cast<std::uint8_t>(i));
  }
  std::vector<PermuteStep> out;
  if (long_ones.size() > kMostPermuted || long_ones.size() != wanted.size()) return out;
  std::vector<std::uint8_t> order = long_ones;
  while (std::next_permutation(order.begin(), order.end())) {
    const auto size_of = [&](std::uint8_t dimension) { return static_cast<std::uint64_t>(sizes[dimension]); };
    if (!std::ranges::equal(order, wanted, {}, size_of)) continue;
    std::vector<std::uint8_t> all(sizes.size());
    std::iota(all.begin(), all.end(), std::uint8_t{0});
    for (std::size_t i = 0; i < order.size(); ++i) all[long_ones[i]] = order[i];
    out.push_back({std::move(all)});
  }
  return out;
}

/// Returns the order in which XNNPACK has the weights of a transposed convolution of several groups, if that
/// gives `wanted`: output channels of all groups, the kernel, the input channels of one.
std::optional<PermuteStep> transposed_groups(const std::vector<std::int32_t>& sizes,
                                             const std::vector<std::uint64_t>& wanted) {
  if (sizes.size() < 3 || sizes[0] <= 0 || wanted.empty() || wanted.back() == 0) return std::nullopt;
  const auto inputs = static_cast<std::uint64_t>(sizes[0]);
  if (inputs % wanted.back() != 0 || inputs == wanted.back()) return std::nullopt;
  PermuteStep out{{0}, inputs / wanted.back()};
  std::vector<std::uint64_t> given = {out.groups * static_cast<std::uint64_t>(sizes[1])};
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    out.order.push_back(static_cast<std::uint8_t>(i + 1));
    if (i > 1) given.push_back(static_cast<std::uint64_t>(sizes[i]));
  }
  out.order.push_back(1);
  given.push_back(wanted.back());
  return long_sizes(given) == wanted ? std::optional(std::move(out)) : std::nullopt;
}

/// Returns the sizes of what the payload holds, without steps: of integers of 4 bits too.
std::vector<std::uint64_t> sizes_of(const WeightPayload& payload) {
  std::vector<std::uint64_t> out;
  if (payload.integers) {
    out.assign(payload.integers->sizes.begin(), payload.integers->sizes.end());
  } else {
    for (const std::int32_t size : payload.layout->sizes) {
      out.push_back(static_cast<std::uint64_t>(std::max(size, 0)));
    }
  }
  return out;
}

/// Returns how many elements may share a scale, if a tensor of `count` has rows of `row`.
std::vector<std::uint64_t> usual_groups(std::uint64_t row, std::uint64_t count) {
  std::vector<std::uint64_t> out = {row};
  for (const std::uint64_t group : kGroups) {
    if (group < row && row % group == 0) out.push_back(group);
  }
  if (row != count) out.push_back(count);
  return out;
}

/// Returns each of `known` with each of `groups`, in float32 and bfloat16.
std::vector<Quantization> with_groups(std::initializer_list<Quantization> known,
                                      const std::vector<std::uint64_t>& groups) {
  std::vector<Quantization> out;
  for (Quantization how : known) {
    for (const std::uint64_t group : groups) {
      how.group = group;
      for (const bool in_bfloat16 : {false, true}) {
        how.in_bfloat16 = in_bfloat16;
        out.push_back(how);
      }
    }
  }
  return out;
}

}  // namespace

std::string name_of(const Checkpoint& checkpoint, std::string_view in_memory) {
  return checkpoint.files.empty() ? std::string(in_memory) : checkpoint.files.front();
}

OriginSearch::OriginSearch(const Checkpoint& checkpoint, std::vector<std::uint32_t> head_dims)
    : checkpoint_(checkpoint),
      tensors_(tensors_of(checkpoint.tensors)),
      head_dims_(std::move(head_dims)),
      norms_(find_norms(checkpoint.tensors)),
      budget_(name_of(checkpoint, kInMemory), size_of(checkpoint)) {}

std::vector<OriginSearch::Wanted> OriginSearch::wanted(const WeightPayload& payload) {
  if (!payload.layout) return {};
  Wanted out{.type = payload.layout->scalar_type, .quantizations = {}};
  const std::uint64_t elements = payload.data.size() / item_size(out.type);
  if (elements == 0) return {};
  const std::vector<std::uint64_t> sizes = sizes_of(payload);
  out.count = payload.is_of_nibbles ? 2 * elements : elements;
  out.sizes = long_sizes(sizes);
  const bool is_of_bytes = out.type == ScalarType::kInt8 || out.type == ScalarType::kUInt8;
  // One integer, such as a number of batches, is no weight.
  if (!is_of_bytes && !is_floating_point(out.type) && out.count == 1) return {};
  if (!is_of_bytes) return {out};
  if (payload.integers) {
    const ScaledIntegers& integers = *payload.integers;
    const std::uint32_t channel = integers.channel_dim;
    out.channels_are_outermost = channel == 0;
    std::uint64_t group = integers.group;
    if (!integers.has_channels) group = out.count;
    if (group == 0)
      group = channel < sizes.size() && sizes[channel] != 0 ? out.count / sizes[channel] : out.count;
    out.quantizations = payload.is_of_nibbles ? with_groups({kNibbles}, {group})
                                              : with_groups({kBytes, kObservedBytes}, {group});
    return {out};
  }
  const std::uint64_t row = sizes.empty() || sizes[0] == 0 ? out.count : out.count / sizes[0];
  out.quantizations = with_groups({kBytes, kObservedBytes}, usual_groups(row, out.count));
  // ExecuTorch's embeddings of 4 bits are bytes in a program, the first of two integers in the high half.
  Wanted nibbles = out;
  nibbles.count = 2 * out.count;
  Quantization high_first = kNibbles;
  high_first.high_is_first = true;
  nibbles.quantizations = with_groups({high_first}, usual_groups(2 * row, nibbles.count));
  return {out, nibbles};
}

std::vector<OriginSearch::Steps> OriginSearch::orders(const std::vector<std::int32_t>& sizes,
                                                      const Wanted& wanted) const {
  std::vector<Steps> out;
  if (wanted.kind == Kind::kInOrder || wanted.kind == Kind::kWithNorm) out.emplace_back();
  if (wanted.kind == Kind::kPermuted || wanted.kind == Kind::kWithNorm) {
    for (PermuteStep& order : permutations(sizes, wanted.sizes)) out.push_back({std::move(order)});
    if (auto groups = transposed_groups(sizes, wanted.sizes)) out.push_back({*std::move(groups)});
  }
  if (wanted.kind == Kind::kRope && !sizes.empty() && sizes.size() <= 2) {
    for (const std::uint32_t head : head_dims_) {
      if (sizes[0] > 0 && static_cast<std::uint32_t>(sizes[0]) % head == 0) {
        out.push_back({InterleaveRopeStep{head}});
      }
    }
  }
  return out;
}

std::vector<OriginSearch::Steps> OriginSearch::norm_steps(std::size_t tensor) const {
  std::vector<Steps> out;
  const CheckpointTensor& own = checkpoint_.tensors[tensor];
  if (own.layout->scalar_type != ScalarType::kFloat32) return out;
  const auto& sizes = own.layout->sizes;
  for (NormStep norm : norms_) {
    const auto channels = static_cast<std::int64_t>(count_of(checkpoint_.tensors[norm.mean]));
    if (sizes.size() == 1 && sizes[0] == channels) {
      norm.has_bias = tensor != norm.mean;
      for (const auto part : {NormStep::Part::kBias, NormStep::Part::kLinearBias}) {
        norm.part = part;
        out.push_back({norm});
      }
    }
    const bool is_own_weight = tensor == norm.weight;
    if (is_own_weight || tensor == norm.bias) {
      norm.part = is_own_weight ? NormStep::Part::kAsConvolution : NormStep::Part::kBiasOfConvolution;
      out.push_back({norm});
    }
    norm.part = NormStep::Part::kWeights;
    for (std::uint8_t axis = 0; sizes.size() > 1 && axis < 2; ++axis) {
      norm.axis = axis;
      if (sizes[axis] == channels) out.push_back({norm});
    }
  }
  return out;
}

std::vector<OriginSearch::Steps> OriginSearch::ways(std::size_t tensor, const Wanted& wanted) const {
  std::vector<Steps> out;
  const TensorLayout& layout = *checkpoint_.tensors[tensor].layout;
  const ScalarType type = layout.scalar_type;
  const bool is_float = is_floating_point(type);
  const bool quantizes = is_float && !wanted.quantizations.empty();
  if (!quantizes && type != wanted.type && !(is_float && is_floating_point(wanted.type))) return out;
  const std::vector<Steps> before =
      wanted.kind == Kind::kWithNorm ? norm_steps(tensor) : std::vector<Steps>(1);
  if (before.empty()) return out;
  const auto append = [](Steps& steps, const Steps& more) {
    steps.insert(steps.end(), more.begin(), more.end());
  };
  for (const Steps& order : orders(layout.sizes, wanted)) {
    for (const Steps& first : before) {
      if (!quantizes) {
        Steps steps = first;
        if (type != wanted.type) steps.emplace_back(CastStep{wanted.type});
        append(steps, order);
        out.push_back(std::move(steps));
        continue;
      }
      for (const Quantization& how : wanted.quantizations) {
        if (how.in_bfloat16 && type != ScalarType::kBFloat16) continue;
        Steps steps = first;
        if (type != ScalarType::kFloat32) steps.emplace_back(CastStep{ScalarType::kFloat32});
        // A scale is for elements that follow one another when they are quantized.
        if (!wanted.channels_are_outermost) steps.emplace_back(QuantizeStep{how});
        append(steps, order);
        if (wanted.channels_are_outermost) steps.emplace_back(QuantizeStep{how});
        out.push_back(std::move(steps));
      }
    }
  }
  return out;
}

Result<const OriginSearch::Known*> OriginSearch::known(const Wanted& wanted) {
  const auto [there, is_new] = known_.try_emplace(wanted);
  Known& out = there->second;
  if (!is_new) return &out;
  for (std::size_t i = 0; i < checkpoint_.tensors.size(); ++i) {
    const CheckpointTensor& tensor = checkpoint_.tensors[i];
    if (!is_plain(tensor) || tensor.data.size() == 0) continue;
    const std::uint64_t count = count_of(tensor);
    if (wanted.count != 0 ? count != wanted.count : count % wanted.row != 0) continue;
    for (Steps& steps : ways(i, wanted)) {
      ETSTREAM_TRY(count_try());
      TensorSteps way{i, std::move(steps)};
      const auto made = take_steps(tensors_, way);
      // A tensor that allows no such steps gives no payload.
      const auto bytes = made ? probe(*made, wanted.count != 0) : made.error();
      if (bytes) {
        out.emplace(*bytes, std::move(way));
      } else if (bytes.error().code != ErrorCode::kInvalidArgument) {
        return bytes.error();
      }
    }
  }
  return &out;
}

Result<void> OriginSearch::count_try() {
  const std::uint64_t most = kFreeTries + kMostTriesOfTensor * checkpoint_.tensors.size();
  if (tries_++ < most) return {};
  return error_in(ErrorCode::kTooLarge, name_of(checkpoint_, kInMemory),
                  "expected at most {} ways from its tensors to payloads of their sizes, found more", most);
}

Result<bool> OriginSearch::gives_scales(const WeightSteps& steps, const WeightPayload& scales) const {
  if (!scales.layout || scales.is_opaque) return false;
  const auto own = scales_of(steps, scales.layout->scalar_type);
  if (!own) return false;
  ETSTREAM_ASSIGN(const ByteSource made, take_steps(tensors_, *own));
  return same_bytes(made, scales.data);
}

/// Returns whether `steps` give these bytes and, unless null, these scales.
Result<bool> OriginSearch::gives(const WeightSteps& steps, const ByteSource& data,
                                 const WeightPayload* scales) const {
  ETSTREAM_ASSIGN(const ByteSource made, take_steps(tensors_, steps));
  ETSTREAM_ASSIGN(const bool same, same_bytes(made, data));
  return same && scales != nullptr ? gives_scales(steps, *scales) : same;
}

Result<std::vector<WeightSteps>> OriginSearch::find_whole(const WeightPayload& payload,
                                                          const WeightPayload* scales, const Wanted& wanted) {
  ETSTREAM_ASSIGN(const Known* known, this->known(wanted));
  ETSTREAM_ASSIGN(const std::string bytes, probe(payload.data, true));
  std::vector<WeightSteps> out;
  const auto [begin, end] = known->equal_range(bytes);
  for (auto each = begin; each != end; ++each) {
    // Others that begin like it may be as long.
    if (each != begin) ETSTREAM_TRY(budget_.spend(payload.data.size()));
    WeightSteps way = {each->second};
    ETSTREAM_ASSIGN(const bool found, gives(way, payload.data, scales));
    if (found) out.push_back(std::move(way));
  }
  return out;
}

Result<std::vector<WeightSteps>> OriginSearch::find_joined(const WeightPayload& payload,
                                                           const WeightPayload* scales, Wanted wanted) {
  const std::vector<std::uint64_t> sizes = sizes_of(payload);
  WeightSteps out;
  // Parts have whole rows.
  if (sizes.empty() || sizes[0] < 2 || wanted.count % sizes[0] != 0) return std::vector<WeightSteps>();
  wanted.row = wanted.count / sizes[0];
  wanted.count = 0;
  wanted.sizes.clear();
  // A group that is no part of a row would reach across tensors.
  const bool is_quantized = !wanted.quantizations.empty();
  std::erase_if(wanted.quantizations, [&](const Quantization& how) { return wanted.row % how.group != 0; });
  if (is_quantized && wanted.quantizations.empty()) return std::vector<WeightSteps>();
  for (std::uint64_t at = 0; at < payload.data.size();) {
    ETSTREAM_ASSIGN(const ByteSource rest, payload.data.slice(at, payload.data.size() - at));
    ETSTREAM_ASSIGN(const std::string bytes, probe(rest, false));
    const std::size_t before = out.size();
    for (const Kind kind : {Kind::kInOrder, Kind::kRope}) {
      wanted.kind = kind;
      ETSTREAM_ASSIGN(const Known* known, this->known(wanted));
      const auto [begin, end] = known->equal_range(bytes);
      for (auto each = begin; each != end && out.size() == before; ++each) {
        if (each != begin) ETSTREAM_TRY(count_try());
        ETSTREAM_ASSIGN(const ByteSource made, take_steps(tensors_, each->second));
        const auto part = rest.slice(0, made.size());
        if (!part) continue;
        ETSTREAM_ASSIGN(const bool same, same_bytes(made, *part));
        if (!same) continue;
        out.push_back(each->second);
        at += made.size();
      }
    }
    if (out.size() == before || out.size() > kMostParts) return std::vector<WeightSteps>();
  }
  ETSTREAM_ASSIGN(const bool found, scales == nullptr ? Result<bool>(true) : gives_scales(out, *scales));
  return found ? std::vector<WeightSteps>{std::move(out)} : std::vector<WeightSteps>();
}

Result<std::vector<WeightSteps>> OriginSearch::find(const WeightPayload& payload,
                                                    const WeightPayload* scales) {
  std::vector<WeightSteps> out;
  const std::vector<Wanted> all = wanted(payload);
  for (const Kind kind : {Kind::kInOrder, Kind::kPermuted, Kind::kRope, Kind::kWithNorm}) {
    for (Wanted wanted : all) {
      wanted.kind = kind;
      ETSTREAM_ASSIGN(out, find_whole(payload, scales, wanted));
      if (!out.empty()) return out;
    }
  }
  for (const Wanted& wanted : all) {
    ETSTREAM_ASSIGN(out, find_joined(payload, scales, wanted));
    if (!out.empty()) return out;
  }
  return out;
}

std::vector<TensorSteps> OriginSearch::biases(std::uint64_t channels) const {
  std::vector<TensorSteps> out;
  for (std::size_t i = 0; i < checkpoint_.tensors.size(); ++i) {
    const CheckpointTensor& tensor = checkpoint_.tensors[i];
    if (!is_plain(tensor) || !is_floating_point(tensor.layout->scalar_type)) continue;
    if (tensor.layout->sizes.size() != 1 || count_of(tensor) != channels) continue;
    TensorSteps own{i, {}};
    if (tensor.layout->scalar_type != ScalarType::kFloat32)
      own.steps.emplace_back(CastStep{ScalarType::kFloat32});
    out.push_back(std::move(own));
    for (Steps& steps : norm_steps(i)) out.push_back({i, std::move(steps)});
  }
  return out;
}

}  // namespace etstream
