// SPDX-License-Identifier: BSD-3-Clause
//
// Rules for tensors' names: ready-made ones, or those in a file.
#pragma once

#include <string>

#include "etstream/rename_rules.h"
#include "etstream/result.h"

namespace etstream {

/// The ready-made rules of this name, or those in the file at this path.
[[nodiscard]] Result<RenameRules> open_rename_rules(const std::string& name);

}  // namespace etstream
