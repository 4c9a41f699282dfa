// SPDX-License-Identifier: BSD-3-Clause
//
// Scalars in JSON, by their types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "flatbuffer/json_tape.h"
#include "flatbuffer/schema.h"

namespace etstream {

/// The bits of a scalar of `type`, higher ones zero; none if the value is none, or is out of its range.
[[nodiscard]] std::optional<std::uint64_t> scalar_bits(const Schema& schema, const InlineType& type,
                                                       const JsonTape::Value& value);

/// What would have been one, for messages: "an integer from 0 to 255".
[[nodiscard]] std::string expected_scalar(const Schema& schema, const InlineType& type);

/// What a value is, for messages: "256", "'abc'", "an object".
[[nodiscard]] std::string shown(const JsonTape::Value& value);

/// The other way: how write_json() spells a scalar.
[[nodiscard]] std::string json_scalar(const Schema& schema, const InlineType& type, std::uint64_t bits);

}  // namespace etstream
