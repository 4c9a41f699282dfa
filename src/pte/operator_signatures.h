// SPDX-License-Identifier: BSD-3-Clause
//
// The operators that ExecuTorch has kernels for, and what the arguments of each are.
#pragma once

#include <string_view>

namespace etstream {

/// "LETTERS NAMESPACE::NAME.OVERLOAD NAMESPACE::NAME.OVERLOAD..." and again, with white space between. A
/// letter is an argument:
///
///     T tensor   L list of tensors   O list of optional tensors
///     W tensor   U list of tensors   that the call writes to
///     I Int      D Double            B Bool                       S any of these
///     N String   A IntList           F DoubleList                 G BoolList
///     M tensor whose data is not read      V tensor that gets another's data      * what the call gives
///
/// A small one may be Null too.
extern const std::string_view kOperatorSignatures;

[[nodiscard]] constexpr bool is_written(char letter) { return letter == 'W' || letter == 'U'; }

}  // namespace etstream
