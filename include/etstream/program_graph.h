// SPDX-License-Identifier: BSD-3-Clause
//
// A method of a program as a graph: its values, and the calls that read and write them. It has what a backend
// needs that interprets programs.
//
//   const auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   if (!program) return program.error();
//   const auto graph = etstream::ProgramGraph::read(*program, "forward");
//   if (!graph) return graph.error();
//   for (const etstream::GraphCall& call : graph->calls) std::puts(graph->name_of(call).c_str());
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/program.h"
#include "etstream/result.h"

namespace etstream {

/// Where a tensor has its bytes.
enum class TensorStorage {
  kNone,      // no tensor
  kProvided,  // by whoever runs the method: an input that is not planned, an output without bound
  kPlanned,   // in the memory that the program was planned with
  kConstant,  // in the program
  kMutable,   // in planned memory, which starts from bytes in the program
  kExternal,  // in another file, under the tensor's name
};

struct GraphValue {
  ValueInfo info;  // OtherInfo where it is neither a tensor nor a scalar
  TensorStorage storage = TensorStorage::kNone;
  std::uint64_t size = 0;           // of a tensor, in bytes; where its shape is dynamic, at most
  std::uint32_t memory_id = 0;      // of planned memory, from 1 on; 0 for none
  std::uint64_t memory_offset = 0;  // in it, in bytes
  std::uint32_t data_index = 0;     // among the constants or the mutable data, from 1 on; 0 for none
  ByteSource data;              // a constant, or what mutable memory starts from: `size` bytes of the file
  std::string name;             // fully qualified, where the program says it
  std::string string;           // of a String
  std::vector<double> doubles;  // of a DoubleList
  std::vector<std::uint8_t> bools;  // of a BoolList, 0 or 1
  std::vector<std::int32_t> items;  // the values in a list; -1 for none in an OptionalTensorList
  bool is_input = false;            // of the method
  bool is_output = false;
  /// The value at the same place in planned memory, whose bytes this one shows: ExecuTorch emits no call for
  /// a view of static shape. Its producer is the last producer of that value, and the calls that read this
  /// one are also users of that value.
  std::optional<std::uint32_t> view_of;
  std::vector<std::uint32_t> producers;  // the calls that write it, by their numbers
  std::vector<std::uint32_t> users;      // the calls that read it
};

struct GraphOperator {
  std::string name;      // "aten::add"
  std::string overload;  // "out"
};

struct GraphDelegate {
  std::string backend;
  ByteSource data;  // what the backend made, where it is in the file
  bool in_segment = false;
  std::uint32_t index = 0;  // of the segment, or of the entry in the flatbuffer
};

/// An instruction. A list in inputs or outputs stands for its items too, which have this call among their
/// users or producers.
struct GraphCall {
  enum class Kind { kKernel, kDelegate, kMove, kJumpIfFalse, kFree };
  Kind kind = Kind::kKernel;
  std::uint32_t callee = 0;            // of a kernel its operator, of a delegate's call the delegate
  std::vector<std::uint32_t> args;     // as the program has them
  std::vector<std::uint32_t> inputs;   // of them, those that are read
  std::vector<std::uint32_t> outputs;  // those that are written, each once
  std::uint32_t destination = 0;       // of a jump: the number of a call, or how many there are
};

/// A program does not say which arguments a call writes: they follow from how ExecuTorch 1.5.1 emits calls.
///
/// - A kernel with one `out` argument has it twice at the end. A kernel with several has them, then a list of
///   them; one with a list of tensors has the list twice. These are its outputs.
/// - executorch_prim::et_copy_index writes its first argument, other prims write their last one. So do
///   operators that work in place; their last argument may be an input too, earlier among the arguments.
/// - Any other kernel, and a delegate, has its outputs last. They are consecutive values of the method that
///   hold nothing before the call: they are no inputs of the method, have no data in a file, no call before
///   writes them, and they show no value that was written and not read since. A kernel's last argument is
///   always an output, the ones before it only where they are tensors.
///
/// The last rule is wrong where a call reads planned memory that was never written (a mutable buffer without
/// initial data) by its last input, right before its outputs; and where a view's value was read
/// before.
struct ETSTREAM_EXPORT ProgramGraph {
  std::string method;
  std::vector<GraphValue> values;
  std::vector<GraphOperator> operators;
  std::vector<GraphDelegate> delegates;
  std::vector<GraphCall> calls;  // in order; of all chains, one after another
  std::vector<std::uint32_t> inputs;
  std::vector<std::uint32_t> outputs;
  std::vector<std::uint64_t> memory_sizes;  // of planned memory by its id, in bytes; that of id 0 is 0

  /// The method of this name, the first if it comes twice, or of this place in ProgramFile::methods(). Every
  /// index is in range in what is read. Reads no payload. Memory: about 400 bytes a value, 100 a call.
  /// Errors: kNotFound; kCorrupt for an index that leads nowhere, naming file and offset; kTooLarge for lists
  /// and strings over 1 MiB; kIo.
  [[nodiscard]] static Result<ProgramGraph> read(const ProgramFile& program, std::string_view method);
  [[nodiscard]] static Result<ProgramGraph> read(const ProgramFile& program, std::uint32_t method);

  /// "aten::add.out", "delegate XnnpackBackend", "move", "jump if false", "free".
  [[nodiscard]] std::string name_of(const GraphCall& call) const;
};

/// "planned", "constant"...; "" for kNone.
[[nodiscard]] ETSTREAM_EXPORT std::string_view name_of(TensorStorage storage) noexcept;
/// As the program's schema calls it: "Tensor", "Int", "IntList", "Null"... "NONE".
[[nodiscard]] ETSTREAM_EXPORT std::string_view kind_of(const ValueInfo& info);

}  // namespace etstream
