// SPDX-License-Identifier: BSD-3-Clause
//
// The payloads of a program to edit, taken out of it, moved and put in again.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
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

// The data of a program's delegates, moved into the flatbuffer or out of it.

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

// A program's named data: taken out of it, and added.

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
