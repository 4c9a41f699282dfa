// SPDX-License-Identifier: BSD-3-Clause
#include "files/origins/origin_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/try.h"
#include "core/layout/same_bytes.h"
#include "formats/tensor/converted_floats.h"

namespace etstream {
namespace {

constexpr std::uint64_t kProbe = 64;      // bytes
constexpr std::size_t kMostPermuted = 4;  // dimensions of more than one element
constexpr std::size_t kMostParts = 4096;  // that are joined
constexpr float kLeastOfTorchao = std::numeric_limits<float>::epsilon();
constexpr float kLeastOfObservers = 1.0F / 4096;

/// The quantizations that have the name symmetric in torchao and in pt2e's XNNPACKQuantizer.
constexpr std::array kOfNibbles = {Quantization{0, -8, 7, kLeastOfTorchao}};
constexpr std::array kOfBytes = {Quantization{0, -128, 127, kLeastOfTorchao},
                                 Quantization{0, -127, 127, kLeastOfObservers}};

/// Groups of elements that quantizers use, besides rows and whole tensors.
constexpr std::array<std::uint64_t, 5> kGroups = {32, 64, 128, 256, 16};

std::uint64_t count_of(const CheckpointTensor& tensor) {
  return tensor.data.size() / item_size(tensor.layout->scalar_type);
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

/// Returns the orders of the dimensions of more than one element, but for the one that they have. The others
/// stay where they are.
std::vector<std::vector<std::uint8_t>> permutations(const std::vector<std::int32_t>& sizes) {
  std::vector<std::uint8_t> long_ones;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1) long_ones.push_back(static_cast<std::uint8_t>(i));
  }
  std::vector<std::vector<std::uint8_t>> out;
  if (long_ones.size() > kMostPermuted) return out;
  std::vector<std::uint8_t> order = long_ones;
  while (std::ranges::next_permutation(order).found) {
    std::vector<std::uint8_t> all(sizes.size());
    std::iota(all.begin(), all.end(), std::uint8_t{0});
    for (std::size_t i = 0; i < order.size(); ++i) all[long_ones[i]] = order[i];
    out.push_back(std::move(all));
  }
  return out;
}

}  // namespace

std::optional<OriginSearch::Wanted> OriginSearch::wanted(const WeightPayload& payload) {
  if (!payload.layout) return std::nullopt;
  Wanted out{.type = payload.layout->scalar_type, .groups = {}};
  out.is_of_nibbles = payload.is_of_nibbles;
  out.count = payload.data.size() / item_size(out.type) * (out.is_of_nibbles ? 2 : 1);
  if (payload.data.size() == 0) return std::nullopt;
  const bool are_integers = !is_floating_point(out.type) && item_size(out.type) == 1;
  out.is_quantized = are_integers && out.type != ScalarType::kBool;
  if (!out.is_quantized) return out;
  if (payload.integers) {
    const ScaledIntegers& integers = *payload.integers;
    const std::uint32_t channel = integers.channel_dim;
    out.channels_are_outermost = channel == 0;
    if (!integers.has_channels) {
      out.groups = {out.count};
    } else if (integers.group != 0) {
      out.groups = {integers.group};
    } else if (channel < integers.sizes.size() && integers.sizes[channel] != 0) {
      out.groups = {out.count / integers.sizes[channel]};
    }
    return out;
  }
  const auto& sizes = payload.layout->sizes;
  const std::uint64_t rows = sizes.empty() ? 1 : static_cast<std::uint64_t>(std::max(sizes[0], 1));
  const std::uint64_t row = out.count / rows;
  out.groups = {row};
  for (const std::uint64_t group : kGroups) {
    if (group < row && row % group == 0) out.groups.push_back(group);
  }
  if (rows != 1) out.groups.push_back(out.count);
  return out;
}

std::vector<std::vector<WeightStep>> OriginSearch::ways(const CheckpointTensor& tensor,
                                                        const Wanted& wanted) const {
  std::vector<std::vector<WeightStep>> out;
  const ScalarType type = tensor.layout->scalar_type;
  const auto& sizes = tensor.layout->sizes;
  if (wanted.is_quantized
          ? !is_floating_point(type) && type != wanted.type
          : type != wanted.type && !(is_floating_point(type) && is_floating_point(wanted.type))) {
    return out;
  }
  std::vector<std::vector<WeightStep>> orders;
  if (wanted.kind == Kind::kPermuted) {
    for (auto& order : permutations(sizes)) orders.push_back({PermuteStep{std::move(order)}});
  } else if (wanted.kind == Kind::kRope) {
    if (sizes.empty() || sizes.size() > 2) return out;
    for (const std::uint32_t head : head_dims_) {
      if (sizes[0] > 0 && static_cast<std::uint32_t>(sizes[0]) % head == 0) {
        orders.push_back({InterleaveRopeStep{head}});
      }
    }
  } else {
    orders.emplace_back();
  }
  const std::span<const Quantization> quantizations = wanted.is_of_nibbles
                                                          ? std::span<const Quantization>(kOfNibbles)
                                                          : std::span<const Quantization>(kOfBytes);
  for (std::vector<WeightStep>& order : orders) {
    if (!wanted.is_quantized || !is_floating_point(type)) {
      if (type != wanted.type) order.insert(order.begin(), CastStep{wanted.type});
      out.push_back(std::move(order));
      continue;
    }
    for (Quantization how : quantizations) {
      for (const std::uint64_t group : wanted.groups) {
        how.group = group;
        std::vector<WeightStep> steps;
        if (type != ScalarType::kFloat32) steps.emplace_back(CastStep{ScalarType::kFloat32});
        // A scale is for elements that follow one another when they are quantized.
        if (!wanted.channels_are_outermost) steps.emplace_back(QuantizeStep{how});
        steps.insert(steps.end(), order.begin(), order.end());
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
    for (std::vector<WeightStep>& steps : ways(tensor, wanted)) {
      const auto made = take_steps(tensor, steps);
      // A tensor that can't be quantized so gives no payload.
      if (!made) continue;
      const auto bytes = probe(*made, wanted.count != 0);
      if (!bytes && bytes.error().code != ErrorCode::kInvalidArgument) return bytes.error();
      if (bytes) out.emplace(*bytes, TensorSteps{i, std::move(steps)});
    }
  }
  return &out;
}

Result<std::vector<WeightSteps>> OriginSearch::find_whole(const WeightPayload& payload,
                                                          const Wanted& wanted) {
  ETSTREAM_ASSIGN(const Known* known, this->known(wanted));
  ETSTREAM_ASSIGN(const std::string bytes, probe(payload.data, true));
  std::vector<WeightSteps> out;
  const auto [begin, end] = known->equal_range(bytes);
  for (auto each = begin; each != end; ++each) {
    const TensorSteps& steps = each->second;
    // One way for each tensor is enough.
    if (!out.empty() && out.back().front().tensor == steps.tensor) continue;
    ETSTREAM_ASSIGN(const ByteSource made, take_steps(checkpoint_.tensors[steps.tensor], steps.steps));
    ETSTREAM_ASSIGN(const bool same, same_bytes(made, payload.data));
    if (same) out.push_back({steps});
  }
  return out;
}

Result<std::vector<WeightSteps>> OriginSearch::find_joined(const WeightPayload& payload, Wanted wanted) {
  // Parts have whole rows.
  const auto& sizes = payload.integers ? std::vector<std::int32_t>(payload.integers->sizes.begin(),
                                                                   payload.integers->sizes.end())
                                       : payload.layout->sizes;
  if (sizes.empty() || sizes[0] < 2) return std::vector<WeightSteps>();
  const std::uint64_t row = wanted.count / static_cast<std::uint64_t>(sizes[0]);
  if (row * static_cast<std::uint64_t>(sizes[0]) != wanted.count) return std::vector<WeightSteps>();
  // A group that is no part of a row would reach across tensors.
  std::erase_if(wanted.groups, [&](std::uint64_t group) { return row % group != 0; });
  if (wanted.is_quantized && wanted.groups.empty()) return std::vector<WeightSteps>();
  wanted.count = 0;
  wanted.row = row;
  WeightSteps out;
  for (std::uint64_t at = 0; at < payload.data.size();) {
    ETSTREAM_ASSIGN(const ByteSource rest, payload.data.slice(at, payload.data.size() - at));
    const std::size_t before = out.size();
    for (const Kind kind : {Kind::kInOrder, Kind::kRope}) {
      wanted.kind = kind;
      ETSTREAM_ASSIGN(const Known* known, this->known(wanted));
      ETSTREAM_ASSIGN(const std::string bytes, probe(rest, false));
      const auto [begin, end] = known->equal_range(bytes);
      for (auto each = begin; each != end && out.size() == before; ++each) {
        const TensorSteps& steps = each->second;
        ETSTREAM_ASSIGN(const ByteSource made, take_steps(checkpoint_.tensors[steps.tensor], steps.steps));
        const auto part = rest.slice(0, made.size());
        if (!part) continue;
        ETSTREAM_ASSIGN(const bool same, same_bytes(made, *part));
        if (!same) continue;
        out.push_back(steps);
        at += made.size();
      }
      if (out.size() > before) break;
    }
    if (out.size() == before || out.size() > kMostParts) return std::vector<WeightSteps>();
  }
  return std::vector<WeightSteps>{std::move(out)};
}

Result<std::vector<WeightSteps>> OriginSearch::find(const WeightPayload& payload) {
  std::vector<WeightSteps> out;
  auto wanted = this->wanted(payload);
  if (!wanted) return out;
  for (const Kind kind : {Kind::kInOrder, Kind::kPermuted, Kind::kRope}) {
    wanted->kind = kind;
    ETSTREAM_ASSIGN(out, find_whole(payload, *wanted));
    if (!out.empty()) return out;
  }
  return find_joined(payload, *wanted);
}

}  // namespace etstream
