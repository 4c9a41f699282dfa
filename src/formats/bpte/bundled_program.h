// SPDX-License-Identifier: BSD-3-Clause
//
// The schema of BP08 files, the bindings of its fields to descriptions, and the way in which releases pack
// it.
#pragma once

#include <vector>

#include "etstream/result.h"
#include "etstream/sink.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/schema_packer.h"
#include "flatbuffer/struct_reader.h"

namespace etstream {

namespace bundled_program {
struct Fields;  // bundled_program_fields_generated.h
}

/// Returns the schema that is compiled in; the same object at every call.
[[nodiscard]] Result<const Schema*> bundled_program_schema();

/// Returns the bindings of a BundledProgram, which is the root, to the fields that BP08 and segmented bundles
/// have in common. `fields` are bound to either schema.
[[nodiscard]] std::vector<FieldBinding> bundled_program_bindings(const bundled_program::Fields& fields);

/// Returns the options with which ExecuTorch packs bundles.
[[nodiscard]] PackerOptions bundle_packer_options(const WriterVersion& writer);

}  // namespace etstream
