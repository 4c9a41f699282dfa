// SPDX-License-Identifier: BSD-3-Clause
//
// The data of a program's delegates, moved into the flatbuffer or out of it.
#pragma once

#include "etstream/result.h"
#include "pte/rewrite/program_draft.h"

namespace etstream {

/// All of it into the flatbuffer, in the order of the delegates; what shared a segment shares an entry.
void move_delegates_inline(ProgramDraft& draft);

/// All of it into segments, before those of named data, but for data of no bytes; equal data into one.
/// Errors: those of reading the data.
[[nodiscard]] Result<void> move_delegates_to_segments(ProgramDraft& draft);

/// Leaves out data in the flatbuffer, and segments of delegates, that no delegate of the draft refers to but
/// one of `gone` does.
void remove_delegate_data(ProgramDraft& draft, const std::vector<DelegateReference>& gone);

}  // namespace etstream
