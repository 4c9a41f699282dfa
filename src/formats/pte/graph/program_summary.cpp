// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_summary.h"

#include <algorithm>
#include <map>

#include "core/base/try.h"

namespace etstream {
namespace {

/// The sizes of constants by their offsets in the file.
using ConstantSizes = std::map<std::uint64_t, std::uint64_t>;

void count_calls(const ProgramGraph& graph, MethodSummary& method) {
  std::map<std::string, std::uint32_t> calls;
  for (const GraphCall& call : graph.calls) {
    if (call.kind == CallKind::kKernel) ++calls[graph.name_of(call)];
    if (call.kind == CallKind::kDelegate) ++method.delegates[call.callee].calls;
  }
  for (const auto& [name, count] : calls) method.operators.push_back({name, count});
  std::stable_sort(method.operators.begin(), method.operators.end(),
                   [](const auto& a, const auto& b) { return a.calls > b.calls; });
}

void list_tensors(const ProgramGraph& graph, MethodSummary& method) {
  for (std::uint32_t i = 0; i < graph.values.size(); ++i) {
    const GraphValue& value = graph.values[i];
    const auto* info = std::get_if<TensorInfo>(&value.info);
    if (!info) continue;
    method.tensors.push_back({i, value.name, *info, value.storage, value.size, value.data_index,
                              value.memory_id, value.memory_offset});
    if (value.memory_id == 0) continue;
    MethodSummary::Memory& memory = method.memories[value.memory_id - 1];
    ++memory.tensors;
    memory.tensor_bytes += value.size;
  }
  std::stable_sort(method.tensors.begin(), method.tensors.end(),
                   [](const auto& a, const auto& b) { return a.size > b.size; });
}

MethodSummary summarize_method(const ProgramGraph& graph) {
  MethodSummary method;
  method.name = graph.method;
  method.instructions = static_cast<std::uint32_t>(graph.calls.size());
  for (const GraphDelegate& delegate : graph.delegates) {
    method.delegates.push_back({delegate.backend, delegate.data.size(), delegate.in_segment, delegate.index});
  }
  for (std::uint32_t id = 1; id < graph.memory_sizes.size(); ++id) {
    method.memories.push_back({id, graph.memory_sizes[id]});
  }
  count_calls(graph, method);
  list_tensors(graph, method);
  return method;
}

void note_constants(const ProgramGraph& graph, const ByteSource& file, ConstantSizes& sizes) {
  for (const GraphValue& value : graph.values) {
    if (value.storage != TensorStorage::kConstant || value.size == 0) continue;
    std::uint64_t& size = sizes[value.data.offset_in(file).value_or(0)];
    size = std::max(size, value.size);
  }
}

Result<void> list_segments(const ProgramFile& program, ProgramSummary& summary) {
  ETSTREAM_ASSIGN(const auto segments, program.segments());
  std::uint64_t end = program.flatbuffer_size();
  for (const SegmentInfo& segment : segments) {
    const bool is_behind = segment.size > 0 && segment.offset >= end;
    const std::uint64_t padding = is_behind ? segment.offset - end : 0;
    summary.segments.push_back({segment, padding});
    summary.padding += padding;
    if (segment.size > 0) end = std::max(end, segment.offset + segment.size);
  }
  return {};
}

}  // namespace

Result<ProgramSummary> summarize(const ProgramFile& program) {
  return without_exceptions([&]() -> Result<ProgramSummary> {
    ProgramSummary summary;
    summary.flatbuffer_size = program.flatbuffer_size();
    ETSTREAM_TRY(list_segments(program, summary));
    ETSTREAM_ASSIGN(const auto methods, program.methods());
    ConstantSizes constants;
    for (std::uint32_t i = 0; i < methods.size(); ++i) {
      ETSTREAM_ASSIGN(const ProgramGraph graph, ProgramGraph::read(program, i));
      note_constants(graph, program.file(), constants);
      summary.methods.push_back(summarize_method(graph));
    }
    summary.constants = static_cast<std::uint32_t>(constants.size());
    for (const auto& constant : constants) summary.constant_bytes += constant.second;
    return summary;
  });
}

}  // namespace etstream
