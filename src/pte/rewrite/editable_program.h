// SPDX-License-Identifier: BSD-3-Clause
//
// EditableProgram: a program between reading and packing: where its data is, in terms that stay the same
// while methods go, data moves and segments get other numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/program.h"
#include "etstream/program_description.h"
#include "flatbuffer/edited_values.h"
#include "pte/program_model.h"

namespace etstream {

/// What a segment of named data is labelled.
inline constexpr std::string_view kNamedDataLabel = "named data";

/// Segments are named by their indices in `segments`, which nothing changes: those that go are only left out
/// of `order`.
struct EditableProgram {
  struct Segment {
    ByteSource source;
    std::string label;                                     // what it is used for
    std::uint32_t alignment = 1;                           // that it has of its own, a power of two
    std::optional<std::uint64_t> position = std::nullopt;  // of its table; none for one to be added
    /// From the first one on, in the program that was read; none if the source has changed.
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
  /// Of a constant, or of a delegate.
  struct InlineData {
    std::optional<std::uint64_t> position;  // of its table
    ByteSource data;
  };

  explicit EditableProgram(const pte::Program& of) : program(of) {}

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

/// Where a segment's bytes are.
struct SegmentSource {
  ByteSource source;
  std::uint32_t alignment = 1;          // see EditableProgram::Segment
  std::optional<std::uint64_t> offset;  // there too
};

/// A program to edit, as it is; `sources` has an entry for each of its segments. Errors: kUnsupported for
/// a field that its schema lacks, which would be lost; kCorrupt for an index that leads nowhere; those of
/// FlatbufferView.
[[nodiscard]] Result<EditableProgram> read_editable_program(const pte::Program& program,
                                                            const std::vector<SegmentSource>& sources);
[[nodiscard]] Result<EditableProgram> read_editable_program(const ProgramFile& program);
/// `model` is of the description's metadata. Error: kInvalidArgument where its lists are not as long as the
/// metadata's, too.
[[nodiscard]] Result<EditableProgram> read_editable_program(const pte::Program& model,
                                                            const ProgramDescription& program);

/// Where segments lie, from the first one on; in the order of EditableProgram::order.
struct PlacedSegment {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// Sets the values of the program that was read to those of `editable`. `placed` has an entry for
/// each of `editable.order`. Errors: those of FlatbufferView.
[[nodiscard]] Result<void> set_values(const EditableProgram& editable,
                                      const std::vector<PlacedSegment>& placed, EditedValues& values);

}  // namespace etstream
