// SPDX-License-Identifier: BSD-3-Clause
//
// The pieces of a program's constants and mutable data, taken out of their segments and put into them again.
#pragma once

#include <cstdint>
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

/// Errors: those of FlatbufferView.
[[nodiscard]] Result<TensorLayout> layout_of(const EditableProgram& editable, const ProgramTensor& tensor);

/// Splits the initial state of mutable tensors, which has no padding, into pieces. Errors: kCorrupt for a
/// piece that is not inside.
[[nodiscard]] Result<void> split_mutable_data(EditableProgram& editable);

/// Which tensors have their data in some pieces: &ProgramTensor::is_constant, for one.
using TensorTest = bool (ProgramTensor::*)() const noexcept;

/// Takes those of `pieces` out of `subsegments`, which are split, that none of the program's tensors uses,
/// and has the tensors that `uses` is true of follow.
void remove_pieces(EditableProgram& editable, EditableProgram::Subsegments& subsegments,
                   std::set<std::uint32_t> pieces, TensorTest uses);

/// Lays the pieces out in their segment as ExecuTorch does: each padded to a multiple of `alignment`, a power
/// of two, but for the last. Error: kTooLarge over 2^64 - 1 bytes.
[[nodiscard]] Result<void> join(EditableProgram& editable, EditableProgram::Subsegments& subsegments,
                                std::uint32_t alignment);

}  // namespace etstream
