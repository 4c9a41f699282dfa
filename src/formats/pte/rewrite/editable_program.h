// SPDX-License-Identifier: BSD-3-Clause
//
// EditableProgram: a program between reading and packing. The places of its data are in terms that stay the
// same when methods are removed, data moves and segments get other numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/program.h"
#include "etstream/program_plan.h"
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

}  // namespace etstream
