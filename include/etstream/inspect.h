// SPDX-License-Identifier: BSD-3-Clause
//
// What a file consists of.
//
//   const auto file = etstream::ByteSource::file("model.bpte").value();
//   const auto found = etstream::inspect(file);
//   if (!found) return found.error();
//   for (const etstream::FilePart& part : found->parts) std::puts(part.name.c_str());
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "etstream/bundled_program_file.h"
#include "etstream/byte_source.h"
#include "etstream/duplicates.h"
#include "etstream/export.h"
#include "etstream/file_contents.h"
#include "etstream/file_kind.h"
#include "etstream/program.h"
#include "etstream/program_summary.h"
#include "etstream/result.h"
#include "etstream/tensor_data_file.h"

namespace etstream {

/// A range of the file that holds one thing.
struct FilePart {
  std::string name;          // "program: segment 0 (constants)", "forward, case 0, input 1: float32 [1, 3]"
  std::uint64_t offset = 0;  // from the start of the file, in bytes
  std::uint64_t size = 0;    // in bytes, without padding
  std::uint64_t alignment = 1;  // the largest power of two up to 65536 that divides `offset`
};

struct FileInspection {
  FileKind format = FileKind::kProgram;
  std::uint64_t size = 0;
  std::uint32_t version = 0;              // of the outermost schema; 0 where there is none
  std::vector<FilePart> parts;            // payloads in file order, a shared one once; they don't overlap
  std::uint64_t metadata_size = 0;        // all that is in no part: tables, padding
  std::vector<MethodInfo> methods;        // of the program
  std::optional<ProgramSummary> program;  // offsets in it are from the program's start
  std::vector<NamedTensorData> named_data;
  std::vector<std::string> named_data_users;  // delegates that take named data: who, and how much of it
  std::vector<std::pair<std::string, std::string>> metadata;  // of the program: keys, and values for people
  std::vector<BundledProgramFile::Suite> suites;
  std::uint64_t bytes_read = 0;        // from the file, to find out all but duplicates
  std::vector<Duplicates> duplicates;  // as find_duplicates() has them, where they are asked for
  std::vector<FileContent> contents;   // as read_contents() has them, where they are asked for
};

struct InspectOptions {
  bool duplicates = false;  // finds them too, which reads payloads
  bool contents = false;
};

/// Reads the metadata of a .pte, a .ptd, a .bpte, a safetensors, a GGUF, a .fat or a .ptn file, no payload
/// unless asked to. Errors: kUnsupported for another kind of file, kCorrupt, kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<FileInspection> inspect(const ByteSource& source,
                                                             const InspectOptions& options = {});

/// "float32 [1, 3, 224, 224]", "integer 3", "String"...
[[nodiscard]] ETSTREAM_EXPORT std::string describe(const ValueInfo& info);

}  // namespace etstream
