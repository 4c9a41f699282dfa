// SPDX-License-Identifier: BSD-3-Clause
#include "runtime_checks/kernel_rules.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/base/text.h"
#include "runtime_checks/operator_signatures.h"

namespace etstream {
namespace {

std::map<std::string_view, Signature> signatures_by_name() {
  std::map<std::string_view, Signature> out;
  for (const OperatorSignature& each : kOperatorSignatures) {
    const auto end = std::ranges::find(each.parameters, Parameter::kNone);
    const Signature signature(each.parameters.begin(), end);
    std::string_view names = each.operators;
    while (!names.empty()) {
      const std::size_t size = std::min(names.find(' '), names.size());
      out.emplace(names.substr(0, size), signature);
      names.remove_prefix(std::min(size + 1, names.size()));
    }
  }
  return out;
}

struct Rule {
  enum class Kind {
    kRank,          // tensor `argument` has `number` dimensions
    kHasRank,       // tensor `argument` has a dimension if tensor `number` has one
    kNotNegative,   // integer `argument`
    kSameDtype,     // tensor `argument` is of the dtype of tensor `number`
    kReadAs,        // the same, unless tensor `number` is of int8, which the kernel reads as such
    kComplexAlike,  // tensor `argument` is of the dtype and the sizes of tensor `number`, if one is complex
    kComplexDtype,  // the same of the dtype alone
    kSameSize,      // dimension `dimension` of tensor `argument` is as long as `other` of tensor `number`
    kNoneEmpty,     // tensor `argument` has no dimension of 0
    kCounts,        // integer `argument` is at least as large as dimension `dimension` of tensor `number`
    kMasksFit,    // masks in list `argument` have no more dimensions than tensor `number` has at their place
    kContiguous,  // tensor `argument` has its dimensions in their own order
    kLoaded,      // tensor `argument` is of a dtype that the kernel has a function to load elements of
  };
  std::string_view name;
  Kind kind;
  std::size_t argument;
  std::size_t number = 0;
  std::size_t dimension = 0;
  std::size_t other = 0;
};

using enum Rule::Kind;

// A kernel that reads its dimensions or offsets from these without a check.
constexpr Rule kRules[] = {
    {"aten::bmm.out", kRank, 0, 3},
    {"aten::bmm.out", kRank, 1, 3},
    {"aten::bmm.out", kRank, 2, 3},
    {"aten::bmm.out", kSameSize, 1, 0, 1, 2},
    {"aten::convolution.out", kLoaded, 2},   // its bias
    {"aten::div.out", kComplexAlike, 1, 0},  // it divides complex elements one by one
    {"aten::div.out", kComplexDtype, 2, 0},
    {"aten::index.Tensor_out", kMasksFit, 1, 0},  // its message lists sizes that are not there
    {"aten::index_put.out", kMasksFit, 1, 0},
    {"aten::index_put_", kMasksFit, 1, 0},
    {"aten::mm.out", kRank, 0, 2},
    {"aten::mm.out", kRank, 1, 2},
    {"aten::mm.out", kRank, 2, 2},
    {"aten::scatter.src_out", kHasRank, 2, 3},  // the place in the source is that of the index
    {"aten::scatter_add.out", kHasRank, 2, 3},
    {"aten::topk.values", kContiguous, 0},  // it lays out its results with these strides
    {"aten::upsample_bilinear2d.vec_out", kNoneEmpty, 0},
    {"aten::var_mean.correction_out", kSameDtype, 6, 5},  // it writes both as the first
    // Attention: queries, keys, values.
    {"llama::custom_quantized_sdpa.out", kNotNegative, 3},
    {"llama::custom_quantized_sdpa.out", kReadAs, 15, 0},
    {"llama::custom_quantized_sdpa.out", kSameSize, 1, 0, 0, 0},
    {"llama::custom_quantized_sdpa.out", kSameSize, 2, 1, 0, 0},
    {"llama::custom_quantized_sdpa.out", kSameSize, 2, 1, 1, 1},
    {"llama::custom_quantized_sdpa.out", kSameSize, 2, 1, 2, 2},
    {"llama::custom_sdpa.out", kNotNegative, 3},
    {"llama::custom_sdpa.out", kReadAs, 8, 0},
    {"llama::custom_sdpa.out", kSameSize, 1, 0, 0, 0},
    {"llama::custom_sdpa.out", kSameSize, 2, 1, 0, 0},
    {"llama::custom_sdpa.out", kSameSize, 2, 1, 1, 1},
    {"llama::custom_sdpa.out", kSameSize, 2, 1, 2, 2},
    // The same with caches of keys and values, which take the whole of what is projected.
    {"llama::sdpa_with_kv_cache.out", kNotNegative, 5},
    {"llama::sdpa_with_kv_cache.out", kCounts, 6, 1, 1},
    {"llama::sdpa_with_kv_cache.out", kCounts, 6, 2, 1},
    {"llama::sdpa_with_kv_cache.out", kReadAs, 11, 0},
    {"llama::sdpa_with_kv_cache.out", kSameSize, 3, 0, 0, 0},
    {"llama::sdpa_with_kv_cache.out", kSameSize, 4, 3, 0, 0},
    {"llama::sdpa_with_kv_cache.out", kSameSize, 4, 3, 1, 1},
    {"llama::sdpa_with_kv_cache.out", kSameSize, 4, 3, 2, 2},
    {"llama::update_cache.out", kNotNegative, 2},
};

constexpr ScalarType kLoadedTypes[] = {ScalarType::kUInt8,   ScalarType::kInt8,    ScalarType::kInt16,
                                       ScalarType::kInt32,   ScalarType::kInt64,   ScalarType::kFloat16,
                                       ScalarType::kFloat32, ScalarType::kFloat64, ScalarType::kBFloat16};

/// Finds a mask among indices that reaches beyond the last dimension of what it selects from.
std::optional<BrokenRule> check_masks(const Rule& rule, const TensorLayout& tensor,
                                      std::span<const std::optional<TensorLayout>> indices) {
  const std::size_t rank = tensor.sizes.size();
  std::size_t place = 0;
  for (const auto& index : indices) {
    const bool is_mask =
        index && (index->scalar_type == ScalarType::kBool || index->scalar_type == ScalarType::kUInt8);
    const std::size_t dimensions = is_mask ? index->sizes.size() : 1;
    if (is_mask && place + dimensions > rank) {
      return BrokenRule{text("a mask of at most {} in argument {}",
                             counted(rank - std::min(place, rank), "dimension"), rule.argument),
                        text("{}", dimensions)};
    }
    place += dimensions;
  }
  return std::nullopt;
}

/// Returns the size of a dimension, if there is one that does not change.
std::optional<std::int32_t> fixed_size(const KernelArgument& argument, std::size_t dimension) {
  if (!argument.tensor || !argument.has_fixed_sizes) return std::nullopt;
  const auto& sizes = argument.tensor->sizes;
  return dimension < sizes.size() ? std::optional(sizes[dimension]) : std::nullopt;
}

std::optional<BrokenRule> check_size(const Rule& rule, const KernelArgument& argument,
                                     const KernelArgument& other) {
  const auto size = fixed_size(argument, rule.dimension);
  const auto wanted = fixed_size(other, rule.other);
  if (!size || !wanted || *size == *wanted) return std::nullopt;
  return BrokenRule{text("{} in dimension {} of argument {}, as argument {} has in dimension {}", *wanted,
                         rule.dimension, rule.argument, rule.number, rule.other),
                    text("{}", *size)};
}

std::optional<BrokenRule> check_integer(const Rule& rule, std::int64_t integer,
                                        std::span<const KernelArgument> arguments) {
  std::int64_t least = 0;
  if (rule.kind == kCounts) least = fixed_size(arguments[rule.number], rule.dimension).value_or(integer);
  if (integer >= least) return std::nullopt;
  return BrokenRule{text("at least {} as argument {}", least, rule.argument), text("{}", integer)};
}

bool is_complex(ScalarType dtype) {
  return dtype == ScalarType::kComplex32 || dtype == ScalarType::kComplex64 ||
         dtype == ScalarType::kComplex128;
}

std::optional<BrokenRule> check_complex(const Rule& rule, const KernelArgument& argument,
                                        const KernelArgument& other) {
  if (!argument.tensor || !other.tensor) return std::nullopt;
  const ScalarType dtype = argument.tensor->scalar_type;
  const ScalarType wanted = other.tensor->scalar_type;
  if (!is_complex(dtype) && !is_complex(wanted)) return std::nullopt;
  if (dtype != wanted) {
    return BrokenRule{text("a tensor of the dtype of argument {} as argument {}, as one is complex",
                           rule.number, rule.argument),
                      text("{}", name_of(dtype))};
  }
  const bool has_sizes = argument.has_fixed_sizes && other.has_fixed_sizes;
  if (rule.kind == kComplexDtype || !has_sizes || argument.tensor->sizes == other.tensor->sizes) {
    return std::nullopt;
  }
  return BrokenRule{
      text("a complex tensor of the sizes of argument {} as argument {}", rule.number, rule.argument),
      describe(*argument.tensor)};
}

std::optional<BrokenRule> check_dtype(const Rule& rule, ScalarType dtype,
                                      std::span<const KernelArgument> arguments) {
  if (rule.kind == kLoaded) {
    if (std::ranges::count(kLoadedTypes, dtype) != 0) return std::nullopt;
    return BrokenRule{text("a tensor of a dtype that the kernel takes as argument {}", rule.argument),
                      text("{}", name_of(dtype))};
  }
  const auto& other = arguments[rule.number].tensor;
  if (!other || dtype == other->scalar_type) return std::nullopt;
  if (rule.kind == kReadAs && other->scalar_type == ScalarType::kInt8) return std::nullopt;
  return BrokenRule{text("a tensor of the dtype of argument {} as argument {}", rule.number, rule.argument),
                    text("{}", name_of(dtype))};
}

std::optional<BrokenRule> check_tensor(const Rule& rule, const KernelArgument& argument,
                                       std::span<const KernelArgument> arguments) {
  const TensorLayout& tensor = *argument.tensor;
  const std::size_t rank = tensor.sizes.size();
  if (rule.kind == kRank && rank != rule.number) {
    return BrokenRule{text("a tensor of {} dimensions as argument {}", rule.number, rule.argument),
                      text("{}", rank)};
  }
  if (rule.kind == kHasRank && rank == 0) {
    const auto& other = arguments[rule.number].tensor;
    if (!other || other->sizes.empty()) return std::nullopt;
    return BrokenRule{text("a dimension of argument {}, as argument {} has one", rule.argument, rule.number),
                      "none"};
  }
  if (rule.kind == kNoneEmpty && argument.has_fixed_sizes && std::ranges::count(tensor.sizes, 0) != 0) {
    return BrokenRule{text("a tensor with elements as argument {}", rule.argument), "a dimension of 0"};
  }
  if (rule.kind == kContiguous && !std::ranges::is_sorted(tensor.dim_order)) {
    return BrokenRule{text("a contiguous tensor as argument {}", rule.argument), "another dim_order"};
  }
  return std::nullopt;
}

std::optional<BrokenRule> check(const Rule& rule, std::span<const KernelArgument> arguments) {
  const KernelArgument& argument = arguments[rule.argument];
  switch (rule.kind) {
    case kMasksFit: {
      const auto& tensor = arguments[rule.number].tensor;
      return tensor ? check_masks(rule, *tensor, argument.items) : std::nullopt;
    }
    case kComplexAlike:
    case kComplexDtype:
      return check_complex(rule, argument, arguments[rule.number]);
    case kSameSize:
      return check_size(rule, argument, arguments[rule.number]);
    case kNotNegative:
    case kCounts:
      return argument.integer ? check_integer(rule, *argument.integer, arguments) : std::nullopt;
    case kSameDtype:
    case kReadAs:
    case kLoaded:
      return argument.tensor ? check_dtype(rule, argument.tensor->scalar_type, arguments) : std::nullopt;
    default:
      return argument.tensor ? check_tensor(rule, argument, arguments) : std::nullopt;
  }
}

}  // namespace

std::optional<Signature> find_signature(std::string_view name) {
  static const auto kSignatures = signatures_by_name();
  const auto found = kSignatures.find(name);
  return found == kSignatures.end() ? std::nullopt : std::optional(found->second);
}

Kinds kinds_taken(Parameter parameter) {
  using enum pte::ValueKind;
  constexpr Kinds kOrNull = kinds(kNull);
  // The kinds in the order of Parameter.
  static constexpr Kinds kTaken[] = {
      kAnything,
      kinds(kTensor),
      kinds(kTensor) | kOrNull,
      kinds(kTensorList),
      kinds(kOptionalTensorList),
      kinds(kInt),
      kinds(kInt) | kOrNull,
      kinds(kDouble),
      kinds(kDouble) | kOrNull,
      kinds(kBool),
      kinds(kBool) | kOrNull,
      kAnyNumber,
      kAnyNumber | kOrNull,
      kinds(kString),
      kinds(kString) | kOrNull,
      kinds(kIntList),
      kinds(kIntList) | kOrNull,
      kinds(kDoubleList),
      kinds(kDoubleList) | kOrNull,
      kinds(kBoolList),
      kinds(kTensor),
      kinds(kTensorList),
      kinds(kTensor),
      kinds(kTensor),
      kAnything,
  };
  static_assert(std::size(kTaken) == static_cast<std::size_t>(Parameter::kReturn) + 1);
  return kTaken[static_cast<std::size_t>(parameter)];
}

std::optional<BrokenRule> find_broken_rule(std::string_view name, std::span<const KernelArgument> arguments) {
  for (const Rule& rule : kRules) {
    if (rule.name != name) continue;
    if (auto broken = check(rule, arguments)) return broken;
  }
  return std::nullopt;
}

bool has_kernel_rules(std::string_view name) {
  return std::ranges::find(kRules, name, &Rule::name) != std::end(kRules);
}

std::optional<std::string_view> taken_unchecked(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kKernels[] = {
      {"aten::_fft_c2r.out", "dimensions"},
      {"aten::_upsample_bilinear2d_aa.out", "scales"},
      {"aten::grid_sampler_2d.out", "coordinates"},
      {"aten::max_pool2d_with_indices_backward.grad_input", "indices"},
      {"quantized_decomposed::embedding_2bit.dtype_out", "indices"},
      {"quantized_decomposed::embedding_2bit.out", "indices"},
      {"quantized_decomposed::embedding_4bit.dtype_out", "indices"},
      {"quantized_decomposed::embedding_4bit.out", "indices"}};
  for (const auto& [kernel, what] : kKernels) {
    if (kernel == name) return what;
  }
  return std::nullopt;
}

bool reads_indices(std::string_view name) {
  constexpr std::string_view kNames[] = {"aten::embedding.out",
                                         "aten::gather.out",
                                         "aten::index.Tensor_out",
                                         "aten::index_put.out",
                                         "aten::index_put_",
                                         "aten::index_select.out",
                                         "aten::scatter.src_out",
                                         "aten::scatter.value_out",
                                         "aten::scatter_add.out",
                                         "quantized_decomposed::embedding_byte.dtype_out",
                                         "quantized_decomposed::embedding_byte.out"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

}  // namespace etstream
