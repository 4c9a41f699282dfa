// SPDX-License-Identifier: BSD-3-Clause
//
// Lists what a file consists of.
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
#include "etstream/checkpoint.h"
#include "etstream/delegate_payloads.h"
#include "etstream/duplicates.h"
#include "etstream/export.h"
#include "etstream/file_contents.h"
#include "etstream/file_kind.h"
#include "etstream/key_names.h"
#include "etstream/packed_file.h"
#include "etstream/program.h"
#include "etstream/program_graph.h"
#include "etstream/result.h"
#include "etstream/segment_info.h"
#include "etstream/tensor_data_file.h"

namespace etstream {

/// A range of the file that holds one thing: a payload, or a flatbuffer.
struct FilePart {
  std::string path;  // of the piece: "program/segments/0", "cases/forward/0/input 1"
  std::string what;  // "constants", "float32 [1, 3]"; may be empty
  ContentKind kind = ContentKind::kOther;
  std::uint32_t others = 0;     // how many other pieces have the same bytes
  std::uint64_t offset = 0;     // from the start of the file, in bytes
  std::uint64_t size = 0;       // in bytes, without padding
  std::uint64_t alignment = 1;  // the largest power of two up to 65536 that divides `offset`
  std::uint32_t file = 0;       // an index in FileInspection::files, where there are any
};

/// A file that an inspection covers.
struct InspectedFile {
  std::string path;
  std::uint64_t size = 0;   // in bytes
  std::size_t tensors = 0;  // that count: of a file that an index names, those that it lists
};

/// A method of a program, as ProgramGraph has it. Sizes are in bytes.
struct InspectedMethod : MethodInfo {
  /// An operator that the method calls.
  struct Operator {
    std::string name;  // with its overload: "aten::add.out"
    std::uint32_t calls = 0;
  };
  /// A delegate of the method.
  struct Delegate : GraphDelegate {
    std::string path;  // of the piece that is its data
    std::uint32_t calls = 0;
  };
  /// A tensor among the method's values; see GraphValue.
  struct Tensor {
    std::uint32_t value = 0;  // its index
    std::string name;         // if the program has it
    TensorInfo info;
    TensorStorage storage = TensorStorage::kNone;
    std::uint64_t size = 0;
    std::uint32_t data_index = 0;
    std::uint32_t memory_id = 0;
    std::uint64_t memory_offset = 0;
  };
  /// An area of planned memory.
  struct Memory {
    std::uint32_t id = 0;            // from 1 on
    std::uint64_t size = 0;          // what the method needs
    std::uint32_t tensors = 0;       // how many are planned in it
    std::uint64_t tensor_bytes = 0;  // their total, as if none shared its place with another
  };
  std::uint32_t instructions = 0;
  std::vector<Operator> operators;  // the most called first
  std::vector<Delegate> delegates;  // in the method's order
  std::vector<Tensor> tensors;      // the largest first
  std::vector<Memory> memories;
};

/// The bytes of a program. Sizes are in bytes.
struct ProgramBytes {
  /// A segment, and the gap before it.
  struct Segment : SegmentInfo {
    std::uint64_t padding = 0;  // zeros between it and what comes before it
  };
  std::uint64_t flatbuffer_size = 0;
  std::uint64_t padding = 0;    // the total before segments
  std::uint32_t constants = 0;  // those of tensors of any method, each once
  std::uint64_t constant_bytes = 0;
  std::vector<Segment> segments;
};

/// The data of a delegate of a program.
struct InspectedPayload : DelegatePayload {
  std::string path;  // of the piece
  std::vector<std::string> part_paths;
};

/// Named data of a program, or that a program asks for.
struct NamedDataInfo {
  std::string key;
  std::string path;                     // of the piece; empty where it is not in the program
  std::string name;                     // that the key stands for; empty where none is known
  std::uint64_t size = 0;               // in bytes; 0 where it is not in the program and nobody says it
  std::optional<std::uint64_t> offset;  // from the start of the file; none where it is not in the program
  /// The users of the data: "method 'forward', delegate 0 (XnnpackBackend): filter of XNNFullyConnected 3".
  std::vector<std::string> asked_by;
};

/// The result of inspect().
struct FileInspection {
  std::vector<InspectedFile> files;  // where a path stands for several; offsets are from the start of each
  std::vector<Finding> notes;        // what set the file belongs to, and what is wrong with the set
  FileKind format = FileKind::kProgram;
  std::uint64_t size = 0;
  std::optional<std::uint64_t> memory_alignment;  // see memory_alignment.h; of files that the runtime loads
  std::uint32_t version = 0;                      // of the outermost schema; 0 if there is none
  std::vector<FilePart> parts;                    // in file order, shared ones once; they don't overlap
  std::uint64_t metadata_size = 0;                // the bytes outside all parts: tables, padding
  std::vector<InspectedMethod> methods;           // of the program
  std::optional<ProgramBytes> program;            // offsets in it are from the program's start
  KeyNames names;                                 // of the options, or beside the file
  std::vector<NamedTensorData> named_data;        // of tensor data
  std::vector<NamedDataInfo> program_data;        // of the program, and then what it lacks
  std::vector<InspectedPayload> payloads;         // of the program's delegates
  std::vector<std::pair<std::string, std::string>> metadata;  // of the program: keys, values for people
  std::vector<BundledProgramFile::Suite> suites;
  std::optional<UpdateSummary> update;  // of an update
  std::uint64_t bytes_read = 0;         // from the file, for everything but duplicates and contents
  std::vector<Duplicates> duplicates;   // from find_duplicates(), if requested
  std::vector<FileContent> contents;    // from read_contents(), if requested
};

/// Options of inspect().
struct InspectOptions {
  bool duplicates = false;  // also finds duplicates, which reads payloads
  bool contents = false;
  KeyNames names = {};  // what the keys of named data stand for
};

/// Reads the metadata of a .pte, a .ptd, a .bpte, a safetensors, a GGUF, a .fat or a .ptn file, a weight
/// cache of XNNPACK, or an update as it lies (packed_file.h), and payloads only if the options ask for it.
/// Errors: kUnsupported for another kind of file, kCorrupt, kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<FileInspection> inspect(const ByteSource& source,
                                                             const InspectOptions& options = {});

/// Lists the contents of what a path stands for: a file, as inspect(ByteSource) does, with a note if it is
/// one of a set; or the files of a folder or an index, one after the other, as if they were one. Notes say
/// which files are missing or contradict each other. Errors: those of inspect(ByteSource); those of opening a
/// folder or an index; kInvalidArgument for options that are for one file, if there are several. If the
/// options have no names, it reads them with read_key_names_beside().
[[nodiscard]] ETSTREAM_EXPORT Result<FileInspection> inspect(const std::string& path,
                                                             const InspectOptions& options = {},
                                                             const OpenFile& open_file = &ByteSource::file);

/// Returns the path of the piece that is the data of a tensor of the program; "" if that is not in the file.
[[nodiscard]] ETSTREAM_EXPORT std::string piece_path(const FileInspection& inspection,
                                                     const InspectedMethod::Tensor& tensor);

/// Returns the paths of the pieces that `named_data` lists.
[[nodiscard]] ETSTREAM_EXPORT std::vector<std::string> named_paths(const FileInspection& inspection);

/// Describes a value of a method: "float32 [1, 3, 224, 224]", "integer 3", "String"...
[[nodiscard]] ETSTREAM_EXPORT std::string describe(const ValueInfo& info);

}  // namespace etstream
