// SPDX-License-Identifier: BSD-3-Clause
//
// Metadata that a program gets.
#pragma once

#include <map>
#include <string>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "pte/rewrite/editable_program.h"

namespace etstream {

/// Adds named data under these keys with the prefix of metadata, in place of what has them. Bytes that named
/// data has already are shared, as ExecuTorch does. Errors: kInvalidArgument for a key without characters;
/// those of reading.
[[nodiscard]] Result<void> add_metadata(EditableProgram& editable,
                                        const std::map<std::string, ByteSource>& metadata);

}  // namespace etstream
