// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>

namespace etstream::cli {

/// The file that this process runs, where links lead to; empty where the system doesn't tell.
[[nodiscard]] std::filesystem::path own_program();

}  // namespace etstream::cli
