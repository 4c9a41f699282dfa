// SPDX-License-Identifier: BSD-3-Clause
//
// A program's named data: taken out of it, and added.
#pragma once

#include <map>
#include <set>
#include <string>

#include "etstream/result.h"
#include "formats/pte/rewrite/editable_program.h"

namespace etstream {

/// Removes these keys from the program, with the segments that nothing else uses.
void remove_named_data(EditableProgram& editable, const std::set<std::string>& keys);

/// Adds a key for the data of a segment.
void add_named_data(EditableProgram& editable, const std::string& key, std::uint32_t segment);

/// Moves metadata, and the segments that only it uses, behind all other named data, where add_metadata() puts
/// it.
void move_metadata_to_the_end(EditableProgram& editable);

/// Adds named data under these keys with the prefix of metadata. It replaces data under the same keys. Bytes
/// that named data has already are shared, as ExecuTorch does. Errors: kInvalidArgument for an empty key;
/// those of reading.
[[nodiscard]] Result<void> add_metadata(EditableProgram& editable,
                                        const std::map<std::string, ByteSource>& metadata);

}  // namespace etstream
