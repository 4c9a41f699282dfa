// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/json/json_text.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/base/text.h"

namespace etstream {
namespace {

constexpr std::string_view kOtherNan = "nan:";

std::string with_point(std::string_view digits) {
  return text("{}{}", digits, digits.find_first_of(".e") == std::string_view::npos ? ".0" : "");
}

/// Spells a float so that it stays the same when a reader of JSON reads it as a double first.
std::string float_text(float value) {
  std::array<char, 32> digits{};
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  double read = 0;
  std::from_chars(digits.data(), end, read);
  return static_cast<float>(read) == value ? with_point({digits.data(), end}) : json_number(value);
}

double value_of(std::uint64_t bits, unsigned width) {
  if (width == sizeof(float)) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return std::bit_cast<double>(bits);
}

std::uint64_t bits_of(double value, unsigned width) {
  if (width == sizeof(float)) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return std::bit_cast<std::uint64_t>(value);
}

using TapeKind = JsonTape::Kind;

std::uint64_t highest(const InlineType& type) { return type.mask() >> (type.is_signed ? 1 : 0); }

std::int64_t as_signed(std::uint64_t bits, const InlineType& type) {
  const unsigned unused = 64 - 8 * type.width;
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

std::optional<std::uint64_t> integer_bits(const InlineType& type, const JsonTape::Value& value) {
  if (value.kind == TapeKind::kUnsigned)
    return value.large <= highest(type) ? std::optional(value.large) : std::nullopt;
  if (value.kind != TapeKind::kInteger) return std::nullopt;
  const auto bits = static_cast<std::uint64_t>(value.integer);
  if (value.integer >= 0) return bits <= highest(type) ? std::optional(bits) : std::nullopt;
  if (!type.is_signed || ~bits > highest(type)) return std::nullopt;
  return bits & type.mask();
}

template <class Float, class Bits>
std::optional<std::uint64_t> float_bits(const JsonTape::Value& value) {
  Float out = 0;
  if (value.kind == TapeKind::kDouble) {
    out = static_cast<Float>(value.number);
  } else if (value.kind == TapeKind::kInteger) {
    out = static_cast<Float>(value.integer);
  } else if (value.kind == TapeKind::kUnsigned) {
    out = static_cast<Float>(value.large);
  } else {
    return std::nullopt;
  }
  if (std::isinf(out)) return std::nullopt;
  return std::bit_cast<Bits>(out);
}

std::optional<std::uint64_t> enum_bits(const EnumType& type, std::string_view names) {
  std::uint64_t bits = 0;
  while (true) {
    const std::size_t space = type.is_flags ? names.find(' ') : std::string_view::npos;
    const EnumValue* value = type.find(names.substr(0, space));
    if (!value) return std::nullopt;
    bits |= value->bits;
    if (space == std::string_view::npos) return bits;
    names.remove_prefix(space + 1);
  }
}

/// Returns the names of the bits that are set; nothing if one of them has no name.
std::optional<std::string> flag_names(const EnumType& type, std::uint64_t bits) {
  std::string out;
  for (const EnumValue& value : type.values) {
    if (value.bits == 0 || (bits & value.bits) != value.bits) continue;
    out += (out.empty() ? "" : " ") + value.name;
    bits &= ~value.bits;
  }
  if (bits != 0 || out.empty()) return std::nullopt;
  return out;
}

}  // namespace

std::optional<std::string> json_string(std::string_view string) {
  std::string out = "\"";
  while (!string.empty()) {
    const auto [size, code] = character_at(string);
    if (size == 0) return std::nullopt;
    if (code == '"' || code == '\\') {
      out += '\\';
      out += static_cast<char>(code);
    } else if (code == '\n') {
      out += "\\n";
    } else if (is_control(code)) {
      out += text("\\u{:04x}", static_cast<std::uint32_t>(code));
    } else {
      out += string.substr(0, size);
    }
    string.remove_prefix(size);
  }
  out += '"';
  return out;
}

std::string json_number(double value) { return with_point(exact_text(value)); }

std::string json_float(std::uint64_t bits, unsigned width) {
  const double value = value_of(bits, width);
  if (std::isfinite(value)) {
    return width == sizeof(float) ? float_text(static_cast<float>(value)) : json_number(value);
  }
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  if (bits == bits_of(std::numeric_limits<double>::quiet_NaN(), width)) return "\"nan\"";
  return text("\"{}{:x}\"", kOtherNan, bits);
}

std::optional<std::uint64_t> parse_special_float(std::string_view string, unsigned width) {
  using Limits = std::numeric_limits<double>;
  const bool is_negative = string.starts_with('-');
  const std::string_view word = string.substr(is_negative ? 1 : 0);
  const bool is_nan = word == "nan" || word == "NaN";
  if (is_nan || word == "inf" || word == "Infinity") {
    const double value = is_nan ? Limits::quiet_NaN() : Limits::infinity();
    return bits_of(is_negative ? -value : value, width);
  }
  if (!string.starts_with(kOtherNan)) return std::nullopt;
  string.remove_prefix(kOtherNan.size());
  std::uint64_t bits = 0;
  const auto parsed = std::from_chars(string.data(), string.data() + string.size(), bits, 16);
  const bool is_whole = parsed.ec == std::errc() && parsed.ptr == string.data() + string.size();
  if (!is_whole || bits >> (8 * width - 1) > 1 || !std::isnan(value_of(bits, width))) return std::nullopt;
  return bits;
}

std::optional<std::uint64_t> scalar_bits(const Schema& schema, const InlineType& type,
                                         const JsonTape::Value& value) {
  if (type.is_float) {
    if (value.kind == TapeKind::kString) return parse_special_float(value.string, type.width);
    return type.width == sizeof(float) ? float_bits<float, std::uint32_t>(value)
                                       : float_bits<double, std::uint64_t>(value);
  }
  if (type.is_bool && value.kind == TapeKind::kBool) return value.boolean ? 1 : 0;
  if (type.enumeration && value.kind == TapeKind::kString) {
    return enum_bits(schema.enums()[*type.enumeration], value.string);
  }
  return integer_bits(type, value);
}

std::string expected_scalar(const Schema& schema, const InlineType& type) {
  if (type.is_float) return text("a number in the range of {} bytes, 'nan', 'inf' or '-inf'", type.width);
  if (type.is_bool) return "true or false";
  const std::uint64_t most = highest(type);
  const std::string range = text(
      " from {} to {}", type.is_signed ? std::to_string(-1 - static_cast<std::int64_t>(most)) : "0", most);
  if (!type.enumeration) return text("an integer{}", range);
  return text("a name in enum {}, or an integer{}", schema.enums()[*type.enumeration].name, range);
}

std::string shown(const JsonTape::Value& value) {
  switch (value.kind) {
    case TapeKind::kNull:
      return "null";
    case TapeKind::kBool:
      return value.boolean ? "true" : "false";
    case TapeKind::kInteger:
      return std::to_string(value.integer);
    case TapeKind::kUnsigned:
      return std::to_string(value.large);
    case TapeKind::kDouble:
      return json_number(value.number);
    case TapeKind::kString:
      return quote(value.string);
    default:
      return std::string(name_of(value.kind));
  }
}

std::string json_scalar(const Schema& schema, const InlineType& type, std::uint64_t bits) {
  if (type.is_float) return json_float(bits, type.width);
  if (type.is_bool && bits <= 1) return bits == 1 ? "true" : "false";
  if (type.enumeration) {
    const EnumType& declared = schema.enums()[*type.enumeration];
    if (const EnumValue* value = declared.find(bits)) return text("\"{}\"", value->name);
    if (const auto names = flag_names(declared, bits); declared.is_flags && names) {
      return text("\"{}\"", *names);
    }
  }
  return type.is_signed ? std::to_string(as_signed(bits, type)) : std::to_string(bits);
}

}  // namespace etstream
