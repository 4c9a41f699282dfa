// SPDX-License-Identifier: BSD-3-Clause
//
// Writes a flatbuffer of any schema as JSON from which read_json_values() and pack() make its bytes again, as
// far as their order is the packer's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/result.h"
#include "etstream/sink.h"
#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/json/json_reader.h"
#include "flatbuffer/schema.h"

namespace etstream {

/// The place where vectors that are left out of the JSON are found again.
struct JsonReferences {
  std::string file;          // as the JSON's readers will open it; UTF-8
  std::uint64_t offset = 0;  // where in that file the view's begins, in bytes
  std::uint64_t over = 0;    // vectors of more bytes than that are left out
};

struct JsonOptions {
  bool compact = false;   // without white space
  bool defaults = false;  // scalars that are absent too, with their default, unless it is a NaN
  std::optional<JsonReferences> references = {};
};

/// Appends the fields that are present, deprecated ones too, in the order of their ids to `sink`, and does
/// not commit it. Doubles and floats have the fewest digits that read back as the same; others are "nan",
/// "inf", "-inf", and "nan:BITS" for NaNs other than the usual one. Enums go by name if they have one.
/// Vectors of bytes are base64; those over 3 MiB an array of pieces. A struct whose padding is not zero is
/// base64 of all its bytes, a string that is not UTF-8 {"base64": "..."}.
///
/// A shared object is written at each use. So sharing is limited here for vectors of bytes too: a file that
/// verify_flatbuffer() accepts can be refused. Memory: 128 KiB, and the longest string. Errors:
/// kCorrupt, those of FlatbufferView; kInvalidArgument for a reference that is not UTF-8; the sink's.
[[nodiscard]] Result<void> write_json(const FlatbufferView& view, const JsonOptions& options, Sink& sink);

// Functions that spell values in JSON so that they read back as they were, and functions that read them back.

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

/// Appends the flatbuffer of the root type of `parser`, a flatbuffers::Parser, to `out` as JSON. Returns
/// false if it can't be text. The installed FlatBuffers has GenerateText(), true for success, up to 23.3, and
/// GenText(), null for success, from 23.5 on.
template <class Parser>
[[nodiscard]] bool generate_text(const Parser& parser, const void* flatbuffer, std::string& out) {
  if constexpr (requires { GenText(parser, flatbuffer, &out); }) {
    return GenText(parser, flatbuffer, &out) == nullptr;
  } else {
    return GenerateText(parser, flatbuffer, &out);
  }
}

// Base64 (RFC 4648, with padding): bytes in text.

/// Appends `bytes` to `out`. Pieces of a multiple of 3 bytes can follow one another.
void append_base64(std::span<const std::byte> bytes, std::string& out);

/// Appends the bytes that `text` encodes to `out`. False, with `out` unchanged, unless `text` is base64 as
/// append_base64() writes it.
[[nodiscard]] bool decode_base64(std::string_view text, std::vector<std::byte>& out);

}  // namespace etstream
