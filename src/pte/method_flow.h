// SPDX-License-Identifier: BSD-3-Clause
//
// What a method's instructions make of its values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pte/method_calls.h"
#include "pte/value_flow.h"

namespace etstream {

/// Among the kinds of a value, that it is a tensor that nothing was written to in a run.
constexpr Kinds kEmpty = 0x4000;

/// Also of tensors of integers that kernels do not check: whether they still hold what was written to them,
/// or another tensor's bytes. At most 16 of these are followed.
class MethodFlow {
 public:
  /// Marks those of the slots that are replaced or results. `calls` outlives it.
  [[nodiscard]] static Result<MethodFlow> follow(MethodCalls& calls);

  [[nodiscard]] ValueFlow& values() noexcept { return *flow_; }
  /// Whether another tensor may have been written over `value`, such a tensor, or what is to be written there
  /// may come later only. Of a buffer, which an operator changes in place, or that another method writes to,
  /// that is not known.
  [[nodiscard]] bool is_stale(std::int32_t value) const;

 private:
  struct Indices {
    std::int32_t value = 0;
    PlannedPlace place;
    bool is_given = false;  // before a run
    bool is_input = false;  // of the method
  };

  explicit MethodFlow(MethodCalls& calls) : calls_(&calls) {}

  Result<void> note(const pte::Call& call);
  Result<void> note_kernel(const pte::Call& call);
  Result<void> note_indices(std::int32_t value);
  Result<void> begin();
  Result<void> describe(const pte::Call& call, std::uint32_t first);
  Result<void> describe_jump(const pte::Call& call, std::uint32_t first);
  Result<void> describe_kernel(const pte::Call& call);
  Result<void> describe_number(const Callee& callee, const NumberList<std::int32_t>& args);
  Result<void> describe_written(const Callee& callee, const NumberList<std::int32_t>& args);
  Result<void> fill(std::int32_t value);
  Result<void> overwrite_indices(std::int32_t value, bool is_sure);
  [[nodiscard]] Result<Kinds> kinds_of_element(std::int32_t value) const;
  [[nodiscard]] std::uint32_t cell_of(std::size_t index) const {
    return calls_->values() + static_cast<std::uint32_t>(index);
  }

  MethodCalls* calls_;
  std::vector<Indices> indices_;
  std::optional<ValueFlow> flow_;  // of the values, and of what is in `indices_` behind them
};

}  // namespace etstream
