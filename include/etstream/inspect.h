// SPDX-License-Identifier: BSD-3-Clause
//
// Finds what a file contains more than once.
//
//   const auto found = etstream::find_duplicates(etstream::ByteSource::file("model.pte").value());
//   if (!found) return found.error();
//   for (const auto& group : *found) std::printf("%s\n", group.paths.front().c_str());
//
// The pieces of a file of any format: each has a path, by which `etstream extract` takes it. And what each
// byte of the file belongs to: nested ranges, down to tensors, delegates and padding.
//
//   const auto weight = etstream::find_piece("model.pte", "named/lm_head.weight");
//   const auto contents = etstream::read_contents(etstream::ByteSource::file("model.pte").value());
//   if (!weight || !contents) return weight ? contents.error() : weight.error();
//   for (const etstream::FileContent& each : *contents) std::puts(each.path.c_str());
//
// Lists what a file consists of.
//
//   const auto file = etstream::ByteSource::file("model.bpte").value();
//   const auto found = etstream::inspect(file);
//   if (!found) return found.error();
//   for (const etstream::FilePart& part : found->parts) std::puts(part.path.c_str());
//
// Estimates from samples how far compression would shrink a file.
//
//   const auto file = etstream::ByteSource::file("model.pte").value();
//   const auto contents = etstream::read_contents(file).value();
//   const auto estimate = etstream::estimate_coded_sizes(file, contents);
//   if (!estimate) return estimate.error();
//   std::printf("%llu bytes less\n", static_cast<unsigned long long>(estimate->saved));
//
// Computes the memory that ExecuTorch's runtime asks for to load and run a program, so that a board's memory
// pools can have exactly these sizes.
//
//   const auto file = etstream::ByteSource::file("model.pte").value();
//   const auto budget = etstream::read_memory_budget(file);
//   if (!budget) return budget.error();
//   for (const etstream::MethodBudget& method : budget->methods) {
//     std::printf("%s: %llu bytes\n", method.name.c_str(),
//                 static_cast<unsigned long long>(method.bits_32.method_allocator()));
//   }
//
// The figures are those of ExecuTorch 1.1 to 1.5. Their structs have the same sizes (docs/formats.md), and
// runtime/executor/method.cpp and tensor_parser_portable.cpp allocate in the same order; ExecuTorch 1.0 has
// larger values and smaller delegates. What backends take is that of 1.5: Ethos-U's has taken the same since
// 1.2, and XNNPACK's since 1.4. Portable tensors are meant, not those of ATen.
//
// The alignment that a file needs where it lies in memory, as when a linker places it in a board's flash.
//
//   const auto file = etstream::ByteSource::file("model.pte").value();
//   const auto alignment = etstream::memory_alignment(file);
//   if (!alignment) return alignment.error();
//   std::printf("alignas(%llu)\n", static_cast<unsigned long long>(*alignment));
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "etstream/bundled_program.h"
#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/file_kind.h"
#include "etstream/packed_file.h"
#include "etstream/program.h"
#include "etstream/program_weights.h"
#include "etstream/result.h"
#include "etstream/tensor.h"
#include "etstream/tensor_data.h"

namespace etstream {

/// Payloads with equal bytes at different places.
struct Duplicates {
  std::uint64_t size = 0;              // of each, in bytes
  std::vector<std::string> paths;      // of the pieces: "forward/delegate 0", "named/linear.weight"
  std::vector<std::uint64_t> offsets;  // of each in the file, in bytes

  /// Returns how many bytes the file would save with one copy.
  [[nodiscard]] std::uint64_t wasted() const noexcept { return size * (paths.size() - 1); }
};

/// Finds duplicates among what read_contents() returns for a file of any format that etstream knows, except
/// tables and padding; sorts them by wasted bytes, largest first. What lies in a repeated payload is counted
/// with it and not by itself, so that all wasted bytes may be added up. Reads the payloads that share their
/// size with another, and compares their bytes, in 512 KiB of memory. Errors: those of read_contents();
/// kTooLarge for payloads that share their bytes many times.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<Duplicates>> find_duplicates(const ByteSource& file);

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
/// - flatbuffer: the tables of a program or of tensor data; graph: those of a package
/// - segments/0: a segment
/// - constants/3, initial/1: the data of a program's tensors, by its number
/// - forward/delegate 0: what a backend compiled for a method
/// - forward/delegate 0/weight_data: the part of it that has this name
/// - named/lm_head.weight: the data of that name, of a program, tensor data, a checkpoint or a package
/// - members/aliases.json: a member of a package
/// - program, program/segments/0: the program of a bundle, and a piece of it
/// - cases/forward/1/input 0: a tensor of a bundle's test case, which counts over all suites of the method
/// - cpu, cpu/segments/0: a payload of a fat container, and a piece of the file that it is
/// - changes/0: the bytes of an update for a piece of the file that it makes
///
/// A name from the file has %XX for each byte of what a terminal acts on, of what is not UTF-8, and of '%',
/// '#' and '/', which stays where the name is the end of the path. If a name comes again, "#2" follows it.
/// The first letter of a method with the name of another first word, such as "named", is %XX too.
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
  std::string name = {};           // what its key stands for, by InspectOptions::names; may be empty
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
  std::optional<std::uint64_t> memory_alignment;  // see memory_alignment(); of files that the runtime loads
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

/// Sizes are in bytes.
struct CodedSizes {
  /// The size of one payload.
  struct One {
    std::uint32_t content = 0;  // its index in the list
    std::uint64_t size = 0;     // after coding
  };
  std::vector<One> contents;     // the sampled ones, in the order of the list
  std::uint64_t looked_at = 0;   // their total size
  std::uint64_t saved = 0;       // how much of that coding would save
  std::uint64_t bytes_read = 0;  // as samples
};

/// Estimates the size of payloads after an entropy coder that codes each byte by its frequency at its
/// position in an element, such as the exponents of floats. Samples the 1,024 largest of `contents` that have
/// no children and at least 64 KiB: 64 KiB of each are read, from 16 places. A compressor that also finds
/// repeated strings, such as zstd, may save more; random data can't be compressed by either. Errors: kIo;
/// kCorrupt for a file that changes.
[[nodiscard]] ETSTREAM_EXPORT Result<CodedSizes> estimate_coded_sizes(
    const ByteSource& file, const std::vector<FileContent>& contents);

/// The bytes that loading a method takes from allocators that begin at a multiple of 16. Each part of the
/// method allocator includes the padding before its pieces.
struct AllocatorBudget {
  std::uint64_t values = 0;     // the method's values, a flag for each input, entries for external constants
  std::uint64_t tensors = 0;    // shapes and strides, without the tensors' data
  std::uint64_t lists = 0;      // lists and strings
  std::uint64_t delegates = 0;  // the runtime's part of delegates, and their compile specs
  std::uint64_t backends = 0;   // what backends take, as far as MethodBudget::Delegate::is_known
  std::uint64_t calls = 0;      // chains, kernels and lists of arguments
  /// The least temp allocator with which the runtime takes nothing more from the method allocator.
  std::uint64_t load_temp = 0;

  /// Returns the bytes that the runtime has taken from its method allocator once the method is loaded.
  [[nodiscard]] std::uint64_t method_allocator() const noexcept {
    return values + tensors + lists + delegates + backends + calls;
  }
};

/// The needs of a method. Sizes are in bytes.
struct MethodBudget {
  /// An area of planned memory.
  struct Planned {
    std::uint32_t id = 0;    // from 1 on; the runtime counts its buffers from 0 on
    std::uint64_t size = 0;  // what the program asks for
    std::uint64_t used = 0;  // the end of the last tensor in it
  };
  /// The parts of a command stream that Vela made for Ethos-U, as far as they are in the program.
  struct EthosU {
    std::optional<std::uint64_t> commands;
    std::optional<std::uint64_t> weights;
    std::optional<std::uint64_t> scratch;  // from the temp allocator, at a multiple of 16, in a call
  };
  /// A delegate, in the method's order.
  struct Delegate {
    std::string backend;
    std::uint64_t size = 0;   // of its data
    bool in_segment = false;  // which a data loader may copy; otherwise in the flatbuffer
    bool is_known = false;    // the library knows what the backend takes from the allocators
    std::optional<EthosU> ethos_u;
  };
  /// The inputs, or the outputs.
  struct Ends {
    std::uint32_t count = 0;
    std::uint64_t size = 0;      // of the tensors; the most if shapes are dynamic
    std::uint64_t provided = 0;  // of those that are not planned: the caller's buffers
  };

  std::string name;
  AllocatorBudget bits_64;  // where pointers have 64 bits
  AllocatorBudget bits_32;  // where they have 32 bits, and 64-bit integers lie at multiples of 8, as on Arm
  std::vector<Planned> planned;
  std::vector<Delegate> delegates;
  Ends inputs;
  Ends outputs;
  std::uint64_t run_temp = 0;      // the most that a known backend takes from the temp allocator in a call
  std::uint32_t kernel_calls = 0;  // whose kernels may take more from it; no file says how much

  /// Returns the backends that take an unknown number of bytes, each once, in the method's order.
  [[nodiscard]] ETSTREAM_EXPORT std::vector<std::string> unknown_backends() const;
};

/// The test cases of a method in a bundle. Runners copy the inputs of a case into planned memory, or use
/// them, and the expected outputs, where they lie.
struct CaseBudget {
  std::string method;
  std::uint32_t test_cases = 0;
  std::uint64_t inputs = 0;            // the bytes of tensors in the case that has the most
  std::uint64_t expected_outputs = 0;  // likewise
};

/// Sizes of pools for all methods of a program, loaded one at a time.
struct PoolSizes {
  std::uint64_t method_allocator = 0;
  std::uint64_t temp_allocator = 0;  // without what kernels take
};

/// The needs of a file. Sizes are in bytes.
struct MemoryBudget {
  std::uint64_t file_size = 0;
  std::uint64_t file_alignment = 16;  // see memory_alignment()
  std::uint64_t flatbuffer_size = 0;  // of the program; loaders read it at once
  std::uint64_t constants_size = 0;   // of the segment of constants, which they read with it
  std::uint64_t external_keys = 0;    // that come from tensor data, whose size is in no figure
  std::vector<MethodBudget> methods;
  std::vector<CaseBudget> cases;

  /// Returns the largest pools of the methods, where pointers have 64 bits, and where they have 32.
  [[nodiscard]] ETSTREAM_EXPORT PoolSizes pools_64() const;
  [[nodiscard]] ETSTREAM_EXPORT PoolSizes pools_32() const;
  /// Returns the largest size of each area of planned memory, by its id - 1.
  [[nodiscard]] ETSTREAM_EXPORT std::vector<std::uint64_t> planned() const;
};

/// Reads the metadata of a .pte or a .bpte file, and the command streams of Ethos-U. Memory grows with the
/// number of methods, delegates, inputs and outputs. May be called from several threads at once. Errors:
/// kUnsupported for another kind of file; kCorrupt, naming file, offset, expected and found; kTooLarge for
/// sums over 2^64 - 1; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<MemoryBudget> read_memory_budget(const ByteSource& file);

/// Returns the multiple of bytes, a power of two from 16 to 65536, that `file` must begin at, so that
/// everything in it lies as it was written to lie:
/// - a program or tensor data: 16, the largest that ExecuTorch's loader asks for (alignof(max_align_t), in
///   runtime/executor/program.cpp of 1.5.1), or more if its segments or the padding of its header show that
///   it was written for more;
/// - a bundle or a fat container: what the programs inside need, as far as their offsets allow it. The
///   program of a bundle from Arm's compiler begins at a multiple of 16 and of no more.
/// - anything else: 16.
/// Errors: kCorrupt for a file that begins as one of these and is none; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<std::uint64_t> memory_alignment(const ByteSource& file);

}  // namespace etstream
