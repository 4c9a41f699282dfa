// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/calendar.h"

namespace etstream {

std::optional<std::tm> utc_calendar(std::time_t seconds) {
  std::tm found{};
  return ::gmtime_r(&seconds, &found) ? std::optional(found) : std::nullopt;
}

std::optional<std::tm> local_calendar(std::time_t seconds) {
  std::tm found{};
  return ::localtime_r(&seconds, &found) ? std::optional(found) : std::nullopt;
}

}  // namespace etstream
