// SPDX-License-Identifier: BSD-3-Clause
//
// The pieces of a file of any format: each has a path, by which `etstream extract` takes it. And what each
// byte of the file belongs to: nested ranges, down to tensors, delegates and padding.
//
//   const auto weight = etstream::find_piece("model.pte", "named/lm_head.weight");
//   const auto contents = etstream::read_contents(etstream::ByteSource::file("model.pte").value());
//   if (!weight || !contents) return weight ? contents.error() : weight.error();
//   for (const etstream::FileContent& each : *contents) std::puts(each.path.c_str());
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/export.h"
#include "etstream/result.h"
#include "etstream/tensor_layout.h"

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

/// Something that a file has: a tensor, a segment, what a backend compiled.
///
/// No two pieces of a file have one path. These are the paths:
///
///   flatbuffer, graph               the tables of a program or of tensor data; the graph of a package
///   segments/0                      a segment
///   constants/3, initial/1          the data of a program's tensors, by its number
///   forward/delegate 0              what a backend compiled for a method
///   forward/delegate 0/weight_data  the part of it that has this name
///   named/lm_head.weight            the data of that name: of a program, tensor data, a checkpoint, a
///   package members/aliases.json            a member of a package program, program/segments/0     the
///   program of a bundle, and a piece of it cases/forward/1/input 0         a tensor of a bundle's test case,
///   counted over all suites of the method cpu, cpu/segments/0             a payload of a fat container, and
///   a piece of the file that it is changes/0                       the bytes of an update for a piece of the
///   file that it makes
///
/// What is no letter in a name from the file is %XX: what a terminal acts on, what is not UTF-8, '%', '#',
/// and '/' unless the name is the end of the path. If a name comes again, "#2" follows it. The first letter
/// of a method with the name of another first word, such as "named", is %XX too.
struct Piece {
  std::string path;
  ContentKind kind = ContentKind::kOther;
  std::string key = {};   // the name that the file has for it, which may be any bytes; may be empty
  std::string what = {};  // for people: "float32 [4, 3]"; may be empty
  std::optional<TensorLayout> layout = {};
  ByteSource data;  // may be empty, and may be gathered from several places in the file
};

/// Calls `visit` with each piece of a file, until it returns false: containers before what is in them. Reads
/// metadata. Memory: that of a method. Errors: kUnsupported for another kind of file; those of
/// ProgramGraph::read; kTooLarge for payloads of a fat container that share their bytes many times; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<void> for_each_piece(const ByteSource& file,
                                                          const std::function<bool(const Piece&)>& visit);

/// Returns the bytes of a piece. Checks the hashes of a bundle that has some, for which all of it is read.
/// Errors: kNotFound, with what is near; those of for_each_piece(), but only up to that piece.
[[nodiscard]] ETSTREAM_EXPORT Result<ByteSource> find_piece(const ByteSource& file, const std::string& path);

/// Does the same for what a path stands for: a file; or the files of a folder or an index, one of which has
/// the piece. Further error: kInvalidArgument if several of them have it.
[[nodiscard]] ETSTREAM_EXPORT Result<ByteSource> find_piece(const std::string& file, const std::string& path,
                                                            const OpenFile& open_file = &ByteSource::file);

/// A range of the file.
struct FileContent {
  ContentKind kind = ContentKind::kContainer;
  std::string path = {};           // of the piece; empty for tables and padding between pieces
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
