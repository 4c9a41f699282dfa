// SPDX-License-Identifier: BSD-3-Clause
//
// What kernels of ExecuTorch 1.5.1 end the process over, beyond the kinds of their arguments: dtypes, sizes
// and numbers (ET_CHECK in kernels/quantized/cpu, promoteTypes in runtime/core).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/scalar_type.h"
#include "pte/operator_signatures.h"

namespace etstream {

/// As far as it is known before the call.
struct KernelArgument {
  struct Tensor {
    ScalarType dtype{};
    std::vector<std::int32_t> sizes;      // or the most that they may be
    bool is_static = false;               // or a constant: it has these sizes
    std::vector<std::int64_t> constants;  // its elements, of a small constant of integers
  };
  std::optional<Tensor> tensor;
  std::optional<std::int64_t> integer;
};

struct BrokenRule {
  std::string expected;
  std::string found;
};

/// Whether there are rules for an operator's kernel.
[[nodiscard]] bool has_kernel_rules(std::string_view name, Signature signature);

/// Whether an operator finds elements by the indices in tensors, which may not change meanwhile.
[[nodiscard]] bool reads_indices(std::string_view name);

/// Which argument of an operator has integers that are used as indices without a check, or with one that ends
/// the process.
[[nodiscard]] std::optional<std::size_t> argument_of_indices(std::string_view name);

/// The first that `arguments`, as many as the operator has, break.
[[nodiscard]] std::optional<BrokenRule> find_broken_rule(std::string_view name, Signature signature,
                                                         std::span<const KernelArgument> arguments);

}  // namespace etstream
