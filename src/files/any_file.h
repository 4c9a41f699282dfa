// SPDX-License-Identifier: BSD-3-Clause
//
// AnyFile: an open file of any kind that etstream knows. A report visits it with a function for each kind,
// and does not compile if a kind is left out.
//
//   ETSTREAM_ASSIGN(const AnyFile file, open_any(source));
//   match(file, [](const ProgramFile& program) { ... }, [](const TensorDataFile& weights) { ... }, ...);
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/base/match.h"
#include "etstream/bundled_program_file.h"
#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/duplicates.h"
#include "etstream/fat_container_file.h"
#include "etstream/file_contents.h"
#include "etstream/file_kind.h"
#include "etstream/findings.h"
#include "etstream/native_package_file.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/tensor_data_file.h"
#include "formats/pte/backends/backend_payload.h"

namespace etstream {

/// A file of a checkpoint, by itself: tensors behind a header.
struct CheckpointFile {
  ByteSource file;
  FileKind kind = FileKind::kSafetensors;  // or kGguf, kTorch
  std::uint32_t version = 0;               // of the format; 0 of safetensors, which has none
  ByteSource metadata;                     // of GGUF, as the file has it
  /// The tensors in the order of their bytes.
  std::vector<CheckpointTensor> tensors;
};

/// Describes a tensor: "float32 [2, 3]", "Q4_0 [32, 64]".
[[nodiscard]] std::string type_text(const CheckpointTensor& tensor);

using AnyFile = std::variant<ProgramFile, BundledProgramFile, TensorDataFile, CheckpointFile,
                             FatContainerFile, NativePackageFile>;

/// Opens a file by how it begins. Errors: those of file_kind() and of opening that kind.
[[nodiscard]] Result<AnyFile> open_any(const ByteSource& file);
/// Opens a file of a kind that file_kind() told. Error: kUnsupported for an update, which is no whole file.
[[nodiscard]] Result<AnyFile> open_any(const ByteSource& file, FileKind kind);

[[nodiscard]] FileKind kind_of(const AnyFile& file) noexcept;
[[nodiscard]] const ByteSource& source_of(const AnyFile& file) noexcept;

// Functions of public headers for a ByteSource, here for an open file.

/// See memory_alignment(ByteSource). `program` is the one of the bundle.
[[nodiscard]] Result<std::uint64_t> memory_alignment(const ProgramFile& program);
[[nodiscard]] Result<std::uint64_t> memory_alignment(const BundledProgramFile& bundle,
                                                     const ProgramFile& program);
[[nodiscard]] Result<std::uint64_t> memory_alignment(const TensorDataFile& file);
[[nodiscard]] Result<std::uint64_t> memory_alignment(const FatContainerFile& container);
/// See read_contents(ByteSource).
[[nodiscard]] Result<std::vector<FileContent>> read_contents(const AnyFile& file);
/// See find_duplicates(ByteSource). `contents` are those of `file`.
[[nodiscard]] Result<std::vector<Duplicates>> find_duplicates(const ByteSource& file,
                                                              const std::vector<FileContent>& contents);
/// See verify(ProgramFile, ...). `requests` are the program's.
[[nodiscard]] Result<Findings> verify(const ProgramFile& program, const DataRequests& requests,
                                      const std::vector<const TensorDataFile*>& weights);

}  // namespace etstream
