// SPDX-License-Identifier: BSD-3-Clause
//
// Methods that a program loses, with all that only they use.
#pragma once

#include <string>
#include <vector>

#include "etstream/result.h"
#include "pte/rewrite/editable_program.h"

namespace etstream {

/// Takes the methods of these names out of the program, with the constants, mutable data and delegates' data
/// that only they use, and the named data whose key the data of their delegates holds and that of no other.
/// Errors: kNotFound, naming the methods that there are; kInvalidArgument where none would be left; those of
/// reading the data of delegates.
[[nodiscard]] Result<void> drop_methods(EditableProgram& editable, const std::vector<std::string>& names);

}  // namespace etstream
