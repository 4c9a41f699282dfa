// SPDX-License-Identifier: BSD-3-Clause
//
// The step from an editable program to the plan of its file: alignments, places of segments, the flatbuffer
// around them.
#pragma once

#include <cstdint>

#include "etstream/program.h"
#include "etstream/program_plan.h"
#include "etstream/result.h"
#include "etstream/sink.h"
#include "formats/pte/rewrite/editable_program.h"
#include "formats/segments/data_segments.h"

namespace etstream {

inline constexpr std::uint32_t kMostInlineAlignment = 65536;  // of tensors and delegates
inline constexpr std::uint32_t kMostSegmentAlignment = std::uint32_t{1} << 30;

/// The choices of a writer that change the bytes of a program but not its content. The defaults are
/// ExecuTorch's.
struct ProgramStyle {
  std::uint32_t segments = 128;
  /// The alignment of constant tensors in their segment.
  std::uint32_t tensors = 16;
  /// The alignment of the data of delegates in the flatbuffer.
  std::uint32_t delegates = 16;
  /// The size that the extended header is padded to: the largest alignment in the schema, which is that of
  /// delegates or the one that tensors were exported with. At least the header's own size.
  std::uint32_t header = ExtendedHeader::kSize;
  /// True if the header is padded to `tensors`.
  bool header_is_for_tensors = false;
  WriterVersion writer = {};
};

/// Returns the style that the program was written with, from `editable` before any change, as far as it
/// shows. The rest is ExecuTorch's default. Packs the flatbuffer once if its style is the default, and up to
/// six times otherwise. Errors: those of reading.
[[nodiscard]] Result<ProgramStyle> observe_style(const EditableProgram& editable);

/// Refuses an invalid alignment. Error: kInvalidArgument.
[[nodiscard]] Result<void> check(const ProgramPlanOptions& options);

/// Plans `editable`, with these options in place of what was `observed`. Errors: see plan().
[[nodiscard]] Result<FilePlan> lay_out(EditableProgram editable, const ProgramStyle& observed,
                                       const ProgramPlanOptions& options);

/// Packs the flatbuffer of a program in this style, with room for an extended header if `has_header`.
/// `values` are those of `program`. Errors: those of pack().
[[nodiscard]] Result<FilePlan> pack_program(const pte::Program& program, ValueReader& values,
                                            const ProgramStyle& style, bool has_header);

/// Writes `header` into the room that pack_program() left for it in `flatbuffer`.
void put_header(FilePlan& flatbuffer, const ExtendedHeader& header, const ProgramStyle& style);

// A program in one fixed layout, so that two programs of the same content have the same bytes.

/// The parts to compare: all, or all except the named data. Without it, two programs have the same flatbuffer
/// if they differ only in segments.
enum class ComparedParts { kAll, kTables };

/// Returns the plan of `program` with one alignment for all, delegates in segments and named data by its
/// keys. The order of named data has no meaning, as it is only asked for by key. The plan is not of a file
/// that anyone would write. Errors: those of plan().
[[nodiscard]] Result<FilePlan> plan_comparable(const ProgramFile& program, ComparedParts parts);

}  // namespace etstream
