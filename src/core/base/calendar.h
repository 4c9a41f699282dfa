// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ctime>
#include <optional>

namespace etstream {

/// Returns the date and the time of day in UTC at `seconds` after the start of 1970; nothing if the year is
/// out of bounds.
[[nodiscard]] std::optional<std::tm> utc_calendar(std::time_t seconds);

/// Returns the same in the local time zone.
[[nodiscard]] std::optional<std::tm> local_calendar(std::time_t seconds);

}  // namespace etstream
