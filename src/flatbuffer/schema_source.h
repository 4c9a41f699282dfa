// SPDX-License-Identifier: BSD-3-Clause
//
// Schemas as people write them, turned into the binary form that Schema::from_binary reads.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "etstream/result.h"
#include "flatbuffer/schema.h"

namespace flatbuffers {
class Parser;
struct IDLOptions;
}  // namespace flatbuffers

namespace etstream {

/// The size in bytes of the longest schema, without its includes.
inline constexpr std::size_t kLargestSchema = std::size_t{16} << 20;

/// Returns the binary form, with builtins, of the schema in a .fbs file. An included file is looked for next
/// to the file that includes it, then in `include_folders`, then next to `path`. A binary schema (.bfbs) is
/// returned as it is. Errors: kCorrupt for a file that is no schema, with file and line; kUnsupported for a
/// default over 2^63 - 1; kTooLarge, also for more includes than can be read in time that grows with their
/// size; the file's own.
[[nodiscard]] Result<std::vector<std::byte>> compile_schema(
    const std::string& path, const std::vector<std::string>& include_folders = {});

/// A schema that is loaded from a file, and what its flatbuffers are called.
struct LoadedSchema {
  std::vector<std::byte> binary;
  Schema schema;
  std::string file_extension;  // without a point; "bin" where the schema gives none
};

/// Loads a schema from a file. Errors: those of compile_schema() and, with `path` before them, of
/// Schema::from_binary().
[[nodiscard]] Result<LoadedSchema> load_schema(const std::string& path,
                                               const std::vector<std::string>& include_folders);

/// Returns the options of all parsers in this library, which give no warnings.
[[nodiscard]] flatbuffers::IDLOptions parser_options();

/// Returns the last error of `parser`, which has parser_options(), as ours: "FILE: line N: WHAT". FILE is the
/// file with the error.
[[nodiscard]] Error parser_error(const flatbuffers::Parser& parser);

}  // namespace etstream
