// SPDX-License-Identifier: BSD-3-Clause
//
// AnyFile: an open file of any kind that etstream knows. What reports say of each kind is a visit of it,
// which does not compile while a kind is left out.
//
//   ETSTREAM_ASSIGN(const AnyFile file, open_any(source));
//   match(file, [](const ProgramFile& program) { ... }, [](const TensorDataFile& weights) { ... }, ...);
#pragma once

#include <variant>

#include "base/match.h"
#include "etstream/bundled_program_file.h"
#include "etstream/byte_source.h"
#include "etstream/fat_container_file.h"
#include "etstream/file_kind.h"
#include "etstream/native_package_file.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/tensor_data_file.h"
#include "weights/checkpoint_file.h"

namespace etstream {

using AnyFile = std::variant<ProgramFile, BundledProgramFile, TensorDataFile, CheckpointFile,
                             FatContainerFile, NativePackageFile>;

/// Opens a file by how it begins. Errors: those of file_kind() and of opening that kind.
[[nodiscard]] Result<AnyFile> open_any(const ByteSource& file);

[[nodiscard]] FileKind kind_of(const AnyFile& file) noexcept;
[[nodiscard]] const ByteSource& source_of(const AnyFile& file) noexcept;

}  // namespace etstream
