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
constexpr Dtypes kUInt8 = dtypes(ScalarType::kUInt8);
constexpr Dtypes kBytes = kUInt8 | dtypes(ScalarType::kInt8);
constexpr Dtypes kQuantized =
    kBytes | dtypes(ScalarType::kInt16, ScalarType::kInt32, ScalarType::kUInt16, ScalarType::kBits16);
constexpr Dtypes kFloatOrDouble = dtypes(ScalarType::kFloat32, ScalarType::kFloat64);
constexpr Dtypes kDouble = dtypes(ScalarType::kFloat64);
constexpr Dtypes kInt64 = dtypes(ScalarType::kInt64);
constexpr Dtypes kLoaded = kFloating | kBytes | kInt64 | dtypes(ScalarType::kInt16, ScalarType::kInt32);
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
  kRank,       // of tensor `a` `b`
  kSameDtype,  // of tensors `a` and `b`
  kScales,     // tensor `a` has one for each row of tensor 0, or for each of a row's equal groups
  kRows,       // tensor `b` has room for a row of tensor 0 for each element of tensor `a`
};

struct Rule {
  Kind kind;
  std::size_t a;
  std::size_t b = 0;
  Dtypes among = 0;
  std::size_t per_byte = 1;  // elements of tensor 0
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
/// Of kernels with `per_byte` weights in a byte, with the dtype of what they give as an argument or without.
constexpr std::array<Rule, 11> embedding(std::size_t per_byte, bool has_dtype) {
  const std::size_t out = has_dtype ? 7 : 6;
  const bool is_packed = per_byte > 1;
  return {{{Kind::kDtype, 0, 0, is_packed ? kUInt8 : kBytes},
           {Kind::kDtype, 1, 0, kHalfOrFloat},
           {Kind::kDtype, 5, 0, is_packed ? kIntegers : kInt64},
           {Kind::kDtype, out, 0, kHalfOrFloat},
           has_dtype ? Rule{Kind::kDtypeIs, out, 6} : Rule{Kind::kSameDtype, 1, out},
           {Kind::kSameDtype, 2, out},
           {Kind::kAtMost, 3, 4},
           {Kind::kRank, 0, 2},
           {Kind::kScales, 1, 0, 0, per_byte},
           {Kind::kSameSizes, 2, 1},
           {Kind::kRows, 5, out, 0, per_byte}}};
}
template <std::size_t kPerByte, bool kHasDtype>
constexpr auto kEmbedding = embedding(kPerByte, kHasDtype);

constexpr Rule kConvolution[] = {{Kind::kDtype, 2, 0, kLoaded},  // its bias
                                 {Kind::kPositive, 8}};          // its groups

/// Of a product of matrices, or of batches of them.
template <std::size_t kRank>
constexpr Rule kProduct[] = {{Kind::kRank, 0, kRank}, {Kind::kRank, 1, kRank}, {Kind::kRank, 2, kRank}};

constexpr Rule kSymSize[] = {{Kind::kDimension, 0, 1}};

constexpr std::pair<std::string_view, std::span<const Rule>> kRules[] = {
    {"aten::bmm.out", kProduct<3>},
    {"aten::convolution.out", kConvolution},
    {"aten::mm.out", kProduct<2>},
    {"aten::sym_size.int", kSymSize},
    {"quantized_decomposed::quantize_per_tensor.out", kQuantizePerTensor},
    {"quantized_decomposed::dequantize_per_tensor.out", kDequantizePerTensor},
    {"quantized_decomposed::quantize_per_channel.out", kQuantizePerChannel},
    {"quantized_decomposed::dequantize_per_channel.out", kDequantizePerChannel},
    {"quantized_decomposed::embedding_byte.out", kEmbedding<1, false>},
    {"quantized_decomposed::embedding_byte.dtype_out", kEmbedding<1, true>},
    {"quantized_decomposed::embedding_2bit.out", kEmbedding<4, false>},
    {"quantized_decomposed::embedding_2bit.dtype_out", kEmbedding<4, true>},
    {"quantized_decomposed::embedding_4bit.out", kEmbedding<2, false>},
    {"quantized_decomposed::embedding_4bit.dtype_out", kEmbedding<2, true>},
};

std::span<const Rule> rules_of(std::string_view name) {
  const auto* const found = std::ranges::find(kRules, name, [](const auto& each) { return each.first; });
  return found == std::end(kRules) ? std::span<const Rule>() : found->second;
}

/// Of operators that work on elements alone: their kernels find a dtype for all (promoteTypes).
bool promotes(std::string_view name, Signature signature) {
  using enum Parameter;
  constexpr std::array<std::array<Parameter, 5>, 4> kSignatures = {
      {{kTensor, kTensor, kOut, kReturn},
       {kTensor, kTensor, kScalar, kOut, kReturn},
       {kTensor, kScalar, kOut, kReturn},
       {kTensor, kScalar, kScalar, kOut, kReturn}}};
  return name.starts_with("aten::") && !name.starts_with("aten::fill") &&
         std::ranges::any_of(kSignatures, [&](const auto& each) {
           return std::ranges::equal(signature, std::span(each).first(each.back() == kReturn ? 5 : 4));
         });
}

/// Integers, floats, complex numbers and booleans up to bfloat16, without those of quantized tensors.
bool can_be_promoted(ScalarType dtype) {
  return static_cast<int>(dtype) <= static_cast<int>(ScalarType::kBool) || dtype == ScalarType::kBFloat16;
}

template <class... Words>
BrokenRule broken(const auto& found, Template<Words...> expected, const Words&... words) {
  return {text(expected, words...), text("{}", found)};
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

/// With the sizes that the program says.
std::optional<std::int64_t> elements_of(const KernelArgument::Tensor& tensor) {
  std::int64_t out = 1;
  for (const std::int32_t size : tensor.sizes) {
    if (__builtin_mul_overflow(out, std::int64_t{size}, &out)) return std::nullopt;
  }
  return out;
}

std::optional<BrokenRule> check_channels(const Rule& rule, Arguments arguments) {
  const auto& input = arguments[0].tensor;
  const auto& scales = arguments[rule.a].tensor;
  if (!input || !input->is_static || !scales->is_static || !arguments[rule.b].integer) return std::nullopt;
  const auto elements = elements_of(*scales);
  if (!elements) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(input->sizes.size());
  std::int64_t axis = *arguments[rule.b].integer;
  if (axis < -rank || axis >= rank) {
    return broken(axis, "a dimension below {} as argument {}", rank, rule.b);
  }
  if (axis < 0) axis += rank;
  const std::int32_t channels = input->sizes[static_cast<std::size_t>(axis)];
  if (channels == *elements) return std::nullopt;
  return broken(*elements, "{} elements in argument {}", channels, rule.a);
}

std::optional<BrokenRule> check_dimension(std::size_t rank, const Rule& rule,
                                          const KernelArgument& dimension) {
  const auto& found = dimension.integer;
  if (found && *found >= 0 && std::cmp_less(*found, rank)) return std::nullopt;
  return BrokenRule{text("a dimension from 0 to below {} as argument {}", rank, rule.b),
                    found ? text("{}", *found) : "one that is not known before"};
}

std::optional<BrokenRule> check_between(std::span<const std::int64_t> elements, const Rule& rule,
                                        Arguments arguments) {
  const auto& least = arguments[rule.b].integer;
  const auto& most = arguments[rule.b + 1].integer;
  if (!least || !most) return std::nullopt;
  for (const std::int64_t element : elements) {
    if (element >= *least && element <= *most) continue;
    return broken(element, "elements from {} to {} in argument {}", *least, *most, rule.a);
  }
  return std::nullopt;
}

std::optional<BrokenRule> check_scales(const Rule& rule, const KernelArgument::Tensor& scales,
                                       Arguments arguments) {
  const auto& table = arguments[0].tensor;
  if (!table || !table->is_static || !scales.is_static || table->sizes.size() != 2) return std::nullopt;
  const std::size_t rank = scales.sizes.size();
  if (rank < 1 || rank > 2 || scales.sizes[0] != table->sizes[0]) {
    return BrokenRule{text("{} rows, as argument 0 has, in argument {}", table->sizes[0], rule.a),
                      rank < 1 || rank > 2 ? "another shape" : text("{}", scales.sizes[0])};
  }
  const std::int64_t columns = std::int64_t{table->sizes[1]} * static_cast<std::int64_t>(rule.per_byte);
  if (rank == 1 || (scales.sizes[1] > 0 && columns % scales.sizes[1] == 0)) return std::nullopt;
  return broken(scales.sizes[1], "equal groups of {} elements in argument {}", columns, rule.a);
}

/// At most: a tensor may have fewer elements when it is run.
std::optional<BrokenRule> check_rows(const Rule& rule, const KernelArgument::Tensor& indices,
                                     Arguments arguments) {
  const auto& table = arguments[0].tensor;
  const auto& out = arguments[rule.b].tensor;
  if (!table || !out || !table->is_static || table->sizes.size() != 2) return std::nullopt;
  if (out->sizes.size() != indices.sizes.size() + 1) {
    return broken(out->sizes.size(), "a tensor of {} dimensions as argument {}", indices.sizes.size() + 1,
                  rule.b);
  }
  const auto rows = elements_of(indices);
  const auto there = elements_of(*out);
  std::int64_t needed = 0;
  if (!rows || !there || __builtin_mul_overflow(*rows, std::int64_t{table->sizes[1]}, &needed) ||
      __builtin_mul_overflow(needed, static_cast<std::int64_t>(rule.per_byte), &needed))
    return std::nullopt;
  if (needed <= *there) return std::nullopt;
  return broken(*there, "room for {} elements in argument {}", needed, rule.b);
}

std::optional<BrokenRule> check_tensor(const Rule& rule, const KernelArgument::Tensor& a,
                                       Arguments arguments) {
  const KernelArgument& b = arguments[rule.b];
  switch (rule.kind) {
    case Kind::kDtype:
      if (static_cast<unsigned>(a.dtype) < 64 && (rule.among >> static_cast<unsigned>(a.dtype) & 1) != 0)
        break;
      return broken(name_of(a.dtype), "a tensor of a dtype that the kernel takes as argument {}", rule.a);
    case Kind::kDtypeIs:
      if (!b.integer || *b.integer == static_cast<std::int64_t>(a.dtype)) break;
      return broken(static_cast<int>(a.dtype),
                    "a tensor of the dtype that argument {} says, {}, as argument {}", rule.b, *b.integer,
                    rule.a);
    case Kind::kSameSizes:
      if (!b.tensor || !a.is_static || !b.tensor->is_static || a.sizes == b.tensor->sizes) break;
      return broken("another", "a tensor of the same sizes as argument {} as argument {}", rule.b, rule.a);
    case Kind::kLeast:
      if (!b.integer || *b.integer >= range_of(a.dtype).first) break;
      return broken(*b.integer, "at least {} as argument {}", range_of(a.dtype).first, rule.b);
    case Kind::kMost:
      if (!b.integer || *b.integer <= range_of(a.dtype).second) break;
      return broken(*b.integer, "at most {} as argument {}", range_of(a.dtype).second, rule.b);
    case Kind::kChannels:
      return check_channels(rule, arguments);
    case Kind::kDimension:
      return check_dimension(a.sizes.size(), rule, b);
    case Kind::kBetween:
      return check_between(a.constants, rule, arguments);
    case Kind::kRank:
      if (a.sizes.size() == rule.b) break;
      return broken(a.sizes.size(), "a tensor of {} dimensions as argument {}", rule.b, rule.a);
    case Kind::kSameDtype:
      if (!b.tensor || b.tensor->dtype == a.dtype) break;
      return broken(name_of(a.dtype), "a tensor of the dtype of argument {}, {}, as argument {}", rule.b,
                    name_of(b.tensor->dtype), rule.a);
    case Kind::kScales:
      return check_scales(rule, a, arguments);
    case Kind::kRows:
      return check_rows(rule, a, arguments);
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
    return broken(*a.integer, "more than 0 as argument {}", rule.a);
  }
  const KernelArgument& b = arguments[rule.b];
  if (rule.kind != Kind::kAtMost || !a.integer || !b.integer || *a.integer <= *b.integer) return std::nullopt;
  return broken(*a.integer, "at most argument {}, {}, as argument {}", rule.b, *b.integer, rule.a);
}

}  // namespace

bool has_kernel_rules(std::string_view name, Signature signature) {
  return !rules_of(name).empty() || promotes(name, signature);
}

bool reads_indices(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "aten::embedding.out",    "aten::gather.out",
      "aten::index.Tensor_out", "aten::index_put.out",
      "aten::index_put_",       "aten::index_select.out",
      "aten::scatter.src_out",  "aten::scatter.value_out",
      "aten::scatter_add.out",  "aten::max_pool2d_with_indices_backward.grad_input"};
  return argument_of_indices(name) || std::ranges::count(kNames, name) > 0;
}

std::optional<std::size_t> argument_of_indices(std::string_view name) {
  if (name == "aten::_local_scalar_dense") return 0;
  constexpr std::string_view kEmbedding = "quantized_decomposed::embedding_";
  return name.starts_with(kEmbedding) && has_kernel_rules(name, {}) ? std::optional<std::size_t>(5)
                                                                    : std::nullopt;
}

std::optional<BrokenRule> find_broken_rule(std::string_view name, Signature signature, Arguments arguments) {
  for (const Rule& rule : rules_of(name)) {
    if (auto broken = check_rule(rule, arguments)) return broken;
  }
  if (!promotes(name, signature)) return std::nullopt;
  for (const KernelArgument& argument : arguments) {
    if (!argument.tensor || can_be_promoted(argument.tensor->dtype)) continue;
    return broken(name_of(argument.tensor->dtype), "tensors of dtypes that the kernel takes");
  }
  return std::nullopt;
}

}  // namespace etstream
