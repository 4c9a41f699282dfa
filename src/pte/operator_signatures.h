// SPDX-License-Identifier: BSD-3-Clause
//
// The operators that ExecuTorch has kernels for, and what the arguments of each are.
#pragma once

#include <optional>
#include <string_view>

namespace etstream {

/// Lines "NAMESPACE::NAME.OVERLOAD LETTERS", sorted by name, after an empty one. A letter is an argument:
///
///     T tensor   L list of tensors   O list of optional tensors
///     I Int      D Double            B Bool                       S any of these
///     N String   A IntList           F DoubleList                 G BoolList
///     M tensor whose data is not read      V tensor that gets another's data      * what the call gives
///
/// A small one may be Null too. ">" is before what the call writes to.
extern const std::string_view kOperatorSignatures;

/// The letters of `name`; none of an operator that is not among them.
[[nodiscard]] std::optional<std::string_view> find_signature(std::string_view name);

}  // namespace etstream
