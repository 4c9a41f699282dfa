// SPDX-License-Identifier: BSD-3-Clause
//
// The data that a program's delegates ask for by name.
#pragma once

#include <set>
#include <string>

#include "pte/rewrite/editable_program.h"

namespace etstream {

/// Takes the data of these keys out of the program, with the segments that no other key and nothing else
/// uses.
void remove_named_data(EditableProgram& editable, const std::set<std::string>& keys);

}  // namespace etstream
