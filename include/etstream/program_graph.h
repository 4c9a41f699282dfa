// SPDX-License-Identifier: BSD-3-Clause
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
