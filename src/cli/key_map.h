// SPDX-License-Identifier: BSD-3-Clause
//
// A JSON object of strings: keys of constants.
#pragma once

#include <map>
#include <string>

#include "etstream/result.h"

namespace etstream::cli {

/// Error: kInvalidArgument for anything else than an object of strings; kNotFound, kIo.
[[nodiscard]] Result<std::map<std::string, std::string>> read_key_map(const std::string& path);

}  // namespace etstream::cli
