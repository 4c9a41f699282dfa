// SPDX-License-Identifier: BSD-3-Clause
//
// The pieces of a program's constants and mutable data, taken out of their segments and put into them again.
#pragma once

#include <cstdint>
#include <functional>
#include <set>

#include "etstream/result.h"
#include "pte/rewrite/editable_program.h"

namespace etstream {

/// Splits the program's constants into pieces of a segment of their own. They come from the constant segment,
/// or from the flatbuffer, as in older programs. The values say how long each is; a piece that no value
/// refers to keeps the padding behind it. Errors: kCorrupt for a piece that is not inside; kIo.
[[nodiscard]] Result<void> split_constants(EditableProgram& editable);

/// The piece that a constant tensor has of those. Error: kCorrupt where there is none of its number.
[[nodiscard]] Result<ByteSource> piece_of(const EditableProgram& editable, const ProgramTensor& tensor);

/// Splits the initial state of mutable tensors, which has no padding, into pieces. Errors: kCorrupt for a
/// piece that is not inside.
[[nodiscard]] Result<void> split_mutable_data(EditableProgram& editable);

/// Takes the pieces `gone` from `subsegments`, which are split, and has the program's tensors follow that
/// `uses` says to use them. None of them uses one that is gone.
void remove_pieces(EditableProgram& editable, EditableProgram::Subsegments& subsegments,
                   const std::set<std::uint32_t>& gone,
                   const std::function<bool(const ProgramTensor&)>& uses);

/// Lays the pieces out in their segment as ExecuTorch does: each padded to a multiple of `alignment`, a power
/// of two, but for the last. Error: kTooLarge over 2^64 - 1 bytes.
[[nodiscard]] Result<void> join(EditableProgram& editable, EditableProgram::Subsegments& subsegments,
                                std::uint32_t alignment);

}  // namespace etstream
