// SPDX-License-Identifier: BSD-3-Clause
#include "present/print.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <system_error>

namespace etstream {
namespace {

bool leaves_out_reports = false;

}  // namespace

std::string for_terminal(std::string_view words) {
  std::string out;
  out.reserve(words.size());
  for (std::size_t end = 0; (end = words.find('\n')) != std::string_view::npos;
       words.remove_prefix(end + 1)) {
    append_printable(out, words.substr(0, end));
    out += '\n';
  }
  append_printable(out, words);
  return out;
}

std::string one_line(std::string_view words) {
  std::string out;
  append_printable(out, words);
  return out;
}

void leave_out_reports() noexcept { leaves_out_reports = true; }

void print_to(std::FILE* file, std::string_view words) {
  if (file == stdout && leaves_out_reports) return;
  const std::string out = for_terminal(words);
  std::fwrite(out.data(), 1, out.size(), file);
}

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
  for (; bytes >= 1024 && bytes % 1024 == 0; ++unit) bytes /= 1024;
  return text("{}{}", bytes, kUnits[unit]);
}

/// Makes the error about a number that is less than the least. If it has no unit, suggests one: "4G is 4
/// GiB".
Error too_small(std::uint64_t number, bool has_unit, std::string_view words, std::uint64_t least) {
  Error out =
      make_error(ErrorCode::kInvalidArgument, "expected at least {}, found {}", in_unit(least), quote(words));
  if (has_unit || number == 0) return out;
  constexpr std::uint64_t kMostGibibytes = 1024;
  const char unit = number < kMostGibibytes ? 'G' : 'M';
  out.message += ", which is bytes";
  return with_advice(std::move(out), {text("{}{} is {} {}iB", number, unit, number, unit)});
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
    return with_advice(make_error(ErrorCode::kInvalidArgument, "{}, found {}", kExpected, quote(words)),
                       {"a smaller unit has a whole number"});
  }
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  const auto bits = bits_of(unit);
  if (!bits) {
    return with_advice(make_error(ErrorCode::kInvalidArgument, "{}, found {}", kExpected, quote(words)),
                       {"units are K, M, G, T, P and E"});
  }
  if (failed != std::errc() || number > std::numeric_limits<std::uint64_t>::max() >> *bits ||
      number << *bits > bounds.most) {
    return make_error(ErrorCode::kInvalidArgument, "expected at most {}, found {}", in_unit(bounds.most),
                      quote(words));
  }
  const std::uint64_t bytes = number << *bits;
  if (bytes < bounds.least) return too_small(number, !unit.empty(), words, bounds.least);
  return bytes;
}

}  // namespace etstream
