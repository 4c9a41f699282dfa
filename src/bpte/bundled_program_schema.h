// SPDX-License-Identifier: BSD-3-Clause
//
// The schema of BP08 files, the numbers of its union's members, and how releases pack it.
#pragma once

#include <cstdint>

#include "etstream/result.h"
#include "etstream/writer_version.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/schema_packer.h"

namespace etstream {

/// ValueUnion in schema/bundled_program.fbs.
enum class ValueUnion : std::uint8_t { kNone = 0, kTensor = 1, kInt = 2, kBool = 3, kDouble = 4 };

/// Compiled in; the same object at every call.
[[nodiscard]] Result<const Schema*> bundled_program_schema();

/// How ExecuTorch packs bundles.
[[nodiscard]] PackOptions bundle_pack_options(const WriterVersion& writer);

}  // namespace etstream
