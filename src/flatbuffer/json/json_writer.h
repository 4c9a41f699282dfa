// SPDX-License-Identifier: BSD-3-Clause
//
// Writes a flatbuffer of any schema as JSON from which JsonValueReader and pack() make its bytes again, as
// far as their order is the packer's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "etstream/result.h"
#include "etstream/sink.h"
#include "flatbuffer/flatbuffer_view.h"

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

}  // namespace etstream
