// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/json_text.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include "base/text.h"
#include "base/try.h"

namespace etstream {
namespace {

constexpr std::size_t kPassedOn = std::size_t{64} << 10;
constexpr std::string_view kOtherNan = "nan:";

template <class T, class... Base>
std::string digits_of(T value, Base... base) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value, base...).ptr};
}

std::string with_point(const std::string& digits) {
  return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
}

/// Through a double, as JSON's readers take numbers, it must not become another float.
std::string float_text(float value) {
  std::string digits = with_point(digits_of(value));
  double read = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), read);
  return static_cast<float>(read) == value ? digits : json_number(value);
}

double value_of(std::uint64_t bits, unsigned width) {
  if (width == sizeof(float)) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return std::bit_cast<double>(bits);
}

std::uint64_t bits_of(double value, unsigned width) {
  if (width == sizeof(float)) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return std::bit_cast<std::uint64_t>(value);
}

}  // namespace

std::optional<std::string> json_string(std::string_view string) {
  if (!is_utf8(string)) return std::nullopt;
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : string) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

std::string json_number(double value) { return with_point(digits_of(value)); }

std::string json_float(std::uint64_t bits, unsigned width) {
  const double value = value_of(bits, width);
  if (std::isfinite(value)) {
    return width == sizeof(float) ? float_text(static_cast<float>(value)) : json_number(value);
  }
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  if (bits == bits_of(std::numeric_limits<double>::quiet_NaN(), width)) return "\"nan\"";
  return text("\"{}{}\"", kOtherNan, digits_of(bits, 16));
}

std::optional<std::uint64_t> parse_special_float(std::string_view string, unsigned width) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (string == "inf") return bits_of(kInfinity, width);
  if (string == "-inf") return bits_of(-kInfinity, width);
  if (string == "nan") return bits_of(std::numeric_limits<double>::quiet_NaN(), width);
  if (!string.starts_with(kOtherNan)) return std::nullopt;
  string.remove_prefix(kOtherNan.size());
  std::uint64_t bits = 0;
  const auto parsed = std::from_chars(string.data(), string.data() + string.size(), bits, 16);
  const bool is_whole = parsed.ec == std::errc() && parsed.ptr == string.data() + string.size();
  if (!is_whole || bits >> (8 * width - 1) > 1 || !std::isnan(value_of(bits, width))) return std::nullopt;
  return bits;
}

void JsonText::begin(char bracket, bool on_one_line) {
  separate();
  buffer_ += bracket;
  levels_.push_back({on_one_line || (!levels_.empty() && levels_.back().on_one_line), true});
}

void JsonText::end(char bracket) {
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.is_empty && !level.on_one_line) new_line();
  buffer_ += bracket;
}

void JsonText::key(std::string_view name) {
  separate();
  buffer_ += '"';
  buffer_ += name;
  buffer_ += compact_ ? "\":" : "\": ";
  after_key_ = true;
}

void JsonText::value(std::string_view spelled) {
  separate();
  buffer_ += spelled;
}

/// What stands between a value or key and what is before it.
void JsonText::separate() {
  if (after_key_ || levels_.empty()) {
    after_key_ = false;
    return;
  }
  Level& level = levels_.back();
  if (!level.is_empty) buffer_ += compact_ || !level.on_one_line ? "," : ", ";
  level.is_empty = false;
  if (!level.on_one_line) new_line();
}

void JsonText::new_line() {
  if (compact_) return;
  buffer_ += '\n';
  buffer_.append(2 * levels_.size(), ' ');
}

Result<void> JsonText::pass_on() { return buffer_.size() < kPassedOn ? Result<void>() : flush(); }

Result<void> JsonText::finish() {
  buffer_ += '\n';
  return flush();
}

Result<void> JsonText::flush() {
  ETSTREAM_TRY(sink_.append(ByteSource::memory(std::as_bytes(std::span(buffer_)))));
  buffer_.clear();
  return {};
}

}  // namespace etstream
