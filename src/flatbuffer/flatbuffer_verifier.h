// SPDX-License-Identifier: BSD-3-Clause
//
// Verifies a whole flatbuffer against its schema: every table, vector, string and union that the root leads
// to. It accepts what FlatBuffers' own verifier accepts, except
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
  /// True to limit the sharing of vectors of bytes like that of other objects: for callers that walk their
  /// elements.
  bool walks_bytes = false;
  /// True to require that a union with a value has a type: FlatBuffers' text takes the field before a union
  /// for its type.
  bool typed_unions = false;
};

/// Checks all that readers of `view` rely on. Memory: next to none. Time: proportional to the file's size.
/// Errors: kCorrupt for the first thing that is wrong; the source's own.
[[nodiscard]] Result<void> verify_flatbuffer(const FlatbufferView& view, const FlatbufferChecks& checks = {});

/// Finds flaws that no builder leaves in a flatbuffer, though any reader accepts them: an end that is not
/// aligned, objects that overlap, vectors whose elements are not aligned, bytes that belong to no object, and
/// fields that the schema lacks, which nobody reads. `also_used` are ranges that belong to no object, such as
/// an extended header. Returns one sentence for each kind, about the first flaw that is found. Memory: 16
/// bytes for each object that is reached, and 48 more for each vtable. Errors: those of verify_flatbuffer().
[[nodiscard]] Result<std::vector<Error>> find_flaws_of_layout(const FlatbufferView& view,
                                                              const std::vector<UsedRange>& also_used = {});

/// Describes in a sentence the first field of a table that the schema lacks: writing the values again would
/// lose it. Memory: 48 bytes for each vtable. Errors: those of verify_flatbuffer().
[[nodiscard]] Result<std::optional<Error>> find_unknown_field(const FlatbufferView& view);

/// Returns the offset behind the last object that is reached; padding may follow. Memory and errors: those of
/// find_unknown_field().
[[nodiscard]] Result<std::uint64_t> end_of_objects(const FlatbufferView& view);

}  // namespace etstream
