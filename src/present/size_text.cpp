// SPDX-License-Identifier: BSD-3-Clause
#include "present/size_text.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>

#include "core/base/text.h"

namespace etstream {
namespace {

/// The letters of units. The place of a letter is the power of 1024 that it stands for; the first stands for
/// bytes.
constexpr std::string_view kUnits = "BKMGTPE";
constexpr unsigned kUnitBits = 10;

constexpr std::string_view kExpected = "expected a size such as 4G, 512M or 16K";

/// Returns the number of bits by which a number with this unit is shifted; nothing for an unknown unit.
std::optional<unsigned> bits_of(std::string_view unit) {
  if (unit.empty()) return 0U;
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
  const std::size_t place = kUnits.find(upper(unit.front()));
  std::string rest;
  for (const char c : unit.substr(1)) rest += upper(c);
  const bool is_known = rest.empty() || (place > 0 && (rest == "B" || rest == "I" || rest == "IB"));
  if (place == std::string_view::npos || !is_known) return std::nullopt;
  return kUnitBits * static_cast<unsigned>(place);
}

/// Returns a size in its largest unit: "16K", "1M", "17B".
std::string in_unit(std::uint64_t bytes) {
  std::size_t unit = 0;
  for (; bytes != 0 && bytes % 1024 == 0 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return text("{}{}", bytes, kUnits[unit]);
}

/// Returns a suggestion if a number without a unit is less than the least: "; 4G is 4 GiB".
std::string meant(std::uint64_t number, bool has_unit) {
  constexpr std::uint64_t kMostGibibytes = 1024;
  if (has_unit || number == 0) return "";
  const char unit = number < kMostGibibytes ? 'G' : 'M';
  return text(", which is bytes; {}{} is {} {}iB", number, unit, number, unit);
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view words, SizeBounds bounds) {
  std::uint64_t number = 0;
  const char* const end = words.data() + words.size();
  const auto [behind, failed] = std::from_chars(words.data(), end, number);
  std::string_view unit(behind, static_cast<std::size_t>(end - behind));
  if (failed == std::errc::invalid_argument) {
    return make_error(ErrorCode::kInvalidArgument, "{}, found {}", kExpected, quote(words));
  }
  if (unit.starts_with('.') || unit.starts_with(',')) {
    return make_error(ErrorCode::kInvalidArgument, "{}, found {}; a smaller unit has a whole number",
                      kExpected, quote(words));
  }
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  const auto bits = bits_of(unit);
  if (!bits) {
    return make_error(ErrorCode::kInvalidArgument, "{}, found {}; units are K, M, G, T, P and E", kExpected,
                      quote(words));
  }
  if (failed != std::errc() || number > std::numeric_limits<std::uint64_t>::max() >> *bits ||
      number << *bits > bounds.most) {
    return make_error(ErrorCode::kInvalidArgument, "expected at most {}, found {}", in_unit(bounds.most),
                      quote(words));
  }
  const std::uint64_t bytes = number << *bits;
  if (bytes < bounds.least) {
    return make_error(ErrorCode::kInvalidArgument, "expected at least {}, found {}{}", in_unit(bounds.least),
                      quote(words), meant(number, !unit.empty()));
  }
  return bytes;
}

}  // namespace etstream
