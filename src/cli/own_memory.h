// SPDX-License-Identifier: BSD-3-Clause
//
// What this process takes.
#pragma once

#include <cstdint>

namespace etstream::cli {

/// Memory in bytes that no file backs; 0 where the system doesn't tell.
[[nodiscard]] std::uint64_t own_anonymous_memory() noexcept;

}  // namespace etstream::cli
