// SPDX-License-Identifier: BSD-3-Clause
//
// EditableProgram: a program between reading and packing. The places of its data are in terms that stay the
// same when methods are removed, data moves and segments get other numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/program.h"
#include "etstream/program_plan.h"
#include "etstream/tensor_data.h"
#include "flatbuffer/edited_values.h"
#include "formats/pte/program_model.h"

namespace etstream {

/// The label of segments of named data.
inline constexpr std::string_view kNamedDataLabel = "named data";

/// A program to edit. Segments are named by their indices in `segments`, which never change: a segment that
/// is removed is only left out of `order`.
struct EditableProgram {
  struct Segment {
    ByteSource source;
    std::string label = {};                                // what it is used for
    std::uint32_t alignment = 1;                           // that it has of its own, a power of two
    std::optional<std::uint64_t> position = std::nullopt;  // of its table; none for one to be added
    /// The offset in the program that was read, from the first segment on; nothing if its source has changed.
    std::optional<std::uint64_t> offset = std::nullopt;
  };
  /// Pieces of one segment: constant tensors, or the initial state of mutable ones. Piece 0 is a placeholder.
  struct Subsegments {
    std::optional<std::uint64_t> position;  // of the table that says where they are
    std::optional<std::uint32_t> segment;   // none where the program has no segments
    std::vector<std::uint64_t> offsets;
    std::optional<std::vector<ByteSource>> pieces;  // once they are to be laid out again
  };
  struct NamedData {
    std::optional<std::uint64_t> position;  // of its table
    std::string key;
    std::uint32_t segment = 0;
  };
  /// The data of a constant or of a delegate, in the flatbuffer.
  struct InlineData {
    std::optional<std::uint64_t> position;  // of its table
    ByteSource data;
  };

  explicit EditableProgram(const pte::Program& of) : program(of) {}

  /// Adds a segment, the last in the file, and returns its index.
  std::uint32_t add_segment(ByteSource source, std::string_view label);

  const pte::Program& program;
  std::uint64_t size = 0;  // of its file, or of what it is described by, with its data

  std::vector<std::uint64_t> methods;  // where the tables are of those that stay
  bool has_all_methods = true;
  bool has_stack_traces = true;

  std::vector<Segment> segments;
  std::vector<std::uint32_t> order;  // in the file

  std::vector<ProgramTensor> tensors;  // of the methods that stay
  std::set<std::size_t> changed_tensors;
  std::optional<Subsegments> constants;
  std::vector<InlineData> inline_constants;
  bool has_same_inline_constants = true;
  std::vector<Subsegments> mutable_data;
  bool has_same_mutable_data = true;
  std::vector<NamedData> named_data;
  bool has_same_named_data = true;
  std::vector<DelegateReference> delegates;  // indices are in `segments` or in `inline_delegates`
  std::vector<InlineData> inline_delegates;
  bool has_same_inline_delegates = true;
};

/// Reads a program to edit. `segments` has an entry for each of its segments; their labels and positions are
/// set here. Errors: kUnsupported for a field that its schema lacks, which would be lost; kCorrupt for an
/// index that leads nowhere; those of FlatbufferView.
[[nodiscard]] Result<EditableProgram> read_editable_program(const pte::Program& program,
                                                            std::vector<EditableProgram::Segment> segments);
[[nodiscard]] Result<EditableProgram> read_editable_program(const ProgramFile& program);
/// Reads a described program to edit. `model` is made of the description's metadata. Error also:
/// kInvalidArgument if the description's lists are not as long as the metadata's.
[[nodiscard]] Result<EditableProgram> read_editable_program(const pte::Program& model,
                                                            const ProgramDescription& program);

/// Replaces the values of the program that was read with those of `editable`. `offsets` has an entry for each
/// of `editable.order`, from the first segment on. Errors: those of FlatbufferView.
[[nodiscard]] Result<void> set_values(const EditableProgram& editable,
                                      const std::vector<std::uint64_t>& offsets, EditedValues& values);

// The payloads of a program to edit, taken out of it, moved and put in again.

/// Splits the program's constants into pieces of a segment of their own. They come from the constant segment,
/// or from the flatbuffer, as in older programs. The values give the length of each piece; a piece that no
/// value refers to keeps the padding behind it. Errors: kCorrupt for a piece that is not inside; kIo.
[[nodiscard]] Result<void> split_constants(EditableProgram& editable);

/// Returns whether some of the tensors have their data there.
[[nodiscard]] inline bool any_of(const std::vector<ProgramTensor>& tensors, TensorStorage kind) {
  return std::ranges::find(tensors, kind, &ProgramTensor::kind) != tensors.end();
}

/// Returns the piece of a constant tensor. Error: kCorrupt if no piece has its number.
[[nodiscard]] Result<ByteSource> piece_of(const EditableProgram& editable, const ProgramTensor& tensor);

/// Reads a tensor's layout. Errors: those of FlatbufferView.
[[nodiscard]] Result<TensorLayout> layout_of(const EditableProgram& editable, const ProgramTensor& tensor);

/// Splits the initial state of mutable tensors, which has no padding, into pieces. Errors: kCorrupt for a
/// piece that is not inside.
[[nodiscard]] Result<void> split_mutable_data(EditableProgram& editable);

/// Removes the pieces of `subsegments`, which are split, that `gone` used and none of the program's tensors
/// uses. Renumbers the rest for the program's tensors. `uses` is the storage of the tensors that have their
/// data there.
void remove_pieces(EditableProgram& editable, EditableProgram::Subsegments& subsegments,
                   const std::vector<ProgramTensor>& gone, TensorStorage uses);

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

// Data that leaves a program for a file of tensor data, and data that comes in from one.

/// Takes all constants and named data out of the program. Errors: kInvalidArgument for a key that two would
/// have, and if there are none; kNotFound for a key of no constant; kCorrupt for a constant that is not
/// inside its segment; those of reading.
[[nodiscard]] Result<TensorData> move_constants_out(EditableProgram& editable, const ConstantsOut& options);

/// Takes external tensors, and all data without a layout, in from these files. A tensor keeps its name,
/// unless that is the SHA-256 of its data. Errors: kInvalidArgument for data that two of the files have, or
/// that has another layout than the tensor, and for a file of which nothing is taken; kCorrupt, kIo.
[[nodiscard]] Result<void> move_constants_in(EditableProgram& editable,
                                             const std::vector<const TensorDataFile*>& files);

}  // namespace etstream
