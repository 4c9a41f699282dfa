// SPDX-License-Identifier: BSD-3-Clause
//
// A program's description from JSON.
#include "base/try.h"
#include "etstream/program_description.h"
#include "flatbuffer/json_value_reader.h"
#include "pte/rewrite/payload_extraction.h"

namespace etstream {

Result<ProgramDescription> read_program_json(const ByteSource& json, const ProgramJsonOptions& options) {
  return without_exceptions([&]() -> Result<ProgramDescription> {
    ETSTREAM_ASSIGN(const auto plain, options.schema.schema());
    ETSTREAM_ASSIGN(const Schema schema, with_segment_data(*plain));
    ETSTREAM_ASSIGN(const auto values, JsonValueReader::parse(schema, json, options.folder));
    ETSTREAM_ASSIGN(auto out, describe_program(schema, *values, options.segments_from, json.name()));
    out.name = json.name();
    out.schema = options.schema;
    return out;
  });
}

}  // namespace etstream
