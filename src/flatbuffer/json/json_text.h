// SPDX-License-Identifier: BSD-3-Clause
//
// Functions that spell values in JSON so that they read back as they were, and functions that read them back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "flatbuffer/json/json_reader.h"
#include "flatbuffer/schema.h"

namespace etstream {

/// Spells a string in double quotes; returns nothing if it is not UTF-8.
[[nodiscard]] std::optional<std::string> json_string(std::string_view string);

/// Spells a finite number with the fewest digits that read back as the same, and not as an integer.
[[nodiscard]] std::string json_number(double value);

/// Spells the bits of a float or double: as a number, or one of the strings "nan", "inf", "-inf", and
/// "nan:BITS" for other NaNs than the usual one, BITS in hexadecimal. `width` is 4 or 8, in bytes.
[[nodiscard]] std::string json_float(std::uint64_t bits, unsigned width);
/// Returns the bits that one of these strings spells.
[[nodiscard]] std::optional<std::uint64_t> parse_special_float(std::string_view string, unsigned width);

/// Spells a scalar of `type` as write_json() does.
[[nodiscard]] std::string json_scalar(const Schema& schema, const InlineType& type, std::uint64_t bits);

/// Returns the bits of the scalar that `value` spells, higher ones zero; nothing if it spells none, or one
/// out of range.
[[nodiscard]] std::optional<std::uint64_t> scalar_bits(const Schema& schema, const InlineType& type,
                                                       const JsonTape::Value& value);

/// Returns what messages say they expected for a scalar of `type`: "an integer from 0 to 255".
[[nodiscard]] std::string expected_scalar(const Schema& schema, const InlineType& type);

/// Returns what messages call a value: "256", "'abc'", "an object".
[[nodiscard]] std::string shown(const JsonTape::Value& value);

}  // namespace etstream
