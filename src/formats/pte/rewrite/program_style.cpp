// SPDX-License-Identifier: BSD-3-Clause
//
// The style that a program was written with, told from the places of its parts.
#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <vector>

#include "core/base/try.h"
#include "core/layout/same_bytes.h"
#include "flatbuffer/edited_values.h"
#include "formats/pte/program_model.h"
#include "formats/pte/rewrite/program_plan.h"

namespace etstream {
namespace {

/// The writers that lay the same content out differently. Each writer between them lays it out like one of
/// them.
constexpr std::array kWriters = {
    WriterVersion{kLatestRelease, VtableSharing::kOfEqualSize},
    WriterVersion{kLatestRelease, VtableSharing::kOfAnySize},
    WriterVersion{ExecutorchRelease::k1_1, VtableSharing::kOfEqualSize},
};

/// Returns the largest power of two that the data of all delegates in the flatbuffer is aligned to, from
/// either end of it. A writer that aligned them to less laid them out the same.
Result<std::uint32_t> shared_alignment(const pte::Program& program) {
  std::uint64_t places = kMostInlineAlignment | program.view().file().size();
  ETSTREAM_TRY(for_each(program.inline_delegates(), [&](const pte::InlineDelegate& entry) -> Result<void> {
    ETSTREAM_ASSIGN(const auto data, entry.vector(program.fields().backend_delegate_inline_data.data));
    if (data && data->count > 0) places |= data->elements();
    return {};
  }));
  return static_cast<std::uint32_t>(std::uint64_t{1} << std::countr_zero(places));
}

/// Finds the writer with which packing gives the program's flatbuffer again. Returns whether one does.
Result<bool> find_writer(const pte::Program& program, ValueReader& values, ProgramStyle& style) {
  const bool has_header = program.header().length != 0;
  for (const WriterVersion& writer : kWriters) {
    style.writer = writer;
    ETSTREAM_ASSIGN(FilePlan flatbuffer, pack_program(program, values, style, has_header));
    if (has_header) put_header(flatbuffer, program.header(), style);
    ETSTREAM_ASSIGN(const bool same, gives_same_bytes(flatbuffer, program.view().file()));
    if (same) return true;
  }
  return false;
}

/// Finds the writer and the alignments of delegates and of the header with which packing gives the program's
/// flatbuffer again. Keeps the usual ones if no writer gives it, as another tool made it.
Result<void> observe_flatbuffer(const pte::Program& program, bool has_inline_delegates, ProgramStyle& out) {
  ETSTREAM_ASSIGN(const TableView root, program.view().root());
  EditedValues values(program.view(), root);
  ProgramStyle style = out;
  if (program.header().length != 0) {
    ETSTREAM_ASSIGN(const std::uint64_t header, program.header_alignment());
    style.header = static_cast<std::uint32_t>(header);
  }
  std::vector<std::uint32_t> alignments = {out.delegates};
  if (has_inline_delegates) {
    ETSTREAM_ASSIGN(const std::uint32_t shared, shared_alignment(program));
    // The header is padded to what delegates are aligned to, or to more.
    const std::uint32_t most = program.header().length != 0 ? style.header : shared;
    if (shared != out.delegates) alignments.push_back(std::min(shared, most));
  }
  for (const std::uint32_t delegates : alignments) {
    style.delegates = delegates;
    ETSTREAM_ASSIGN(const bool is_found, find_writer(program, values, style));
    if (is_found) {
      out = style;
      break;
    }
  }
  return {};
}

/// Finds the alignment of constant tensors. They lie at multiples of it, and the header is padded to at least
/// that. With one tensor or none, the reason for the padding is unknown: then it is the delegates' if they
/// are aligned so.
void observe_tensors(const EditableProgram& editable, ProgramStyle& out) {
  std::uint64_t bits = 0;  // of all offsets
  if (editable.constants) {
    for (const std::uint64_t offset : editable.constants->offsets) bits |= offset;
  }
  if (bits == 0) {
    out.header_is_for_tensors = out.header != out.delegates && out.header > ExtendedHeader::kSize;
    if (out.header_is_for_tensors) out.tensors = out.header;
    return;
  }
  out.tensors = out.header;
  while (bits % out.tensors != 0) out.tensors /= 2;
  out.header_is_for_tensors = out.tensors == out.header;
}

/// Returns the alignment that explains the places of segments: the usual one if it does, otherwise the
/// largest one that does. The padding before the first segment is shorter than the alignment.
std::uint32_t observed_segment_alignment(const ExtendedHeader& header, std::span<const SegmentInfo> segments,
                                         std::uint32_t usual) {
  const std::uint64_t padding = header.segment_base_offset - header.program_size;
  std::uint64_t places = header.segment_base_offset;
  for (const SegmentInfo& segment : segments) places |= segment.size > 0 ? segment.offset : 0;
  const auto does_it = [&](std::uint32_t alignment) {
    return padding < alignment && places % alignment == 0;
  };
  if (places == 0 || does_it(usual)) return usual;
  for (std::uint32_t alignment = kMostSegmentAlignment; alignment > 0; alignment /= 2) {
    if (does_it(alignment)) return alignment;
  }
  return usual;
}

}  // namespace

Result<ProgramStyle> observe_style(const EditableProgram& editable) {
  ProgramStyle out;
  ETSTREAM_TRY(observe_flatbuffer(editable.program, !editable.inline_delegates.empty(), out));
  observe_tensors(editable, out);
  ETSTREAM_ASSIGN(const auto segments, editable.program.segments());
  out.segments = observed_segment_alignment(editable.program.header(), segments, out.segments);
  return out;
}

}  // namespace etstream
