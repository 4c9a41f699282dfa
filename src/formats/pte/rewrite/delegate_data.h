// SPDX-License-Identifier: BSD-3-Clause
//
// The data of a program's delegates, moved into the flatbuffer or out of it.
#pragma once

#include "etstream/result.h"
#include "formats/pte/rewrite/editable_program.h"

namespace etstream {

/// Returns the data of one delegate.
[[nodiscard]] const ByteSource& data_of(const EditableProgram& editable, const DelegateReference& reference);

/// Moves all delegates' data into the flatbuffer, in their order. Delegates of one segment share an entry.
void move_delegates_inline(EditableProgram& editable);

/// Moves all delegates' data, except empty data, into segments, before those of named data. Equal data shares
/// a segment. Errors: those of reading the data.
[[nodiscard]] Result<void> move_delegates_to_segments(EditableProgram& editable);

/// Removes the data, in the flatbuffer or in segments, that delegates in `gone` refer to and no delegate of
/// the program does.
void remove_delegate_data(EditableProgram& editable, const std::vector<DelegateReference>& gone);

}  // namespace etstream
