// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/graph/call_outputs.h"

#include <algorithm>
#include <set>
#include <utility>

#include "program_fields_generated.h"

namespace etstream {
namespace {

/// The number of arguments at the end that are outputs, and of arguments before them that repeat them.
struct Tail {
  std::size_t outputs = 0;
  std::size_t repeated = 0;
};

bool is_list(const GraphValue& value) { return kind_of(value.info) == program::TensorListFields::kName; }

/// Returns the tail of an operator with `out` arguments; an empty one for other operators.
Tail repeated_tail(const ProgramGraph& graph, const std::vector<std::uint32_t>& args) {
  if (args.size() < 2) return {};
  const std::uint32_t last = args.back();
  const std::uint32_t before = args[args.size() - 2];
  if (last == before) return {1, 1};
  const GraphValue& list = graph.values[last];
  if (!is_list(list)) return {};
  const std::size_t count = list.items.size();
  if (is_list(graph.values[before]) && graph.values[before].items == list.items) return {2, 0};
  if (count == 0 || count >= args.size()) return {};
  const auto begin = args.end() - 1 - static_cast<std::ptrdiff_t>(count);
  const auto same = [](std::uint32_t arg, std::int32_t item) { return std::cmp_equal(arg, item); };
  return std::equal(begin, args.end() - 1, list.items.begin(), same) ? Tail{count + 1, 0} : Tail{};
}

/// Returns whether a value must be empty before a call, so that the call must write it.
bool is_empty_before(const ProgramGraph& graph, const ValueContents& contents, std::uint32_t index,
                     bool tensors_alone) {
  const GraphValue& value = graph.values[index];
  if (value.is_input || contents.is_written(index)) return false;
  if (!std::holds_alternative<TensorInfo>(value.info)) {
    return !tensors_alone && !std::holds_alternative<OtherInfo>(value.info);
  }
  return value.storage == TensorStorage::kPlanned || value.storage == TensorStorage::kProvided;
}

/// Returns the number of arguments at the end that nothing has written.
std::size_t fresh_tail(const ProgramGraph& graph, const ValueContents& contents, const GraphCall& call) {
  const bool is_kernel = call.kind == CallKind::kKernel;
  std::size_t count = is_kernel && !call.args.empty() ? 1 : 0;
  for (; count < call.args.size(); ++count) {
    const std::size_t place = call.args.size() - 1 - count;
    const std::uint32_t arg = call.args[place];
    if (!is_empty_before(graph, contents, arg, is_kernel)) break;
    if (count == 0) continue;
    // Outputs become values one after another, and a value that has not been read is not overwritten.
    const auto shown = contents.shown_by(arg);
    if (arg + 1 != call.args[place + 1] || (shown && graph.values[*shown].users.empty())) break;
  }
  return count;
}

Tail tail_of(const ProgramGraph& graph, const ValueContents& contents, const GraphCall& call) {
  if (call.kind == CallKind::kDelegate) return {fresh_tail(graph, contents, call), 0};
  const GraphOperator& callee = graph.operators[call.callee];
  const std::size_t one = call.args.empty() ? 0 : 1;
  if (callee.name.starts_with("executorch_prim::") || callee.name.ends_with('_')) return {one, 0};
  const Tail repeated = repeated_tail(graph, call.args);
  return repeated.outputs > 0 ? repeated : Tail{fresh_tail(graph, contents, call), 0};
}

}  // namespace

ValueContents::ValueContents(const ProgramGraph& graph) : graph_(graph), written_(graph.values.size()) {
  for (std::uint32_t i = 0; i < graph.values.size(); ++i) {
    const GraphValue& value = graph.values[i];
    if (value.is_input || value.storage == TensorStorage::kMutable) hold(i);
  }
}

void ValueContents::hold(std::uint32_t value) {
  const GraphValue& tensor = graph_.values[value];
  if (tensor.memory_id != 0) holders_[{tensor.memory_id, tensor.memory_offset}] = value;
}

void ValueContents::write(std::uint32_t value) {
  written_[value] = true;
  hold(value);
}

std::optional<std::uint32_t> ValueContents::shown_by(std::uint32_t value) const {
  const GraphValue& tensor = graph_.values[value];
  if (tensor.storage != TensorStorage::kPlanned || tensor.is_input || written_[value]) return std::nullopt;
  const auto holder = holders_.find({tensor.memory_id, tensor.memory_offset});
  if (holder == holders_.end() || graph_.values[holder->second].size != tensor.size) return std::nullopt;
  return holder->second;
}

void split_arguments(const ProgramGraph& graph, const ValueContents& contents, GraphCall& call) {
  const bool is_kernel = call.kind == CallKind::kKernel;
  if (is_kernel && graph.operators[call.callee].name == "executorch_prim::et_copy_index") {
    // All of the first argument stays, except one index.
    call.inputs = call.args;
    if (!call.args.empty()) call.outputs = {call.args.front()};
    return;
  }
  const Tail tail = tail_of(graph, contents, call);
  const auto outputs = call.args.end() - static_cast<std::ptrdiff_t>(tail.outputs);
  call.inputs.assign(call.args.begin(), outputs - static_cast<std::ptrdiff_t>(tail.repeated));
  std::set<std::uint32_t> seen;
  for (auto arg = outputs; arg != call.args.end(); ++arg) {
    if (seen.insert(*arg).second) call.outputs.push_back(*arg);
  }
}

}  // namespace etstream
