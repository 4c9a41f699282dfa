// SPDX-License-Identifier: BSD-3-Clause
//
// The pieces of a program's constants and mutable data, taken out of their segments and put into them again.
#pragma once

#include <cstdint>

#include "etstream/result.h"
#include "pte/rewrite/program_draft.h"

namespace etstream {

/// Has the draft's constants as pieces, with a segment of their own: those of its segment, or those that are
/// in the flatbuffer, as older programs have them. How long a tensor is its values say; data that no value
/// refers to keeps the padding behind it. Errors: kCorrupt for a piece that is not inside; kIo.
[[nodiscard]] Result<void> split_constants(ProgramDraft& draft);

/// Has the initial state of mutable tensors, which has no padding, as pieces. Errors: kCorrupt for a piece
/// that is not inside.
[[nodiscard]] Result<void> split_mutable_data(ProgramDraft& draft);

/// Lays the pieces out in their segment as ExecuTorch does: each padded to a multiple of `alignment`, a power
/// of two, but for the last. Error: kTooLarge over 2^64 - 1 bytes.
[[nodiscard]] Result<void> join(ProgramDraft& draft, ProgramDraft::Subsegments& subsegments,
                                std::uint32_t alignment);

}  // namespace etstream
