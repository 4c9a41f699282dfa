// SPDX-License-Identifier: BSD-3-Clause
//
// Rewrites a program (.pte) with another layout, without exporting it again. The content stays: methods,
// values and instructions are packed again as ExecuTorch packs them, and segments are copied from the program
// that is read.
//
//   auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   if (!program) return program.error();
//   auto plan = etstream::plan(*program, {.segment_alignment = 4096});
//   if (!plan) return plan.error();
//   const auto sink = etstream::open_file_sink("aligned.pte").value();
//   if (const auto written = etstream::write(*plan, *sink); !written) return written.error();
#pragma once

#include <cstdint>
#include <optional>

#include "etstream/export.h"
#include "etstream/file_plan.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/writer_version.h"

namespace etstream {

/// The place of the data of delegates: in the flatbuffer, which is limited to 2 GiB, or in segments.
enum class DelegateData { kInline, kInSegments };

/// An option that is not set stays as in the program, as far as the program shows it. A single segment may be
/// aligned to more than was requested, and the alignment of delegates shows only if some are inline.
/// Alignments are powers of two, in bytes.
struct ProgramPlanOptions {
  /// The alignment of each segment, and of the first one after the flatbuffer; from 1 to 2^30. ExecuTorch's
  /// default is 128. A program does not record that a segment had an alignment of its own (named data, at a
  /// backend's request): it is kept only if it divides this one.
  std::optional<std::uint32_t> segment_alignment = std::nullopt;
  /// The alignment of each constant tensor in its segment, up to 65536. ExecuTorch's default is 16. If it is
  /// larger than that of segments, it holds only relative to the segment, as in ExecuTorch. The extended
  /// header grows to it.
  std::optional<std::uint32_t> constant_tensor_alignment = std::nullopt;
  /// The alignment of a delegate's data in the flatbuffer, up to 65536. ExecuTorch's default is 16. It does
  /// not apply to data in segments, but the extended header grows to it even so, as in ExecuTorch.
  std::optional<std::uint32_t> delegate_alignment = std::nullopt;
  /// The new place of the data of delegates. As with ExecuTorch's `extract_delegate_segments`, equal data is
  /// stored once, and empty data stays in the flatbuffer. Moving data into segments reads it to find equal
  /// data.
  std::optional<DelegateData> delegates = std::nullopt;
  /// Makes the two alignments above hold in the file where ExecuTorch 1.5.1 does not: for constant tensors,
  /// if theirs is larger than that of segments, and for delegates in segments. ExecuTorch loads such a
  /// program like any other.
  bool strict_alignment = false;
  /// Moves constants that are in the flatbuffer (Program.constant_buffer, which ExecuTorch 1.3 and later
  /// refuse) into a segment. Older releases write such programs with `extract_constant_segment=False`.
  bool extract_constants = false;
  /// The ExecuTorch release, and how its FlatBuffers builder shares vtables, whose output the plan
  /// reproduces. By default as the program shows them; kLatestRelease and kOfEqualSize for a described
  /// program.
  std::optional<ExecutorchRelease> as_of = std::nullopt;
  std::optional<VtableSharing> vtables = std::nullopt;

  /// Returns whether no option is set.
  [[nodiscard]] bool empty() const noexcept {
    return !segment_alignment && !constant_tensor_alignment && !delegate_alignment && !delegates &&
           !strict_alignment && !extract_constants && !as_of && !vtables;
  }
};

/// Plans the program with these options. Without any, the bytes are the same as before, even if another
/// writer laid out the program; with any but strict_alignment, they are those that ExecuTorch gives for the
/// same content, in the release `as_of` or the one that the program shows. Errors: kInvalidArgument for an
/// invalid alignment; kTooLarge for a flatbuffer over 2^31 - 1 bytes, saying what to do about it; kCorrupt if
/// an index in the program is out of range; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan(const ProgramFile& program,
                                                    const ProgramPlanOptions& options = {});

}  // namespace etstream
