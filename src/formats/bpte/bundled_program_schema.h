// SPDX-License-Identifier: BSD-3-Clause
//
// The schema of BP08 files, how descriptions give its fields, and how releases pack it.
#pragma once

#include <span>

#include "etstream/result.h"
#include "etstream/writer_version.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/schema_packer.h"
#include "flatbuffer/struct_reader.h"

namespace etstream {

/// Compiled in; the same object at every call.
[[nodiscard]] Result<const Schema*> bundled_program_schema();

/// How a BundledProgram, which is the root, gives the fields that BP08 and segmented bundles have in common.
[[nodiscard]] std::span<const FieldBinding> bundled_program_bindings();

/// How ExecuTorch packs bundles.
[[nodiscard]] PackOptions bundle_pack_options(const WriterVersion& writer);

}  // namespace etstream
