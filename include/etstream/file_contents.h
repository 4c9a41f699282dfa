// SPDX-License-Identifier: BSD-3-Clause
//
// Where every byte of a file belongs: ranges that lie in each other, down to tensors, delegates and padding.
//
//   const auto contents = etstream::read_contents(etstream::ByteSource::file("model.pte").value());
//   if (!contents) return contents.error();
//   for (const etstream::FileContent& each : *contents) std::puts(each.name.c_str());
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

enum class ContentKind : std::uint8_t {
  kContainer,  // holds others: the file, a program, a segment, a payload
  kTables,     // what says where the rest is: flatbuffers, headers, directories
  kPadding,    // zeros that nothing names
  kTensor,     // a constant of a program, or one of weights
  kInitial,    // what mutable memory of a method starts from
  kDelegate,   // what a backend made
  kNamedData,  // under a key, for a backend to take
  kTestData,   // a tensor of a test case
  kOther,      // data that nothing says more of
};

/// "tensor", "delegate"...
[[nodiscard]] ETSTREAM_EXPORT std::string_view name_of(ContentKind kind) noexcept;

/// A range of the file.
struct FileContent {
  ContentKind kind = ContentKind::kContainer;
  std::string name = {};           // as the file has it, which may be anything: "linear.weight"
  std::string detail = {};         // for people: "float32 [4, 3]"; may be empty
  std::uint64_t offset = 0;        // from the start of the file, in bytes
  std::uint64_t size = 0;          // in bytes
  std::uint32_t parent = 0;        // its place in the list; of the whole file, which is the first, 0
  std::uint32_t others = 0;        // how many more names stand for the same bytes
  std::uint32_t element_size = 0;  // of a tensor, in bytes; 0 where that is not known
};

/// What a .pte, a .ptd, a .bpte, a safetensors, a GGUF, a .fat or a .ptn file consists of: in file order,
/// each behind its parent. The children of one don't overlap, and where it has any they fill it. Payloads of
/// a fat container that are files are gone into. Reads metadata, and what lies between payloads. Memory:
/// about 200 bytes for each name and each gap. Errors: kUnsupported for another kind of file; those of
/// ProgramGraph::read; kTooLarge for payloads of a fat container that share their bytes many times; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<FileContent>> read_contents(const ByteSource& file);

}  // namespace etstream
