// SPDX-License-Identifier: BSD-3-Clause
#include "pte/kernel_rules.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace etstream {
namespace {

using Arguments = std::span<const KernelArgument>;
using Dtypes = std::uint64_t;  // a bit each

constexpr Dtypes dtypes(auto... types) { return ((Dtypes{1} << static_cast<unsigned>(types)) | ...); }

constexpr Dtypes kHalfOrFloat = dtypes(ScalarType::kFloat16, ScalarType::kFloat32, ScalarType::kBFloat16);
constexpr Dtypes kFloating = kHalfOrFloat | dtypes(ScalarType::kFloat64);
constexpr Dtypes kBytes = dtypes(ScalarType::kUInt8, ScalarType::kInt8);
constexpr Dtypes kQuantized =
    kBytes | dtypes(ScalarType::kInt16, ScalarType::kInt32, ScalarType::kUInt16, ScalarType::kBits16);
constexpr Dtypes kFloatOrDouble = dtypes(ScalarType::kFloat32, ScalarType::kFloat64);
constexpr Dtypes kDouble = dtypes(ScalarType::kFloat64);
constexpr Dtypes kInt64 = dtypes(ScalarType::kInt64);
constexpr Dtypes kIntegers = dtypes(ScalarType::kInt32, ScalarType::kInt64);

enum class Kind {
  kDtype,      // of tensor `a` one of `among`
  kDtypeIs,    // of tensor `a` the integer `b`, unless that is null
  kAtMost,     // integer `a` no more than `b`
  kPositive,   // integer `a`
  kDimension,  // of tensor `a` integer `b` is one
  kBetween,    // elements of constant `a` no less than integer `b`, no more than the integer behind it
  kSameSizes,  // of tensors `a` and `b`
  kLeast,      // integer `b` no less than the dtype of tensor `a` has
  kMost,       // integer `b` no more than the dtype of tensor `a` has
  kChannels,   // tensor `a` has as many elements as tensor 0 has along the dimension that integer `b` says
};

struct Rule {
  Kind kind;
  std::size_t a;
  std::size_t b = 0;
  Dtypes among = 0;
};

constexpr Rule kQuantizePerTensor[] = {{Kind::kDtype, 0, 0, kFloating},
                                       {Kind::kDtype, 6, 0, kQuantized},
                                       {Kind::kDtypeIs, 6, 5},
                                       {Kind::kSameSizes, 0, 6},
                                       {Kind::kLeast, 6, 3},
                                       {Kind::kMost, 6, 4}};
constexpr Rule kDequantizePerTensor[] = {
    {Kind::kAtMost, 3, 2},  {Kind::kAtMost, 2, 4},   {Kind::kDtype, 0, 0, kQuantized},
    {Kind::kDtypeIs, 0, 5}, {Kind::kDtypeIs, 7, 6},  {Kind::kDtype, 7, 0, kFloating},
    {Kind::kAtMost, 3, 4},  {Kind::kSameSizes, 0, 7}};
constexpr Rule kQuantizePerChannel[] = {{Kind::kDtype, 0, 0, kFloating},
                                        {Kind::kDtype, 1, 0, kDouble},
                                        {Kind::kDtype, 2, 0, kInt64},
                                        {Kind::kDtype, 7, 0, kQuantized},
                                        {Kind::kDtypeIs, 7, 6},
                                        {Kind::kSameSizes, 0, 7},
                                        {Kind::kLeast, 7, 4},
                                        {Kind::kMost, 7, 5},
                                        {Kind::kChannels, 1, 3},
                                        {Kind::kChannels, 2, 3}};
constexpr Rule kDequantizePerChannel[] = {{Kind::kDtype, 0, 0, kQuantized},
                                          {Kind::kDtype, 1, 0, kFloatOrDouble},
                                          {Kind::kDtype, 2, 0, kIntegers},
                                          {Kind::kDtypeIs, 0, 6},
                                          {Kind::kDtypeIs, 8, 7},
                                          {Kind::kDtype, 8, 0, kFloating},
                                          {Kind::kAtMost, 4, 5},
                                          {Kind::kSameSizes, 0, 8},
                                          {Kind::kChannels, 1, 3},
                                          {Kind::kChannels, 2, 3},
                                          {Kind::kBetween, 2, 4}};
constexpr Rule kEmbeddingByte[] = {{Kind::kDtype, 0, 0, kBytes},
                                   {Kind::kDtype, 1, 0, kHalfOrFloat},
                                   {Kind::kDtype, 5, 0, kInt64},
                                   {Kind::kDtype, 6, 0, kHalfOrFloat},
                                   {Kind::kAtMost, 3, 4}};

constexpr Rule kConvolution[] = {{Kind::kPositive, 8}};  // its groups

constexpr Rule kSymSize[] = {{Kind::kDimension, 0, 1}};

constexpr std::pair<std::string_view, std::span<const Rule>> kRules[] = {
    {"aten::convolution.out", kConvolution},
    {"aten::sym_size.int", kSymSize},
    {"quantized_decomposed::quantize_per_tensor.out", kQuantizePerTensor},
    {"quantized_decomposed::dequantize_per_tensor.out", kDequantizePerTensor},
    {"quantized_decomposed::quantize_per_channel.out", kQuantizePerChannel},
    {"quantized_decomposed::dequantize_per_channel.out", kDequantizePerChannel},
    {"quantized_decomposed::embedding_byte.out", kEmbeddingByte},
};

std::span<const Rule> rules_of(std::string_view name) {
  for (const auto& [each, rules] : kRules) {
    if (each == name) return rules;
  }
  return {};
}

/// Of operators that work on elements alone: their kernels find a dtype for all (promoteTypes).
bool promotes(std::string_view name, std::string_view signature) {
  constexpr std::array<std::string_view, 4> kSignatures = {"TT>T*", "TTS>T*", "TS>T*", "TSS>T*"};
  return name.starts_with("aten::") && !name.starts_with("aten::fill") &&
         std::find(kSignatures.begin(), kSignatures.end(), signature) != kSignatures.end();
}

/// Integers, floats, complex numbers and booleans up to bfloat16, without those of quantized tensors.
bool can_be_promoted(ScalarType dtype) {
  return static_cast<int>(dtype) <= static_cast<int>(ScalarType::kBool) || dtype == ScalarType::kBFloat16;
}

std::pair<std::int64_t, std::int64_t> range_of(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::kUInt8:
      return {0, 0xff};
    case ScalarType::kInt8:
      return {-0x80, 0x7f};
    case ScalarType::kInt16:
      return {-0x8000, 0x7fff};
    case ScalarType::kInt32:
      return {-0x80000000LL, 0x7fffffffLL};
    default:
      return {0, 0xffff};
  }
}

std::optional<std::int64_t> elements_of(const KernelArgument& argument) {
  if (!argument.tensor || !argument.tensor->sizes) return std::nullopt;
  std::int64_t out = 1;
  for (const std::int32_t size : *argument.tensor->sizes) {
    if (__builtin_mul_overflow(out, std::int64_t{size}, &out)) return std::nullopt;
  }
  return out;
}

std::optional<BrokenRule> check_channels(const Rule& rule, Arguments arguments) {
  const auto elements = elements_of(arguments[rule.a]);
  const auto& input = arguments[0].tensor;
  if (!elements || !input || !input->sizes || !arguments[rule.b].integer) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(input->sizes->size());
  std::int64_t axis = *arguments[rule.b].integer;
  if (axis < -rank || axis >= rank) {
    return BrokenRule{text("a dimension below {} as argument {}", rank, rule.b), text("{}", axis)};
  }
  if (axis < 0) axis += rank;
  const std::int32_t channels = (*input->sizes)[static_cast<std::size_t>(axis)];
  if (channels == *elements) return std::nullopt;
  return BrokenRule{text("{} elements in argument {}", channels, rule.a), text("{}", *elements)};
}

std::optional<BrokenRule> check_dimension(std::size_t rank, const Rule& rule,
                                          const KernelArgument& dimension) {
  const auto limit = static_cast<std::int64_t>(rank);
  if (!dimension.integer || (*dimension.integer >= -limit && *dimension.integer < limit)) return std::nullopt;
  return BrokenRule{text("a dimension below {} as argument {}", limit, rule.b),
                    text("{}", *dimension.integer)};
}

std::optional<BrokenRule> check_between(std::span<const std::int64_t> elements, const Rule& rule,
                                        Arguments arguments) {
  const auto& least = arguments[rule.b].integer;
  const auto& most = arguments[rule.b + 1].integer;
  if (!least || !most) return std::nullopt;
  for (const std::int64_t element : elements) {
    if (element >= *least && element <= *most) continue;
    return BrokenRule{text("elements from {} to {} in argument {}", *least, *most, rule.a),
                      text("{}", element)};
  }
  return std::nullopt;
}

std::optional<BrokenRule> check_tensor(const Rule& rule, const KernelArgument::Tensor& a,
                                       Arguments arguments) {
  const KernelArgument& b = arguments[rule.b];
  const auto place = text(" as argument {}", rule.a);
  switch (rule.kind) {
    case Kind::kDtype:
      if (static_cast<unsigned>(a.dtype) < 64 && (rule.among >> static_cast<unsigned>(a.dtype) & 1) != 0)
        break;
      return BrokenRule{text("a tensor of a dtype that the kernel takes{}", place),
                        std::string(name_of(a.dtype))};
    case Kind::kDtypeIs:
      if (!b.integer || *b.integer == static_cast<std::int64_t>(a.dtype)) break;
      return BrokenRule{text("a tensor of the dtype that argument {} says, {},{}", rule.b, *b.integer, place),
                        text("{}", static_cast<int>(a.dtype))};
    case Kind::kSameSizes:
      if (!b.tensor || !a.sizes || !b.tensor->sizes || a.sizes == b.tensor->sizes) break;
      return BrokenRule{text("a tensor of the same sizes as argument {}{}", rule.b, place), "another"};
    case Kind::kLeast:
      if (!b.integer || *b.integer >= range_of(a.dtype).first) break;
      return BrokenRule{text("at least {} as argument {}", range_of(a.dtype).first, rule.b),
                        text("{}", *b.integer)};
    case Kind::kMost:
      if (!b.integer || *b.integer <= range_of(a.dtype).second) break;
      return BrokenRule{text("at most {} as argument {}", range_of(a.dtype).second, rule.b),
                        text("{}", *b.integer)};
    case Kind::kChannels:
      return check_channels(rule, arguments);
    case Kind::kDimension:
      return check_dimension(a.rank, rule, b);
    case Kind::kBetween:
      return check_between(a.constants, rule, arguments);
    case Kind::kAtMost:
    case Kind::kPositive:
      break;
  }
  return std::nullopt;
}

std::optional<BrokenRule> check_rule(const Rule& rule, Arguments arguments) {
  const KernelArgument& a = arguments[rule.a];
  if (a.tensor) return check_tensor(rule, *a.tensor, arguments);
  if (rule.kind == Kind::kPositive && a.integer && *a.integer <= 0) {
    return BrokenRule{text("more than 0 as argument {}", rule.a), text("{}", *a.integer)};
  }
  const KernelArgument& b = arguments[rule.b];
  if (rule.kind != Kind::kAtMost || !a.integer || !b.integer || *a.integer <= *b.integer) return std::nullopt;
  return BrokenRule{text("at most argument {}, {}, as argument {}", rule.b, *b.integer, rule.a),
                    text("{}", *a.integer)};
}

}  // namespace

bool has_kernel_rules(std::string_view name, std::string_view signature) {
  return !rules_of(name).empty() || promotes(name, signature);
}

std::optional<BrokenRule> find_broken_rule(std::string_view name, std::string_view signature,
                                           Arguments arguments) {
  for (const Rule& rule : rules_of(name)) {
    if (auto broken = check_rule(rule, arguments)) return broken;
  }
  if (!promotes(name, signature)) return std::nullopt;
  for (const KernelArgument& argument : arguments) {
    if (!argument.tensor || can_be_promoted(argument.tensor->dtype)) continue;
    return BrokenRule{"tensors of dtypes that the kernel takes",
                      std::string(name_of(argument.tensor->dtype))};
  }
  return std::nullopt;
}

}  // namespace etstream
