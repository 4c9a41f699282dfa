// SPDX-License-Identifier: BSD-3-Clause
//
// Detects the format of a file.
//
//   const auto kind = etstream::file_kind(etstream::ByteSource::file("model.pte").value());
//   if (!kind) return kind.error();
//   std::puts(std::string(etstream::describe(*kind)).c_str());
#pragma once

#include <string_view>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

enum class FileKind {
  kProgram,
  kBundledProgram,
  kSegmentedBundle,
  kTensorData,
  kSafetensors,
  kGguf,
  kFatContainer,
  kNativePackage,
  kTorch
};

/// Detects the format from the identifier at offset 4; for GGUF, fat containers and packages (zip archives)
/// from the identifier at offset 0, where those of torch have their members in a folder; for safetensors from
/// the header, which follows a length below 2^32 that can't be mistaken for an identifier. Error:
/// kUnsupported, naming what was found, as "an HTML page".
[[nodiscard]] ETSTREAM_EXPORT Result<FileKind> file_kind(const ByteSource& file);

/// Returns whether a file begins as an object in JSON does, and is of no binary format: the length or the
/// offset that those begin with may spell white space and a brace too. Errors: kUnsupported for a download
/// that went wrong, as of file_kind(); those of reading.
[[nodiscard]] ETSTREAM_EXPORT Result<bool> begins_json_object(const ByteSource& file);

/// For software: "program", "bundled_program", "segmented_bundle", "tensor_data", "safetensors", "gguf",
/// "fat_container", "native_package", "torch".
[[nodiscard]] ETSTREAM_EXPORT std::string_view name_of(FileKind kind) noexcept;
/// For people: "program (ET12)", "tensor data (FT01)", "GGUF"...
[[nodiscard]] ETSTREAM_EXPORT std::string_view describe(FileKind kind) noexcept;

}  // namespace etstream
