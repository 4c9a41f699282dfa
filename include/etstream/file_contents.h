// SPDX-License-Identifier: BSD-3-Clause
//
// Finds what each byte of a file belongs to: nested ranges, down to tensors, delegates and padding.
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

/// The kind of content that a range of a file has.
enum class ContentKind : std::uint8_t {
  kContainer,  // holds others: the file, a program, a segment, a payload
  kTables,     // metadata that locates the rest: flatbuffers, headers, directories
  kPadding,    // zeros that nothing refers to
  kTensor,     // a constant of a program, or a tensor of a weights file
  kInitial,    // initial values of a method's mutable memory
  kDelegate,   // what a backend compiled
  kNamedData,  // data that a backend requests by key
  kTestData,   // a tensor of a test case
  kOther,      // data of unknown use
};

/// Returns the name: "tensor", "delegate"...
[[nodiscard]] ETSTREAM_EXPORT std::string_view name_of(ContentKind kind) noexcept;

/// A range of the file.
struct FileContent {
  ContentKind kind = ContentKind::kContainer;
  std::string name = {};           // as in the file, which may be any bytes: "linear.weight"
  std::string detail = {};         // for people: "float32 [4, 3]"; may be empty
  std::uint64_t offset = 0;        // from the start of the file, in bytes
  std::uint64_t size = 0;          // in bytes
  std::uint32_t parent = 0;        // its index in the list; 0 for the whole file, which is the first entry
  std::uint32_t others = 0;        // how many other names the same bytes have
  std::uint32_t element_size = 0;  // of a tensor, in bytes; 0 if unknown
};

/// Lists the contents of a .pte, a .ptd, a .bpte, a safetensors, a GGUF, a .fat or a .ptn file in file order,
/// each entry after its parent. The children of an entry don't overlap, and together they fill it. A file
/// that is a payload of a fat container is listed with its own contents. Reads metadata and the bytes between
/// payloads. Memory: about 200 bytes per name and per gap. Errors: kUnsupported for another kind of file;
/// those of ProgramGraph::read; kTooLarge for payloads of a fat container that share their bytes many times;
/// kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<FileContent>> read_contents(const ByteSource& file);

}  // namespace etstream
