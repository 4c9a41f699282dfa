// SPDX-License-Identifier: BSD-3-Clause
//
// The pieces of a program's constants and mutable data, taken out of their segments and put into them again.
#pragma once

#include <cstdint>
#include <vector>

#include "etstream/result.h"
#include "formats/pte/rewrite/editable_program.h"

namespace etstream {

/// Splits the program's constants into pieces of a segment of their own. They come from the constant segment,
/// or from the flatbuffer, as in older programs. The values give the length of each piece; a piece that no
/// value refers to keeps the padding behind it. Errors: kCorrupt for a piece that is not inside; kIo.
[[nodiscard]] Result<void> split_constants(EditableProgram& editable);

/// Returns the piece of a constant tensor. Error: kCorrupt if no piece has its number.
[[nodiscard]] Result<ByteSource> piece_of(const EditableProgram& editable, const ProgramTensor& tensor);

/// Reads a tensor's layout. Errors: those of FlatbufferView.
[[nodiscard]] Result<TensorLayout> layout_of(const EditableProgram& editable, const ProgramTensor& tensor);

/// Splits the initial state of mutable tensors, which has no padding, into pieces. Errors: kCorrupt for a
/// piece that is not inside.
[[nodiscard]] Result<void> split_mutable_data(EditableProgram& editable);

/// A test for the tensors that have their data in some pieces, such as &ProgramTensor::is_constant.
using TensorTest = bool (ProgramTensor::*)() const noexcept;

/// Removes the pieces of `subsegments`, which are split, that `gone` used and none of the program's tensors
/// uses. Renumbers the rest for the program's tensors. `uses` tells which tensors have their data there.
void remove_pieces(EditableProgram& editable, EditableProgram::Subsegments& subsegments,
                   const std::vector<ProgramTensor>& gone, TensorTest uses);

/// Lays the pieces out in their segment as ExecuTorch does: each padded to a multiple of `alignment`, a power
/// of two, but for the last. Error: kTooLarge over 2^64 - 1 bytes.
[[nodiscard]] Result<void> join(EditableProgram& editable, EditableProgram::Subsegments& subsegments,
                                std::uint32_t alignment);

}  // namespace etstream
