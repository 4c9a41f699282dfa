// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the delegates of a method can be loaded, and what their calls have to bring.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pte/method_calls.h"
#include "pte/xnnpack_verify.h"

namespace etstream {

/// Memory: of the largest graph of XNNPACK's, and 8 bytes a delegate and an argument. Errors: those of
/// Program.
class MethodDelegates {
 public:
  /// Adds to the findings of `calls`, which outlives it, what ExecuTorch would refuse or end on.
  [[nodiscard]] Result<void> verify(MethodCalls& calls);

  /// What calls of one of XNNPACK's have to bring; null where that is not known.
  [[nodiscard]] const std::vector<XnnpackArgument>* arguments_of(std::int32_t delegate) const {
    return arguments_[static_cast<std::size_t>(delegate)];
  }

 private:
  static Result<void> verify_compile_specs(MethodCalls& calls, const pte::Delegate& delegate);
  /// What calls of it have to bring, where that is known. `name` is what messages call its data, which
  /// several delegates may share.
  Result<const std::vector<XnnpackArgument>*> verify_payload(MethodCalls& calls,
                                                             const pte::Delegate& delegate,
                                                             const std::string& id, const std::string& name);

  /// By where the delegates have their data: whether in a segment, and which.
  std::map<std::pair<bool, std::uint32_t>, std::vector<XnnpackArgument>> payloads_;
  std::vector<const std::vector<XnnpackArgument>*> arguments_;  // of the delegates
};

}  // namespace etstream
