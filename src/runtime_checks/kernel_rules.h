// SPDX-License-Identifier: BSD-3-Clause
//
// Rules for arguments beyond their kinds in the schemas: kernels of ExecuTorch 1.5.1 read or write outside of
// their tensors' memory if an argument breaks one. There is no rule for an argument that a kernel refuses
// itself, or that ends the process.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/tensor.h"

namespace etstream {

/// An argument, as far as it is known before the call.
struct KernelArgument {
  std::optional<TensorLayout> tensor = {};
  bool has_fixed_sizes = false;  // a tensor; otherwise its sizes are the most that it may have
  std::optional<std::int64_t> integer = {};
  /// The items of a list of optional tensors, without one that is not known.
  std::vector<std::optional<TensorLayout>> items = {};
};

struct BrokenRule {
  std::string expected;
  std::string found;
};

/// Returns whether there are rules for an operator's kernel.
[[nodiscard]] bool has_kernel_rules(std::string_view name);

/// Returns the first rule that `arguments`, as many as the operator has, break.
[[nodiscard]] std::optional<BrokenRule> find_broken_rule(std::string_view name,
                                                         std::span<const KernelArgument> arguments);

/// Names an argument that an operator's kernel takes unchecked, and that no check of a file can know, such as
/// "indices"; returns nothing if no such argument is known.
[[nodiscard]] std::optional<std::string_view> taken_unchecked(std::string_view name);

/// Returns whether an operator finds elements by the indices in tensors, which may not change meanwhile.
[[nodiscard]] bool reads_indices(std::string_view name);

}  // namespace etstream
