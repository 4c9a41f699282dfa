// SPDX-License-Identifier: BSD-3-Clause
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string_view>

#include "base/calendar.h"
#include "base/text.h"
#include "etstream/native_package.h"

namespace etstream {
namespace {

ArchiveTime archive_time(const std::tm& time) {
  return {time.tm_year + 1900, time.tm_mon + 1, time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec};
}

}  // namespace

Result<ArchiveTime> current_archive_time() {
  const char* const given =
      std::getenv("SOURCE_DATE_EPOCH");  // NOLINT(concurrency-mt-unsafe): see the header
  if (given == nullptr) {
    const auto local = local_calendar(std::time(nullptr));
    if (!local) return make_error(ErrorCode::kUnsupported, "the time of day can't be told");
    return archive_time(*local);
  }
  const std::string_view digits = given;
  std::time_t seconds = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), seconds);
  const bool is_read = read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  const auto utc = is_read ? utc_calendar(seconds) : std::nullopt;
  if (utc) return archive_time(*utc);
  return make_error(ErrorCode::kInvalidArgument, "SOURCE_DATE_EPOCH: expected a number of seconds, found {}",
                    quote(digits));
}

}  // namespace etstream
