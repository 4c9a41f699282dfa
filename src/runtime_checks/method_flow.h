// SPDX-License-Identifier: BSD-3-Clause
//
// A walk through a method's instructions that follows their effects on its values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime_checks/method_calls.h"
#include "runtime_checks/value_flow.h"

namespace etstream {

/// A bit among the kinds of a value: it is a tensor to which nothing has been written in a run.
constexpr Kinds kEmpty = 0x4000;
/// Another one: it is a tensor of a quantized dtype.
constexpr Kinds kQuantized = 0x2000;

/// Follows the kinds of the values through the instructions.
class MethodFlow {
 public:
  /// Marks the values that are replaced or results. `calls` outlives it.
  [[nodiscard]] static Result<MethodFlow> follow(MethodCalls& calls);

  [[nodiscard]] ValueFlow& values() noexcept { return *flow_; }

 private:
  explicit MethodFlow(MethodCalls& calls) : calls_(&calls) {}

  Result<void> note(const pte::Call& call);
  Result<void> note_kernel(const pte::Call& call);
  Result<void> begin();
  Result<void> describe(const pte::Call& call, std::uint32_t first);
  Result<void> describe_jump(const pte::Call& call, std::uint32_t first);
  Result<void> describe_kernel(const pte::Call& call);
  Result<void> describe_number(const Callee& callee, const NumberList<std::int32_t>& args);
  Result<void> describe_written(const Callee& callee, const NumberList<std::int32_t>& args);
  Result<void> fill(std::int32_t value);
  [[nodiscard]] Result<Kinds> kinds_of_element(std::int32_t value) const;

  MethodCalls* calls_;
  std::optional<ValueFlow> flow_;
};

}  // namespace etstream
