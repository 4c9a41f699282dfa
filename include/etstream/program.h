// SPDX-License-Identifier: BSD-3-Clause
//
// ProgramSchema: the tables and fields that a program (.pte) may have. The schema of ExecuTorch 1.5.1 is
// built in. The schema of another release, with more fields and tables, can be loaded from its installation,
// so that nothing in its programs is lost.
//
//   auto schema = etstream::ProgramSchema::load("executorch/schema/program.fbs");
//   if (!schema) return schema.error();
//   const auto file = etstream::ByteSource::file("model.pte").value();
//   auto program = etstream::ProgramFile::open(file, {}, *schema);
//   if (!program) return program.error();
//
// Reads an ExecuTorch program (.pte, identifier ET12) in place.
//
//   auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   if (!program) return program.error();
//   for (const auto& method : program->methods().value()) std::puts(method.name.c_str());
//
// A program's metadata about its model: named data under keys that begin with "metadata.", as ExecuTorch's
// issue 19384 proposes. The file has the bytes of a value, but not its type.
//
//   etstream::ProgramChanges changes;
//   changes.metadata["context.length"] = etstream::encode(std::int64_t{8192});
//
// Tells what the data of a program's delegates is, as far as its own header says it, and where its parts are.
//
//   const auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   if (!program) return program.error();
//   const auto payloads = etstream::read_delegate_payloads(*program);
//   if (!payloads) return payloads.error();
//   for (const etstream::DelegatePayload& payload : *payloads) std::puts(payload.format.c_str());
//
// Known are the payloads of XNNPACK, Ethos-U, Vulkan and WebGPU. Those of CUDA, Core ML, MLX, QNN, TOSA and
// VGF are told by their magics alone.
//
// A method of a program as a graph: its values, and the calls that read and write them. It contains all that
// a backend needs to interpret programs.
//
//   const auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   if (!program) return program.error();
//   const auto graph = etstream::ProgramGraph::read(*program, "forward");
//   if (!graph) return graph.error();
//   for (const etstream::GraphCall& call : graph->calls) std::puts(graph->name_of(call).c_str());
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/file_kind.h"
#include "etstream/result.h"
#include "etstream/tensor.h"

namespace etstream {

class Schema;

/// A value, cheap to copy. Const use from several threads is safe.
class ETSTREAM_EXPORT ProgramSchema {
 public:
  /// Makes the schema of ExecuTorch 1.5.1.
  ProgramSchema() = default;

  /// Loads a .fbs file, with its includes from the same folder or from `include_folders`, or a binary schema
  /// (.bfbs). Errors: kCorrupt for an invalid schema, naming file and line; kUnsupported if a table or field
  /// of the built-in schema is missing or different, naming it; kNotFound, kIo.
  [[nodiscard]] static Result<ProgramSchema> load(const std::string& path,
                                                  const std::vector<std::string>& include_folders = {});

  /// Returns the library's internal representation. Error: kCorrupt, never for the built-in schema.
  [[nodiscard]] Result<std::shared_ptr<const Schema>> schema() const;

 private:
  std::shared_ptr<const Schema> schema_;  // null for the built-in one
};

namespace pte {
class ETSTREAM_HIDDEN Program;
}

/// The meaning of a tensor's sizes: exact, upper bounds, or no bounds.
enum class ShapeDynamism : std::int8_t { kStatic = 0, kDynamicBound = 1, kDynamicUnbound = 2 };

/// The place of a tensor's bytes.
enum class TensorStorage {
  kNone,      // not a tensor
  kProvided,  // by the method's caller: an input that is not planned, an output without a bound
  kPlanned,   // in the memory that the program was planned with
  kConstant,  // in the program
  kMutable,   // in planned memory, initialized from bytes in the program
  kExternal,  // in another file, under the tensor's name
};

/// Returns the name: "planned", "constant"...; "" for kNone.
[[nodiscard]] ETSTREAM_EXPORT std::string_view name_of(TensorStorage storage) noexcept;

/// The kind of an instruction.
enum class CallKind { kKernel, kDelegate, kMove, kJumpIfFalse, kFree };

/// The type and the shape of a tensor, and how fixed the shape is.
struct TensorInfo {
  ScalarType scalar_type = ScalarType::kFloat32;
  std::vector<std::int32_t> sizes;
  std::vector<std::uint8_t> dim_order;  // the dimensions, outermost first
  ShapeDynamism dynamism = ShapeDynamism::kStatic;
};

/// A kind of value that no test case can hold: "Null", "String", "TensorList"...
struct OtherInfo {
  std::string kind;
};

/// An input or output of a method. A scalar is the value that the method was exported with.
using ValueInfo = std::variant<TensorInfo, std::int64_t, bool, double, OtherInfo>;

/// The signature of a method.
struct MethodInfo {
  std::string name;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
};

/// An open program. Whatever its size, it holds at most 512 KiB of the file in memory, and, once they are
/// requested, its segments() and the names of its methods. All functions may be called from several threads
/// at once. Errors: kCorrupt, naming file, offset, expected and found; kIo.
class ETSTREAM_EXPORT ProgramFile {
 public:
  /// Reads all metadata and checks its structure: every table, vector and string, and the zeros between them.
  /// `file` contains the program and nothing else; `name` stands for it in messages, by default the file's
  /// name. Tables and fields that `schema` lacks are ignored. Memory during the check: 16 bytes per object.
  [[nodiscard]] static Result<ProgramFile> open(ByteSource file, std::string name = {},
                                                const ProgramSchema& schema = {});

  ProgramFile(ProgramFile&&) noexcept;
  ProgramFile& operator=(ProgramFile&&) noexcept;
  ~ProgramFile();

  /// Returns the source that was opened.
  [[nodiscard]] const ByteSource& file() const noexcept;
  /// Returns the size of the flatbuffer, which is at the start of the file and includes the extended header.
  [[nodiscard]] std::uint64_t flatbuffer_size() const noexcept;

  /// Returns the version of the program's schema.
  [[nodiscard]] Result<std::uint32_t> version() const;
  /// Returns the methods in the order of the program.
  [[nodiscard]] Result<std::vector<MethodInfo>> methods() const;
  /// Returns the segments by index, with offsets from the start of the file.
  [[nodiscard]] Result<std::vector<SegmentInfo>> segments() const;
  /// Returns the alignment that the program was written with, up to 64 KiB, as far as the offsets of its
  /// segments show it.
  [[nodiscard]] Result<std::uint64_t> segment_alignment() const;

  /// Checks what open() does not: that indices are in range; that segments are inside the file, disjoint and
  /// aligned, with zeros between them. Adds the problems to `findings`; a reference that can't be followed
  /// ends the check. Errors: kIo, kOutOfMemory.
  [[nodiscard]] Result<void> verify(Findings& findings) const;

  /// Returns the library's internal representation.
  [[nodiscard]] const pte::Program& model() const noexcept { return *model_; }

 private:
  explicit ProgramFile(std::unique_ptr<const pte::Program> model);
  std::unique_ptr<const pte::Program> model_;
};

/// The prefix that the keys of metadata have among those of named data.
inline constexpr std::string_view kMetadataPrefix = "metadata.";

/// A value as people write it, before it is encoded.
using MetadataValue = std::variant<std::string, std::int64_t, double, std::vector<std::int64_t>>;

/// Returns the bytes of a value: those of a string, or 8 little-endian bytes per number.
[[nodiscard]] ETSTREAM_EXPORT ByteSource encode(const MetadataValue& value);

/// Parses a value as people write it: 8192 is an integer, 0.5 or 1e-5 a double, [1, 2] a list of integers;
/// text in double quotes, and anything else, is a string. Error: kInvalidArgument for an integer over 64
/// bits.
[[nodiscard]] ETSTREAM_EXPORT Result<MetadataValue> parse_metadata_value(std::string_view text);

/// A key of a program's metadata, and the bytes of its value.
struct MetadataEntry {
  std::string key;  // without the prefix
  ByteSource value;
};

/// Reads the metadata in the order of the program. Errors: kCorrupt, kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<MetadataEntry>> read_metadata(const ProgramFile& program);

/// Describes the entry for people: text as it is, 8 bytes that are not text as an integer, other values as
/// their number of bytes. Shows at most 200 bytes. Error: kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<std::string> describe(const MetadataEntry& entry);

/// A part of a delegate's data that its header names.
struct PayloadPart {
  std::string name;          // "weight_data", "model.mlpackage/Manifest.json"
  std::uint64_t offset = 0;  // from the beginning of the delegate's data, in bytes
  std::uint64_t size = 0;    // in bytes, without padding
  std::string key = {};      // of the named data that has the content; the part is that key then
};

/// A number or a text that a delegate's data says of itself.
struct PayloadFact {
  std::string name;  // "scratch_size", in bytes if it is a size
  std::variant<std::int64_t, std::string> value;
};

/// The data of a delegate.
struct DelegatePayload {
  std::string method;          // the first one that uses it
  std::uint32_t delegate = 0;  // the first delegate of that method that uses it
  std::string backend;         // its id: "EthosUBackend"
  ByteSource data;
  std::string format;  // "a stream of blocks (vela_bin_stream)"; empty if it is not known, or is damaged
  std::vector<PayloadPart> parts;  // as its header lists them
  std::vector<PayloadFact> facts;
  std::uint64_t keys = 0;  // how many keys of named data it asks for, as far as it is known
};

/// Reads what the delegates of all methods have, in file order: data that several share is listed once.
/// verify() tells what is wrong with damaged data, which has no parts here. Memory: that of the parts and the
/// facts. Time: in proportion to the metadata of the payloads. Errors: kCorrupt for what leads nowhere;
/// kTooLarge for data of delegates that share their bytes many times; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<DelegatePayload>> read_delegate_payloads(
    const ProgramFile& program);

/// A value of a method: a tensor, a scalar, a list, a string or nothing.
struct GraphValue {
  ValueInfo info;  // OtherInfo where it is neither a tensor nor a scalar
  TensorStorage storage = TensorStorage::kNone;
  std::uint64_t size = 0;           // of a tensor, in bytes; the most if its shape is dynamic
  std::uint32_t memory_id = 0;      // of planned memory, from 1 on; 0 for none
  std::uint64_t memory_offset = 0;  // in that memory, in bytes
  std::uint32_t data_index = 0;     // among the constants or the mutable data, from 1 on; 0 for none
  ByteSource data;                  // of a constant, or the initial mutable data: `size` bytes of the file
  std::string name;                 // fully qualified, if the program has it
  std::string string;               // of a String
  std::vector<double> doubles;      // of a DoubleList
  std::vector<std::uint8_t> bools;  // of a BoolList, 0 or 1
  std::vector<std::int32_t> items;  // indices of a list's values; -1 for none in an OptionalTensorList
  bool is_input = false;            // of the method
  bool is_output = false;
  /// The value at the same place in planned memory of which this one is a view: ExecuTorch emits no call for
  /// a view of static shape. The producer of this value is the last producer of that one, and the calls that
  /// read this one are also users of that one.
  std::optional<std::uint32_t> view_of;
  std::vector<std::uint32_t> producers;  // indices of the calls that write it
  std::vector<std::uint32_t> users;      // and of those that read it
};

/// An operator that kernels implement.
struct GraphOperator {
  std::string name;      // "aten::add"
  std::string overload;  // "out"
};

/// A part of the method that a backend runs.
struct GraphDelegate {
  std::string backend;
  ByteSource data;  // what the backend compiled, in the file
  bool in_segment = false;
  std::uint32_t index = 0;  // of the segment, or of the entry in the flatbuffer
};

/// An instruction. A list among inputs or outputs stands for its items too: this call is among their users or
/// producers.
struct GraphCall {
  CallKind kind = CallKind::kKernel;
  std::uint32_t callee = 0;            // index of the kernel's operator or of the delegate
  std::vector<std::uint32_t> args;     // as in the program
  std::vector<std::uint32_t> inputs;   // the args that are read
  std::vector<std::uint32_t> outputs;  // the args that are written, each once
  std::uint32_t destination = 0;       // of a jump: the index of a call, or one past the last
};

/// A program does not record which arguments a call writes. This follows from how ExecuTorch 1.5.1 emits
/// calls:
///
/// - A kernel with one `out` argument has it twice at the end. A kernel with several has them, then a list of
///   them; a kernel with a list of tensors as `out` has the list twice. These are its outputs.
/// - executorch_prim::et_copy_index writes its first argument, other prims write their last one. So do
///   in-place operators; their last argument may also be an input, earlier among the arguments.
/// - Any other kernel, and any delegate, has its outputs last. They are consecutive values of the method that
///   hold nothing before the call: they are not inputs of the method, have no data in a file, are not written
///   by an earlier call, and are not views of a value that was written and not read since. A kernel's last
///   argument is always an output; the ones before it are outputs only if they are tensors.
///
/// The last rule fails if the last input, right before the outputs, is planned memory that was never written
/// (a mutable buffer without initial data), or a view of a value that was read before.
struct ETSTREAM_EXPORT ProgramGraph {
  std::string method;
  std::vector<GraphValue> values;
  std::vector<GraphOperator> operators;
  std::vector<GraphDelegate> delegates;
  std::vector<GraphCall> calls;  // in order, one chain after another
  std::vector<std::uint32_t> inputs;
  std::vector<std::uint32_t> outputs;
  std::vector<std::uint64_t> memory_sizes;  // of planned memory by id, in bytes; 0 for id 0

  /// Reads the method of this name, the first if there are several, or of this index in
  /// ProgramFile::methods(). Every index in the graph is in range. Reads no payload. Memory: about 400 bytes
  /// per value, 100 per call. Errors: kNotFound; kCorrupt for an index out of range in the file, naming file
  /// and offset; kTooLarge for lists and strings over 1 MiB; kIo.
  [[nodiscard]] static Result<ProgramGraph> read(const ProgramFile& program, std::string_view method);
  [[nodiscard]] static Result<ProgramGraph> read(const ProgramFile& program, std::uint32_t method);

  /// Returns the name of what it calls: "aten::add.out", "delegate XnnpackBackend", "move", "jump if false",
  /// "free". It has the first 200 bytes of a name, an overload or a backend, as many calls may have one
  /// callee.
  [[nodiscard]] std::string name_of(const GraphCall& call) const;
};

/// Returns the kind's name in the program's schema: "Tensor", "Int", "IntList", "Null"... "NONE".
[[nodiscard]] ETSTREAM_EXPORT std::string_view kind_of(const ValueInfo& info);

}  // namespace etstream
