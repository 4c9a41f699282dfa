// SPDX-License-Identifier: BSD-3-Clause
//
// pack(): packs any table of any schema, driven by the schema alone.
#pragma once

#include <cstdint>

#include "core/layout/backward_builder.h"
#include "etstream/file_plan.h"
#include "etstream/result.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/value_reader.h"

namespace etstream {

/// The order of objects in a flatbuffer, which differs between writers.
enum class ObjectOrder {
  kObjectApi,  // that of FlatBuffers' Python object API, which ExecuTorch writes .pte and .bpte files with
  kFlatc,      // that of FlatBuffers' JSON parser, which it writes .ptd files with, and once wrote all
};

struct PackOptions {
  std::uint64_t limit = kLargestFlatbuffer;  // of the file, in bytes
  /// Room for a header of the format's own behind the identifier, in bytes: an extent of zeros, the second
  /// one and labelled "header", whose source the caller replaces. It counts as metadata.
  std::uint32_t header_size = 0;
  ObjectOrder order = ObjectOrder::kObjectApi;
  /// In the order of the object API; flatc's vtables are shared by tables of equal size.
  VtableSharing vtables = VtableSharing::kOfEqualSize;
};

/// Packs what `reader` gives, from its root on: a table's children first, in the order of its fields; then
/// the table, its fields in that order too or, as flatc does, the widest first and of one width the last
/// first; scalars that equal their default left out; vtables shared as `vtables` says; strings not shared.
///
/// Errors: the reader's own; kInvalidArgument for a value that is not of its field's kind, a string
/// that breaks its field's rule (unmet_rule()), a required field that is absent, tables nested deeper than
/// 64; kTooLarge over the limit.
[[nodiscard]] Result<FilePlan> pack(const Schema& schema, ValueReader& reader,
                                    const PackOptions& options = {});

}  // namespace etstream
