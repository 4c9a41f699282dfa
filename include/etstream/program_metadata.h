// SPDX-License-Identifier: BSD-3-Clause
//
// A program's metadata about its model: named data under keys that begin with "metadata.", as ExecuTorch's
// issue 19384 proposes. The file has the bytes of a value, but not its type.
//
//   etstream::ProgramChanges changes;
//   changes.metadata["context.length"] = etstream::encode(std::int64_t{8192});
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/program.h"
#include "etstream/result.h"

namespace etstream {

/// The prefix that the keys of metadata have among those of named data.
inline constexpr std::string_view kMetadataPrefix = "metadata.";

/// A value as people write it, before it is encoded.
using MetadataValue = std::variant<std::string, std::int64_t, double, std::vector<std::int64_t>>;

/// Returns the bytes of a value: those of a string, or 8 little-endian bytes per number.
[[nodiscard]] ETSTREAM_EXPORT ByteSource encode(const MetadataValue& value);

/// Parses a value as people write it: 8192 is an integer, 0.5 or 1e-5 a double, [1, 2] a list of integers;
/// text in double quotes, and anything else, is a string. Error: kInvalidArgument for an integer over 64
/// bits.
[[nodiscard]] ETSTREAM_EXPORT Result<MetadataValue> parse_metadata_value(std::string_view text);

/// A key of a program's metadata, and the bytes of its value.
struct MetadataEntry {
  std::string key;  // without the prefix
  ByteSource value;
};

/// Reads the metadata in the order of the program. Errors: kCorrupt, kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<MetadataEntry>> read_metadata(const ProgramFile& program);

/// Describes the entry for people: text as it is, 8 bytes that are not text as an integer, other values as
/// their number of bytes. Shows at most 200 bytes. Error: kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<std::string> describe(const MetadataEntry& entry);

}  // namespace etstream
