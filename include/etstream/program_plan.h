// SPDX-License-Identifier: BSD-3-Clause
//
// A program (.pte) written again under another layout, without exporting it again. The content stays:
// methods, values and instructions are packed again as ExecuTorch packs them, and segments are taken
// from where they lie in the program that is read.
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

/// Where the data of delegates is: in the flatbuffer, which ends at 2 GiB, or in segments.
enum class DelegateData { kInline, kInSegments };

/// What is not given stays as it is in the program, as far as that shows. A single segment may lie at a
/// larger multiple than was asked for, and the alignment of delegates shows only where some are inline.
/// Alignments are powers of two, in bytes.
struct ProgramPlanOptions {
  /// Of each segment, and of the first behind the flatbuffer; from 1 to 2^30. ExecuTorch's default is 128.
  /// An alignment that a segment had of its own (of named data, by a backend's wish) is not said in a
  /// program: it stays only where it divides this one.
  std::optional<std::uint32_t> segment_alignment = std::nullopt;
  /// Of each constant tensor in its segment, up to 65536. ExecuTorch's default is 16. A larger one than that
  /// of segments only holds relative to the segment, as in ExecuTorch. The extended header grows to it.
  std::optional<std::uint32_t> constant_tensor_alignment = std::nullopt;
  /// Of a delegate's data in the flatbuffer, up to 65536. ExecuTorch's default is 16. It does not reach data
  /// in segments, but the extended header grows to it all the same, as in ExecuTorch.
  std::optional<std::uint32_t> delegate_alignment = std::nullopt;
  /// As ExecuTorch's `extract_delegate_segments` does it, equal data is kept once, and data of no bytes stays
  /// in the flatbuffer. Moving data into segments reads it, to find what is equal.
  std::optional<DelegateData> delegates = std::nullopt;
  /// Makes the two alignments above hold in the file where ExecuTorch 1.5.1 does not: of constant tensors
  /// over that of segments, and of delegates in segments. ExecuTorch loads such a program as any other.
  bool strict_alignment = false;
  /// Moves constants that are in the flatbuffer (Program.constant_buffer, which ExecuTorch 1.3 and later
  /// refuse) into a segment. There are such in programs of older releases, exported with
  /// `extract_constant_segment=False`.
  bool extract_constants = false;
  /// The release of ExecuTorch, and the way of its FlatBuffers builder, that the program is written as. Kept
  /// as the program shows them; kLatestRelease and kOfEqualSize for one that is described.
  std::optional<ExecutorchRelease> as_of = std::nullopt;
  std::optional<VtableSharing> vtables = std::nullopt;

  /// Whether nothing is asked for.
  [[nodiscard]] bool empty() const noexcept {
    return !segment_alignment && !constant_tensor_alignment && !delegate_alignment && !delegates &&
           !strict_alignment && !extract_constants && !as_of && !vtables;
  }
};

/// The plan of the program under these options. Without any it gives the same bytes, also for a program that
/// another writer laid out; with some, but for strict_alignment, the bytes that ExecuTorch gives for
/// the same content, in the release `as_of` or the one that the program shows. Errors: kInvalidArgument for
/// an alignment that is none; kTooLarge for a flatbuffer over 2^31 - 1 bytes, naming what to do about it;
/// kCorrupt, where an index in the program leads nowhere; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan(const ProgramFile& program,
                                                    const ProgramPlanOptions& options = {});

}  // namespace etstream
