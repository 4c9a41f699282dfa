// SPDX-License-Identifier: BSD-3-Clause
//
// read_json_values(): gives the packer what a JSON text says, by the schema that is packed.
#pragma once

#include <memory>
#include <string>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "flatbuffer/schema_packer.h"

namespace etstream {

/// Reads the JSON that write_json(), flatc and ExecuTorch's _DataclassEncoder write. Keys come in any order,
/// and need no quotes; null is absent.
///
/// - An enum is a name or a number; several names with a space between them where it has bit_flags.
/// - A bool is true or false, or the number that is stored.
/// - A float is a number, or nan, inf, -nan or -inf, with quotes or without, or "nan:BITS". NaN and Infinity,
///   as Python writes them, are read too.
/// - A union X comes with X_type, a name or a number.
/// - A struct is an object with all its members, or its bytes in base64.
/// - A string that is not UTF-8 is {"base64": "..."}.
/// - A vector of bytes is an array of numbers, base64, or an array of pieces in base64.
/// - Any vector of scalars or structs is {"file": PATH, "offset": N, "size": N}, in bytes, as they lie in the
///   flatbuffer; without size, all the rest of the file. It is read when the flatbuffer is written.
///
/// Paths are relative to `folder`; empty is the current one. `schema` outlives the reader. Errors: those of
/// parse_json; and when what is wrong is asked for, kInvalidArgument for an unknown or repeated key, a
/// value of another kind than its field's or out of its range, a union without its type; those of opening
/// files. They say the file, the line, and the path of what is wrong. Memory: about that of the text, or
/// less.
[[nodiscard]] Result<std::unique_ptr<ValueReader>> read_json_values(const Schema& schema,
                                                                    const ByteSource& json,
                                                                    const std::string& folder);

}  // namespace etstream
