// SPDX-License-Identifier: BSD-3-Clause
//
// The data of a program's delegates, moved into the flatbuffer or out of it.
#pragma once

#include "etstream/result.h"
#include "pte/rewrite/editable_program.h"

namespace etstream {

/// That of one delegate.
[[nodiscard]] const ByteSource& data_of(const EditableProgram& editable, const DelegateReference& reference);

/// Moves all of it into the flatbuffer, in the order of the delegates. Those of one segment share an entry.
void move_delegates_inline(EditableProgram& editable);

/// Moves all of it but empty data into segments, before those of named data; equal data shares a segment.
/// Errors: those of reading the data.
[[nodiscard]] Result<void> move_delegates_to_segments(EditableProgram& editable);

/// Leaves out data in the flatbuffer, and segments of delegates, that no delegate of the program refers to
/// but one of `gone` does.
void remove_delegate_data(EditableProgram& editable, const std::vector<DelegateReference>& gone);

}  // namespace etstream
