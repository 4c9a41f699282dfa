// SPDX-License-Identifier: BSD-3-Clause
//
// Describes a program (.pte) for writing: its tables, and where its data is. This is what ExecuTorch's
// serializer takes as input, without the data in memory.
//
//   const auto json = etstream::ByteSource::file("model.json").value();
//   auto described = etstream::read_program_json(json);
//   if (!described) return described.error();
//   auto plan = etstream::plan(*described);
//   if (!plan) return plan.error();
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/file_plan.h"
#include "etstream/program.h"
#include "etstream/program_plan.h"
#include "etstream/program_schema.h"
#include "etstream/result.h"

namespace etstream {

/// A program whose data is not laid out yet.
struct ProgramDescription {
  /// The data of a segment.
  struct Segment {
    ByteSource data;
    std::uint32_t alignment = 1;  // its own minimum, a power of two up to 2^30
  };

  /// A flatbuffer of the program's schema, with its objects in any order, without an extended header and
  /// without data: Buffer.storage and BackendDelegateInlineData.data are absent or ignored, and so are the
  /// places of segments.
  ByteSource metadata;
  std::string name = "program";           // in messages
  std::vector<ByteSource> constants;      // of Program.constant_buffer
  std::vector<ByteSource> delegate_data;  // of Program.backend_delegate_data
  std::vector<Segment> segments;          // of Program.segments
  ProgramSchema schema;
};

/// Options of read_program_json().
struct ProgramJsonOptions {
  std::string folder;  // that paths in the JSON are relative to; if empty, the current one
  ProgramSchema schema;
  /// The program from which segments that have no data in the JSON get it, by index. Must outlive only the
  /// call.
  const ProgramFile* segments_from = nullptr;
};

/// Reads a description from JSON in ExecuTorch's schema, as ExecuTorch's own `_program_to_json`, flatc and
/// `etstream decompile` write it. Data may be an array of numbers, base64, or {"file": PATH, "offset": N,
/// "size": N}, in which offset and size are optional. An entry of `segments` has its `data` besides the
/// schema's fields, and may have an `alignment`. Memory: that of the text without data in files. Errors:
/// kInvalidArgument for what the schema lacks or does not allow, naming file, line and place, and for a
/// segment without data or of another size than its entry gives; kCorrupt for invalid JSON; kNotFound, kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<ProgramDescription> read_program_json(
    const ByteSource& json, const ProgramJsonOptions& options = {});

/// Plans the program, byte for byte as `serialize_pte_binary` of the release `as_of` writes it with these
/// options: constants are in a segment, and so is the data of delegates unless inline is requested. Defaults
/// are those of ExecutorchBackendConfig. Errors: kInvalidArgument if the lists are not as long as those of
/// the metadata; kCorrupt for invalid metadata; those of plan(ProgramFile, ProgramPlanOptions).
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan(const ProgramDescription& program,
                                                    const ProgramPlanOptions& options = {});

}  // namespace etstream
