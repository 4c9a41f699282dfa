// SPDX-License-Identifier: BSD-3-Clause
//
// A program (.pte) described to be written: its tables, and where its data lies. What ExecuTorch's serializer
// takes, without the data in memory.
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

struct ProgramDescription {
  struct Segment {
    ByteSource data;
    std::uint32_t alignment = 1;  // that it has of its own, a power of two up to 2^30
  };

  /// A flatbuffer of the program's schema, of any order, without an extended header, that has no data:
  /// Buffer.storage and BackendDelegateInlineData.data are absent or ignored, and so is where segments lie.
  ByteSource metadata;
  std::string name = "program";           // what messages call it
  std::vector<ByteSource> constants;      // of Program.constant_buffer
  std::vector<ByteSource> delegate_data;  // of Program.backend_delegate_data
  std::vector<Segment> segments;          // of Program.segments
  ProgramSchema schema;
};

struct ProgramJsonOptions {
  std::string folder;  // that paths in the JSON are relative to; empty is the current one
  ProgramSchema schema;
  /// The program whose data the segments get that the JSON has none of, by index. Must outlive only the call.
  const ProgramFile* segments_from = nullptr;
};

/// The description in JSON of ExecuTorch's schema: as ExecuTorch's own `_program_to_json`, flatc and
/// `etstream decompile` write it. Data may be an array of numbers, base64, or {"file": PATH, "offset": N,
/// "size": N}, of which offset and size may be left out. An entry of `segments` has, besides the schema's
/// fields, its `data` and may have an `alignment`. Memory: that of the text without data in files. Errors:
/// kInvalidArgument for what the schema does not have or allow, naming file, line and where it is, and for a
/// segment without data or of another size than its entry says; kCorrupt for what is not JSON; kNotFound,
/// kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<ProgramDescription> read_program_json(
    const ByteSource& json, const ProgramJsonOptions& options = {});

/// The plan of the program, byte for byte as `serialize_pte_binary` of the release `as_of` writes it with
/// these options: constants in a segment, and delegates' data too unless it is asked for inline. Defaults are
/// those of ExecutorchBackendConfig. Errors: kInvalidArgument where the lists are not as long as the
/// metadata's; kCorrupt for metadata that is none; those of plan(ProgramFile, ProgramPlanOptions).
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan(const ProgramDescription& program,
                                                    const ProgramPlanOptions& options = {});

}  // namespace etstream
