// SPDX-License-Identifier: BSD-3-Clause
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "base/text.h"
#include "etstream/native_package.h"

namespace etstream {
namespace {

ArchiveTime archive_time(const std::tm& time) {
  return {time.tm_year + 1900, time.tm_mon + 1, time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec};
}

}  // namespace

Result<ArchiveTime> current_archive_time() {
  std::tm time{};
  const char* const given =
      std::getenv("SOURCE_DATE_EPOCH");  // NOLINT(concurrency-mt-unsafe): see the header
  if (given == nullptr) {
    const std::time_t now = std::time(nullptr);
    ::localtime_r(&now, &time);
    return archive_time(time);
  }
  const std::string_view digits = given;
  std::time_t seconds = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), seconds);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size() ||
      ::gmtime_r(&seconds, &time) == nullptr) {
    return make_error(ErrorCode::kInvalidArgument,
                      "SOURCE_DATE_EPOCH: expected a number of seconds, found {}", quote(digits));
  }
  return archive_time(time);
}

}  // namespace etstream
