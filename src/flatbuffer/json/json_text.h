// SPDX-License-Identifier: BSD-3-Clause
//
// How values are spelled in JSON so that they read back as they were, and what they read back as.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "flatbuffer/json/json_reader.h"
#include "flatbuffer/schema.h"

namespace etstream {

/// In double quotes; none if it is not UTF-8.
[[nodiscard]] std::optional<std::string> json_string(std::string_view string);

/// A finite number, as short as reads back as the same and not as an integer.
[[nodiscard]] std::string json_number(double value);

/// A float's or double's bits: a number, or one of the strings "nan", "inf", "-inf", and "nan:BITS" for other
/// NaNs than the usual one, BITS in hexadecimal. `width` is 4 or 8, in bytes.
[[nodiscard]] std::string json_float(std::uint64_t bits, unsigned width);
/// The bits of what those strings spell.
[[nodiscard]] std::optional<std::uint64_t> parse_special_float(std::string_view string, unsigned width);

/// How write_json() spells a scalar of `type`.
[[nodiscard]] std::string json_scalar(const Schema& schema, const InlineType& type, std::uint64_t bits);

/// The other way: the bits of a scalar, higher ones zero; none if the value is none, or is out of its range.
[[nodiscard]] std::optional<std::uint64_t> scalar_bits(const Schema& schema, const InlineType& type,
                                                       const JsonTape::Value& value);

/// What would have been one, for messages: "an integer from 0 to 255".
[[nodiscard]] std::string expected_scalar(const Schema& schema, const InlineType& type);

/// What a value is, for messages: "256", "'abc'", "an object".
[[nodiscard]] std::string shown(const JsonTape::Value& value);

}  // namespace etstream
