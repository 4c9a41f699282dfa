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

struct PackerOptions {
  std::uint64_t limit = kLargestFlatbuffer;  // of the file, in bytes
  /// The size in bytes of a header of the format's own behind the identifier: an extent of zeros, the second
  /// one and labelled "header", whose source the caller replaces. It counts as metadata.
  std::uint32_t header_size = 0;
  ObjectOrder order = ObjectOrder::kObjectApi;
  /// The sharing of vtables in the order of the object API. In flatc's order, tables of equal size share
  /// them.
  VtableSharing vtables = VtableSharing::kOfEqualSize;
};

/// Packs what `reader` gives, from its root on. A table's children come first, in the order of its fields.
/// Then comes the table, with its fields in that order too or, as in flatc, the widest first and of one width
/// the last first. Scalars that equal their default are left out, vtables are shared as `vtables` says, and
/// strings are not shared.
///
/// Errors: the reader's own; kInvalidArgument for a value that is not of its field's kind, a string
/// that breaks its field's rule (unmet_rule()), a required field that is absent, tables nested deeper than
/// 64; kTooLarge over the limit.
[[nodiscard]] Result<FilePlan> pack(const Schema& schema, ValueReader& reader,
                                    const PackerOptions& options = {});

}  // namespace etstream
