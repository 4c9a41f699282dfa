// SPDX-License-Identifier: BSD-3-Clause
//
// Rules for tensors' names: ready-made ones, or those in a file.
#pragma once

#include <string>

#include "etstream/key_rules.h"
#include "etstream/result.h"

namespace etstream {

/// Those that go by `name`; where none do, those in the file of that path.
[[nodiscard]] Result<KeyRules> open_key_rules(const std::string& name);

}  // namespace etstream
