// SPDX-License-Identifier: BSD-3-Clause
#include "runtime_checks/kernel_rules.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/text.h"

namespace etstream {
namespace {

struct Rule {
  enum class Kind {
    kRank,         // tensor `argument` has `number` dimensions
    kNotNegative,  // integer `argument`
    kSameDtype,    // tensor `argument` is of the dtype of tensor `number`
    kContiguous,   // tensor `argument` has its dimensions in their own order
    kLoaded,       // tensor `argument` is of a dtype that the kernel has a function to load elements of
  };
  std::string_view name;
  Kind kind;
  std::size_t argument;
  std::size_t number = 0;
};

using enum Rule::Kind;

// A kernel that reads its dimensions or offsets from these without a check.
constexpr Rule kRules[] = {
    {"aten::bmm.out", kRank, 0, 3},
    {"aten::bmm.out", kRank, 1, 3},
    {"aten::bmm.out", kRank, 2, 3},
    {"aten::convolution.out", kLoaded, 2},  // its bias
    {"aten::mm.out", kRank, 0, 2},
    {"aten::mm.out", kRank, 1, 2},
    {"aten::mm.out", kRank, 2, 2},
    {"aten::topk.values", kContiguous, 0},                // it lays out its results with these strides
    {"aten::var_mean.correction_out", kSameDtype, 6, 5},  // it writes both as the first
    {"llama::sdpa_with_kv_cache.out", kNotNegative, 5},
    {"llama::update_cache.out", kNotNegative, 2},
};

constexpr ScalarType kLoadedTypes[] = {ScalarType::kUInt8,   ScalarType::kInt8,    ScalarType::kInt16,
                                       ScalarType::kInt32,   ScalarType::kInt64,   ScalarType::kFloat16,
                                       ScalarType::kFloat32, ScalarType::kFloat64, ScalarType::kBFloat16};

std::optional<BrokenRule> check(const Rule& rule, std::span<const KernelArgument> arguments) {
  const KernelArgument& argument = arguments[rule.argument];
  if (rule.kind == kRank && argument.rank && *argument.rank != rule.number) {
    return BrokenRule{text("a tensor of {} dimensions as argument {}", rule.number, rule.argument),
                      text("{}", *argument.rank)};
  }
  if (rule.kind == kLoaded && argument.dtype && std::ranges::count(kLoadedTypes, *argument.dtype) == 0) {
    return BrokenRule{text("a tensor of a dtype that the kernel takes as argument {}", rule.argument),
                      text("{}", name_of(*argument.dtype))};
  }
  if (rule.kind == kSameDtype && argument.dtype && arguments[rule.number].dtype &&
      *argument.dtype != *arguments[rule.number].dtype) {
    return BrokenRule{text("a tensor of the dtype of argument {} as argument {}", rule.number, rule.argument),
                      text("{}", name_of(*argument.dtype))};
  }
  if (rule.kind == kContiguous && argument.is_contiguous == false) {
    return BrokenRule{text("a contiguous tensor as argument {}", rule.argument), "another dim_order"};
  }
  if (rule.kind == kNotNegative && argument.integer && *argument.integer < 0) {
    return BrokenRule{text("at least 0 as argument {}", rule.argument), text("{}", *argument.integer)};
  }
  return std::nullopt;
}

}  // namespace

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
