// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ctime>
#include <optional>

namespace etstream {

/// Of a time in seconds since 1970, in UTC; nothing where its year is out of bounds.
[[nodiscard]] std::optional<std::tm> utc_calendar(std::time_t seconds);

/// The same in the local time zone.
[[nodiscard]] std::optional<std::tm> local_calendar(std::time_t seconds);

}  // namespace etstream
