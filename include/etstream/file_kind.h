// SPDX-License-Identifier: BSD-3-Clause
//
// Detects the format of a file.
//
//   const auto kind = etstream::file_kind(etstream::ByteSource::file("model.pte").value());
//   if (!kind) return kind.error();
//   std::puts(std::string(etstream::describe(*kind)).c_str());
//
// A segment of a program or of a tensor data file: bytes after the flatbuffer, to which it refers.
//
//   auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   if (!program) return program.error();
//   for (const etstream::SegmentInfo& segment : program->segments().value()) std::puts(segment.use.c_str());
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream {

/// The formats that etstream knows.
enum class FileKind {
  kProgram,
  kBundledProgram,
  kSegmentedBundle,
  kTensorData,
  kSafetensors,
  kGguf,
  kFatContainer,
  kNativePackage,
  kTorch,
  kUpdate
};

/// Detects the format from the identifier at offset 4; for GGUF, fat containers and zip archives from the
/// identifier at offset 0. Among zip archives, torch's have their members in a folder, and packages don't. A
/// safetensors file is detected from its header, which follows a length below 2^32 that can't be mistaken for
/// an identifier. Error: kUnsupported, naming what was found, as "an HTML page".
[[nodiscard]] ETSTREAM_EXPORT Result<FileKind> file_kind(const ByteSource& file);

/// Returns the kind that the ending of a path says, with .etz left out: .pte, .ptd, .safetensors, .gguf, .pth
/// or .ptn. Returns nothing for other endings, which may be those of any file.
[[nodiscard]] ETSTREAM_EXPORT std::optional<FileKind> kind_of_ending(std::string_view path) noexcept;

/// Checks that a plan is not written under the ending of another kind of file: tensor data as
/// "w.safetensors". Reads at most the first 512 bytes of the file. Error: kInvalidArgument.
[[nodiscard]] ETSTREAM_EXPORT Result<void> check_ending(const FilePlan& plan, const std::string& path);

/// Returns whether a file begins like an object in JSON, and is of no binary format. Binary formats begin
/// with a length or an offset, whose bytes may also spell white space and a brace. Errors: kUnsupported for a
/// download that went wrong, as in file_kind(); those of reading.
[[nodiscard]] ETSTREAM_EXPORT Result<bool> begins_json_object(const ByteSource& file);

/// Returns the kind's name for software: "program", "bundled_program", "segmented_bundle", "tensor_data",
/// "safetensors", "gguf", "fat_container", "native_package", "torch", "update".
[[nodiscard]] ETSTREAM_EXPORT std::string_view name_of(FileKind kind) noexcept;
/// Describes the kind for people: "program (ET12)", "tensor data (FT01)", "GGUF"...
[[nodiscard]] ETSTREAM_EXPORT std::string_view describe(FileKind kind) noexcept;

/// The place and the use of a segment.
struct SegmentInfo {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  /// The use of the segment. In a program: "constants", "mutable data", "delegate XnnpackBackend" or "named
  /// data". In tensor data: see TensorDataFile::segments(). "" if nothing uses it.
  std::string use;
};

}  // namespace etstream
