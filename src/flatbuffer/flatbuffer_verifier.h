// SPDX-License-Identifier: BSD-3-Clause
//
// Verifies a whole flatbuffer against its schema: every table, vector, string and union that the root leads
// to. What FlatBuffers' own verifier takes is taken, but for
// - a union of a type that the schema lacks, or of a type without its value, which nobody can read;
// - strings that break the rule of their field (unmet_rule());
// - objects that are shared so often that a walk through them takes longer than the file is large.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "etstream/result.h"
#include "flatbuffer/flatbuffer_view.h"

namespace etstream {

/// A range of a file that holds something. [begin, end)
struct UsedRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool operator==(const UsedRange&) const = default;
};

/// Further checks, for callers that do more with a file than read its objects.
struct FlatbufferChecks {
  /// Sharing of vectors of bytes is limited as that of other objects: for callers that walk their elements.
  bool walks_bytes = false;
  /// A union with a value has a type: FlatBuffers' text takes what is before a union for its type.
  bool typed_unions = false;
};

/// Checks all that readers of `view` rely on. Memory: none to speak of. Time: proportional to the file's
/// size. Errors: kCorrupt for the first thing that is wrong; the source's own.
[[nodiscard]] Result<void> verify_flatbuffer(const FlatbufferView& view, const FlatbufferChecks& checks = {});

/// What no builder leaves in a flatbuffer, though any reader takes it: an end that is not aligned, objects on
/// each other, vectors whose elements are not aligned, bytes that are no object's. And fields that the schema
/// lacks, and which nobody reads. `also_used` are ranges that belong to no object, such as an extended
/// header. One sentence a kind, on the first that is found. Memory: 16 bytes for each object that is reached,
/// and 48 more for each vtable. Errors: those of verify_flatbuffer().
[[nodiscard]] Result<std::vector<Error>> find_flaws_of_layout(const FlatbufferView& view,
                                                              const std::vector<UsedRange>& also_used = {});

/// The first field of a table that the schema lacks, in a sentence: writing the values again would lose it.
/// Memory: 48 bytes for each vtable. Errors: those of verify_flatbuffer().
[[nodiscard]] Result<std::optional<Error>> find_unknown_field(const FlatbufferView& view);

}  // namespace etstream
