// SPDX-License-Identifier: BSD-3-Clause
#include "files/origins/origin_search.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/base/hashes.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/same_bytes.h"
#include "formats/tensor/converted_floats.h"

namespace etstream {
namespace {

constexpr std::uint64_t kProbe = 64;      // bytes
constexpr std::size_t kMostPermuted = 4;  // dimensions of more than one element
constexpr std::size_t kMostParts = 4096;  // that are joined
// The most ways that are tried: so many for each tensor, and some more.
constexpr std::uint64_t kMostTriesOfTensor = 128;
constexpr std::uint64_t kFreeTries = std::uint64_t{1} << 18;

constexpr std::string_view kInMemory = "the checkpoint";

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
    const auto has_channels = [&, mean = mean](std::size_t place) {
      return count_of(tensors[place]) == count_of(tensors[mean]);
    };
    if (count_of(tensors[mean]) == 0 || !has_channels(variance->second) || !has_channels(weight->second) ||
        !has_channels(bias->second)) {
      continue;
    }
    NormStep norm{.mean = mean, .variance = variance->second, .weight = weight->second, .bias = bias->second};
    for (const float epsilon : kEpsilons) {
      norm.epsilon = epsilon;
      out.push_back(norm);
    }
  }
  return out;
}

/// Returns a hash of up to kProbe bytes from the beginning and, of a whole payload, from the middle.
Result<std::uint64_t> probe(const ByteSource& source, bool is_whole) {
  const std::uint64_t size = std::min(kProbe, source.size());
  std::array<std::byte, 2 * kProbe> all{};
  const auto bytes = std::span(all).first(static_cast<std::size_t>(is_whole ? 2 * size : size));
  ETSTREAM_TRY(source.read_at(0, bytes.first(static_cast<std::size_t>(size))));
  if (is_whole) {
    ETSTREAM_TRY(source.read_at(std::min(source.size() / 2, source.size() - size),
                                bytes.subspan(static_cast<std::size_t>(size))));
  }
  ContentHasher hasher;
  hasher.update(bytes);
  return std::bit_cast<std::array<std::uint64_t, 2>>(hasher.hash())[0];
}

Result<float> first_float(const ByteSource& floats) {
  float out = 0;
  ETSTREAM_TRY(floats.read_at(0, std::as_writable_bytes(std::span(&out, 1))));
  return out;
}

/// Returns the least and the largest number that the first element of `payload` may have been before it was
/// cast or quantized.
Result<std::pair<float, float>> range_of_first(const WeightPayload& payload, const WeightPayload* scales) {
  constexpr float kMost = std::numeric_limits<float>::infinity();
  const auto first_of = [](const WeightPayload& floats) -> Result<float> {
    const ScalarType type = floats.layout->scalar_type;
    ETSTREAM_ASSIGN(const ByteSource first, floats.data.slice(0, item_size(type)));
    ETSTREAM_ASSIGN(const ByteSource converted, convert_floats(first, type, ScalarType::kFloat32));
    return first_float(converted);
  };
  if (is_floating_point(payload.layout->scalar_type)) {
    ETSTREAM_ASSIGN(const float number, first_of(payload));
    const bool is_exact = payload.layout->scalar_type == ScalarType::kFloat32;
    const float margin = is_exact ? 0 : std::abs(number) / 64 + 0x1p-14F;
    return std::pair(number - margin, number + margin);
  }
  const bool is_scaled = scales != nullptr && scales->layout &&
                         is_floating_point(scales->layout->scalar_type) && scales->data.size() != 0;
  if (!is_scaled) return std::pair(-kMost, kMost);
  ETSTREAM_ASSIGN(const float scale, first_of(*scales));
  std::array<std::byte, 1> byte{};
  ETSTREAM_TRY(payload.data.read_at(0, byte));
  const auto bits = std::to_integer<std::uint8_t>(byte[0]);
  const int integer = payload.is_of_nibbles ? (bits & 15) - 8 : std::bit_cast<std::int8_t>(bits);
  // A bfloat16 scale is rounded, and the last integer stands for what is half a step beyond it.
  const float margin = scale * (1 + static_cast<float>(std::abs(integer)) / 64);
  return std::pair(static_cast<float>(integer) * scale - margin,
                   static_cast<float>(integer) * scale + margin);
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
      budget_(name_of(checkpoint, kInMemory), size_of(checkpoint)) {
  for (std::uint32_t i = 0; i < norms_.size(); ++i) {
    norms_of_channels_.emplace(count_of(checkpoint.tensors[norms_[i].mean]), i);
    norms_of_tensors_.emplace(norms_[i].weight, i);
    norms_of_tensors_.emplace(norms_[i].bias, i);
  }
}

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
                                                      const Wanted& wanted, bool has_norm) const {
  std::vector<Steps> out(1);
  for (PermuteStep& order : permutations(sizes, wanted.sizes)) out.push_back({std::move(order)});
  if (auto groups = transposed_groups(sizes, wanted.sizes)) out.push_back({*std::move(groups)});
  if (!has_norm && !sizes.empty() && sizes.size() <= 2) {
    for (const std::uint32_t head : head_dims_) {
      if (sizes[0] > 0 && static_cast<std::uint32_t>(sizes[0]) % head == 0) {
        out.push_back({InterleaveRopeStep{head}});
      }
    }
  }
  return out;
}

std::vector<OriginSearch::Steps> OriginSearch::ways(std::size_t tensor, const Wanted& wanted,
                                                    const NormStep* norm) const {
  std::vector<Steps> out;
  const TensorLayout& layout = *checkpoint_.tensors[tensor].layout;
  const ScalarType type = layout.scalar_type;
  const bool is_float = is_floating_point(type);
  const bool quantizes = is_float && !wanted.quantizations.empty();
  if (!quantizes && type != wanted.type && !(is_float && is_floating_point(wanted.type))) return out;
  Steps first;
  if (norm != nullptr) first.emplace_back(*norm);
  const auto append = [](Steps& steps, const Steps& more) {
    steps.insert(steps.end(), more.begin(), more.end());
  };
  for (const Steps& order : orders(layout.sizes, wanted, norm != nullptr)) {
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
  return out;
}

Result<const OriginSearch::Known*> OriginSearch::known(const Wanted& wanted) {
  const auto [there, is_new] = known_.try_emplace(wanted);
  Known& out = there->second;
  if (!is_new) return &out;
  for (std::uint32_t i = 0; i < checkpoint_.tensors.size(); ++i) {
    const CheckpointTensor& tensor = checkpoint_.tensors[i];
    if (!is_plain(tensor) || tensor.data.size() == 0) continue;
    const std::uint64_t count = count_of(tensor);
    if (wanted.count != 0 ? count != wanted.count : count % wanted.row != 0) continue;
    std::uint32_t way = 0;
    for (Steps& steps : ways(i, wanted)) {
      ETSTREAM_TRY(count_try());
      const auto made = take_steps(tensors_, TensorSteps{i, std::move(steps)});
      // A tensor that allows no such steps gives no payload.
      const auto bytes = made ? probe(*made, wanted.count != 0) : made.error();
      if (bytes) {
        out.ways.push_back({*bytes, i, way});
        out.lengths.insert(std::min(made->size(), kProbe));
      } else if (bytes.error().code != ErrorCode::kInvalidArgument) {
        return bytes.error();
      }
      ++way;
    }
  }
  std::ranges::stable_sort(out.ways, {}, &KnownWay::probe);
  return &out;
}

Result<void> OriginSearch::add_known_norms(std::uint32_t tensor, std::vector<KnownNorm>& out) {
  const CheckpointTensor& own = checkpoint_.tensors[tensor];
  ETSTREAM_ASSIGN(const float first, first_float(own.data));
  const auto add = [&](std::uint32_t norm, NormStep::Part part, float number,
                       std::uint8_t axis = 0) -> Result<void> {
    ETSTREAM_TRY(count_try());
    if (!std::isnan(number)) out.push_back({number, tensor, norm, part, axis});
    return {};
  };
  const auto& sizes = own.layout->sizes;
  for (std::uint8_t axis = 0; axis < std::min<std::size_t>(sizes.size(), 2); ++axis) {
    const auto [begin, end] = norms_of_channels_.equal_range(static_cast<std::uint64_t>(sizes[axis]));
    for (auto each = begin; each != end; ++each) {
      const std::uint32_t norm = each->second;
      const BatchNorm& channel = first_norms_[norm];
      if (sizes.size() > 1) {
        ETSTREAM_TRY(add(norm, NormStep::Part::kWeights, first * folded_factors(channel)[0], axis));
        continue;
      }
      const auto bias = tensor == norms_[norm].mean ? std::span<const float>() : std::span(&first, 1);
      ETSTREAM_TRY(add(norm, NormStep::Part::kBias, folded_bias(channel, bias, false)[0]));
      ETSTREAM_TRY(add(norm, NormStep::Part::kLinearBias, folded_bias(channel, bias, true)[0]));
    }
  }
  const auto [begin, end] = norms_of_tensors_.equal_range(tensor);
  for (auto each = begin; each != end; ++each) {
    const BatchNorm& channel = first_norms_[each->second];
    if (tensor == norms_[each->second].weight) {
      ETSTREAM_TRY(add(each->second, NormStep::Part::kAsConvolution, weights_of(channel)[0]));
    } else {
      ETSTREAM_TRY(add(each->second, NormStep::Part::kBiasOfConvolution, bias_of(channel)[0]));
    }
  }
  return {};
}

Result<const std::vector<OriginSearch::KnownNorm>*> OriginSearch::known_norms(std::uint64_t count) {
  for (std::size_t i = first_norms_.size(); i < norms_.size(); ++i) {
    BatchNorm& norm = first_norms_.emplace_back();
    norm.epsilon = norms_[i].epsilon;
    for (const auto& [numbers, tensor] : {std::pair(&norm.mean, norms_[i].mean),
                                          {&norm.variance, norms_[i].variance},
                                          {&norm.weight, norms_[i].weight},
                                          {&norm.bias, norms_[i].bias}}) {
      ETSTREAM_ASSIGN(numbers->emplace_back(), first_float(checkpoint_.tensors[tensor].data));
    }
  }
  const auto [there, is_new] = known_norms_.try_emplace(count);
  std::vector<KnownNorm>& out = there->second;
  for (std::uint32_t i = 0; is_new && i < checkpoint_.tensors.size(); ++i) {
    const CheckpointTensor& tensor = checkpoint_.tensors[i];
    if (!is_plain(tensor) || tensor.layout->scalar_type != ScalarType::kFloat32) continue;
    if (count_of(tensor) == count) ETSTREAM_TRY(add_known_norms(i, out));
  }
  if (is_new) std::ranges::stable_sort(out, {}, &KnownNorm::first);
  return &out;
}

std::uint64_t OriginSearch::most_tries() const noexcept {
  return kFreeTries + kMostTriesOfTensor * checkpoint_.tensors.size();
}

Result<void> OriginSearch::count_try() {
  if (tries_++ < most_tries()) return {};
  return error_in(ErrorCode::kTooLarge, name_of(checkpoint_, kInMemory),
                  "expected at most {} ways from its tensors to payloads of their sizes, found more",
                  most_tries());
}

Result<std::optional<WeightPiece>> OriginSearch::scales_in(const WeightPayload& scales,
                                                           const WeightPayload& integers,
                                                           const WeightPiece& piece) const {
  std::optional<WeightPiece> none;
  if (!scales.layout || scales.is_opaque) return none;
  auto own = scales_of(piece, scales.layout->scalar_type);
  if (!own) return none;
  ETSTREAM_ASSIGN(const ByteSource made, take_steps(tensors_, own->steps));
  own->size = made.size();
  const auto place = scales.data.slice(own->at, own->size);
  const bool ends = place && own->at + own->size == scales.data.size();
  if (!place || ends != (piece.at + piece.size == integers.data.size())) return none;
  ETSTREAM_ASSIGN(const bool same, same_bytes(made, *place));
  return same ? std::move(own) : none;
}

Result<std::uint64_t> OriginSearch::add_if_same(const WeightPayload& payload, const WeightPayload* scales,
                                                std::uint64_t at, TensorSteps steps,
                                                std::vector<WeightPiece>& out) const {
  const auto made = take_steps(tensors_, steps);
  const auto place = made ? payload.data.slice(at, made->size()) : made.error();
  const auto different = place ? first_difference(*made, *place) : place.error();
  if (!different && different.error().code != ErrorCode::kInvalidArgument) return different.error();
  if (!different) return std::uint64_t{0};
  if (*different) return **different;
  WeightPiece piece{at, made->size(), std::move(steps)};
  if (scales != nullptr) {
    ETSTREAM_ASSIGN(const auto own, scales_in(*scales, payload, piece));
    if (!own) return piece.size;
  }
  out.push_back(std::move(piece));
  return out.back().size;
}

Result<void> OriginSearch::find_whole(const WeightPayload& payload, const WeightPayload* scales,
                                      const Wanted& wanted, std::vector<WeightPiece>& out) {
  ETSTREAM_ASSIGN(const auto* const known, this->known(wanted));
  ETSTREAM_ASSIGN(const std::uint64_t bytes, probe(payload.data, true));
  const auto same = known->with_probe(bytes);
  for (const KnownWay& each : same) {
    TensorSteps way{each.tensor, std::move(ways(each.tensor, wanted)[each.way])};
    ETSTREAM_ASSIGN(const std::uint64_t compared, add_if_same(payload, scales, 0, std::move(way), out));
    // Others that begin like it may be as long.
    if (&each != &same.front()) ETSTREAM_TRY(budget_.spend(compared));
  }
  return {};
}

Result<void> OriginSearch::find_with_norm(const WeightPayload& payload, const WeightPayload* scales,
                                          const Wanted& wanted, std::vector<WeightPiece>& out) {
  if (norms_.empty()) return {};
  ETSTREAM_ASSIGN(const auto* const known, known_norms(wanted.count));
  ETSTREAM_ASSIGN(const auto range, range_of_first(payload, scales));
  ETSTREAM_ASSIGN(const std::uint64_t bytes, probe(payload.data, true));
  auto each = std::ranges::lower_bound(*known, range.first, {}, &KnownNorm::first);
  for (; each != known->end() && each->first <= range.second; ++each) {
    NormStep norm = norms_[each->norm];
    norm.part = each->part;
    norm.axis = each->axis;
    norm.has_bias = each->tensor != norm.mean;
    for (Steps& steps : ways(each->tensor, wanted, &norm)) {
      ETSTREAM_TRY(count_try());
      TensorSteps way{each->tensor, std::move(steps)};
      const auto made = take_steps(tensors_, way);
      const auto found = made ? probe(*made, true) : made.error();
      if (!found && found.error().code != ErrorCode::kInvalidArgument) return found.error();
      if (!found || *found != bytes) continue;
      const bool is_first = out.empty();
      ETSTREAM_ASSIGN(const std::uint64_t compared, add_if_same(payload, scales, 0, std::move(way), out));
      if (!is_first) ETSTREAM_TRY(budget_.spend(compared));
    }
  }
  return {};
}

Result<void> OriginSearch::find_joined(const WeightPayload& payload, const WeightPayload* scales,
                                       Wanted wanted, std::vector<WeightPiece>& out) {
  const std::vector<std::uint64_t> sizes = sizes_of(payload);
  // Parts have whole rows.
  if (sizes.empty() || sizes[0] < 2 || wanted.count % sizes[0] != 0) return {};
  wanted.row = wanted.count / sizes[0];
  wanted.count = 0;
  wanted.sizes.clear();
  // A group that is no part of a row would reach across tensors.
  const bool is_quantized = !wanted.quantizations.empty();
  std::erase_if(wanted.quantizations, [&](const Quantization& how) { return wanted.row % how.group != 0; });
  if (is_quantized && wanted.quantizations.empty()) return {};
  // Tensors that give the payload as a whole say how it was quantized.
  if (!out.empty()) {
    std::erase_if(wanted.quantizations, [&](const Quantization& how) {
      return std::ranges::none_of(out, [&](const WeightPiece& piece) {
        return std::ranges::any_of(piece.steps.steps, [&](const WeightStep& step) {
          const auto* const quantize = std::get_if<QuantizeStep>(&step);
          return quantize != nullptr && quantize->how == how;
        });
      });
    });
  }
  ETSTREAM_ASSIGN(const auto* const known, this->known(wanted));
  const std::uint64_t size = payload.data.size();
  std::uint64_t left = FileBudget::most_payloads(size);  // of bytes to compare
  std::vector<WeightPiece> joined;
  bool are_kept = true;
  std::set<std::size_t> tensors;
  std::map<std::uint64_t, std::size_t> parts = {{0, 0}};  // the fewest to where a piece ends
  for (auto place = parts.begin(); place != parts.end() && place->first != size; place = parts.erase(place)) {
    const auto [at, before] = *place;
    std::vector<KnownWay> same;
    for (const std::uint64_t length : known->lengths) {
      if (length > size - at) break;
      ETSTREAM_ASSIGN(const ByteSource begin, payload.data.slice(at, length));
      ETSTREAM_ASSIGN(const std::uint64_t bytes, probe(begin, false));
      std::ranges::copy(known->with_probe(bytes), std::back_inserter(same));
    }
    for (const KnownWay& each : same) {
      TensorSteps way{each.tensor, std::move(ways(each.tensor, wanted)[each.way])};
      const std::size_t known_before = joined.size();
      ETSTREAM_TRY(add_if_same(payload, scales, at, std::move(way), joined));
      const bool is_part = joined.size() != known_before;
      // Parts that are not kept count as bytes to compare.
      if (&each != &same.front() && (are_kept || !is_part)) ETSTREAM_TRY(count_try());
      if (!is_part) continue;
      const WeightPiece& piece = joined.back();
      if (piece.size == size) {
        joined.pop_back();  // as it is no part
        continue;
      }
      tensors.insert(each.tensor);
      const auto [there, is_new] = parts.try_emplace(at + piece.size, before + 1);
      there->second = std::min(there->second, before + 1);
      if (piece.size > left) {
        too_many_ = {std::move(tensors), true};
        return {};
      }
      left -= piece.size;
      are_kept &= joined.size() <= kMostParts;
      if (!are_kept) joined.pop_back();
    }
  }
  // A tensor over and over is what an export joins only if nothing else gives the payload.
  const auto least = parts.find(size);
  if (least == parts.end() || (!out.empty() && tensors.size() < least->second)) return {};
  if (are_kept) {
    std::ranges::move(joined, std::back_inserter(out));
  } else {
    too_many_.tensors.merge(tensors);
  }
  return {};
}

Result<std::vector<WeightPiece>> OriginSearch::find(const WeightPayload& payload, const WeightPayload* scales,
                                                    bool with_norms) {
  too_many_ = {};
  std::vector<WeightPiece> out;
  const std::vector<Wanted> all = wanted(payload);
  for (const Wanted& wanted : all) {
    ETSTREAM_TRY(find_whole(payload, scales, wanted, out));
    if (with_norms) ETSTREAM_TRY(find_with_norm(payload, scales, wanted, out));
  }
  for (const Wanted& wanted : all) ETSTREAM_TRY(find_joined(payload, scales, wanted, out));
  keep_ways(out, payload.data.size());
  return out;
}

std::vector<TensorSteps> OriginSearch::biases(const WeightPayload& weights,
                                              const std::vector<WeightPiece>& ways,
                                              std::uint64_t channels) const {
  const bool is_linear = weights.layout && weights.layout->sizes.size() == 2;
  bool may_have_none = ways.empty();
  std::map<std::tuple<std::size_t, float, NormStep::Part>, NormStep> norms;
  for (const WeightPiece& way : ways) {
    const NormStep* const of_weights = norm_in(way.steps);
    may_have_none |= of_weights == nullptr;
    if (of_weights == nullptr) continue;
    NormStep norm = *of_weights;
    norm.axis = 0;
    norm.part = norm.part == NormStep::Part::kAsConvolution ? NormStep::Part::kBiasOfConvolution
                : is_linear                                 ? NormStep::Part::kLinearBias
                                                            : NormStep::Part::kBias;
    norms.emplace(std::tuple(norm.mean, norm.epsilon, norm.part), norm);
  }
  std::vector<TensorSteps> out;
  for (std::size_t i = 0; i < checkpoint_.tensors.size(); ++i) {
    const CheckpointTensor& tensor = checkpoint_.tensors[i];
    if (!is_plain(tensor) || !is_floating_point(tensor.layout->scalar_type)) continue;
    if (tensor.layout->sizes.size() != 1 || count_of(tensor) != channels) continue;
    const bool is_float32 = tensor.layout->scalar_type == ScalarType::kFloat32;
    if (may_have_none) out.push_back({i, is_float32 ? Steps() : Steps{CastStep{ScalarType::kFloat32}}});
    for (auto& [key, norm] : norms) {
      if (!is_float32) continue;
      if (norm.part == NormStep::Part::kBiasOfConvolution && i != norm.bias) continue;
      norm.has_bias = i != norm.mean;
      out.push_back({i, {norm}});
    }
  }
  return out;
}

}  // namespace etstream
