// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "formats/pte/program_model.h"
#include "program_fields_generated.h"

namespace etstream {
namespace {

/// The contents of a graph's values between two calls.
class ValueContents {
 public:
  /// Begins before the first call. All values of `graph`, which outlives this, exist already.
  explicit ValueContents(const ProgramGraph& graph) : graph_(graph), written_(graph.values.size()) {
    for (std::uint32_t i = 0; i < graph.values.size(); ++i) {
      const GraphValue& value = graph.values[i];
      if (value.is_input || value.storage == TensorStorage::kMutable) hold(i);
    }
  }

  void write(std::uint32_t value) {
    written_[value] = true;
    hold(value);
  }

  [[nodiscard]] bool is_written(std::uint32_t value) const { return written_[value]; }

  /// Returns the value that was last written at the planned memory of `value`, which itself was not written;
  /// nothing unless both have the same size.
  std::optional<std::uint32_t> shown_by(std::uint32_t value) const {
    const GraphValue& tensor = graph_.values[value];
    if (tensor.storage != TensorStorage::kPlanned || tensor.is_input || written_[value]) return std::nullopt;
    const auto holder = holders_.find({tensor.memory_id, tensor.memory_offset});
    if (holder == holders_.end() || graph_.values[holder->second].size != tensor.size) return std::nullopt;
    return holder->second;
  }

 private:
  void hold(std::uint32_t value) {
    const GraphValue& tensor = graph_.values[value];
    if (tensor.memory_id != 0) holders_[{tensor.memory_id, tensor.memory_offset}] = value;
  }

  const ProgramGraph& graph_;
  std::vector<bool> written_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> holders_;  // by memory and offset
};

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

/// Sets the inputs and outputs of `call`, a kernel's or a delegate's, whose args are in range, by the
/// rules at ProgramGraph.
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

class GraphReader {
 public:
  GraphReader(const pte::Program& program, const pte::Method& method)
      : program_(program), method_(method), most_links_(program.header().program_size) {}

  Result<ProgramGraph> read() {
    const auto& known = program_.fields().execution_plan;
    ETSTREAM_ASSIGN(graph_.method, method_.name());
    ETSTREAM_ASSIGN(memory_sizes_, method_.memory_sizes());
    ETSTREAM_ASSIGN(const auto sizes, memory_sizes_.all());
    graph_.memory_sizes.assign(sizes.begin(), sizes.end());
    ETSTREAM_TRY(read_values());
    ETSTREAM_ASSIGN(graph_.inputs, ends(known.inputs));
    ETSTREAM_ASSIGN(graph_.outputs, ends(known.outputs));
    for (const std::uint32_t input : graph_.inputs) graph_.values[input].is_input = true;
    for (const std::uint32_t output : graph_.outputs) graph_.values[output].is_output = true;
    ETSTREAM_TRY(read_operators());
    ETSTREAM_TRY(read_delegates());
    contents_.emplace(graph_);
    ETSTREAM_TRY(for_each(method_.chains(), [&](const pte::Chain& chain) { return read_chain(chain); }));
    for (const std::uint32_t output : graph_.outputs) see(output);
    return std::move(graph_);
  }

 private:
  /// Reads indices of values. With `may_be_none`, -1 is allowed too.
  static Result<std::vector<std::int32_t>> items(const pte::View& table, const BoundField& field,
                                                 std::uint64_t count, bool may_be_none) {
    ETSTREAM_ASSIGN(const auto listed, table.indices(field));
    std::vector<std::int32_t> out;
    for (const std::int64_t item : listed) {
      if (!may_be_none || item != -1) ETSTREAM_TRY(table.check_index(field, item, count));
      out.push_back(static_cast<std::int32_t>(item));
    }
    return out;
  }
  /// Reads the method's inputs or outputs.
  Result<std::vector<std::uint32_t>> ends(const BoundField& field) const {
    ETSTREAM_ASSIGN(const auto listed, items(method_, field, graph_.values.size(), false));
    return std::vector<std::uint32_t>(listed.begin(), listed.end());
  }

  Result<void> read_values() {
    ETSTREAM_ASSIGN(const auto values, method_.values());
    graph_.values.reserve(values.size());
    return for_each(values, [&](const pte::Value& table) -> Result<void> {
      GraphValue& value = graph_.values.emplace_back();
      ETSTREAM_ASSIGN(const auto held, table.held());
      ETSTREAM_ASSIGN(value.info, pte::Held::info_of(held));
      return held ? read_content(*held, values.size(), value) : Result<void>();
    });
  }

  /// Reads the parts of a value that its ValueInfo lacks.
  Result<void> read_content(const pte::Held& held, std::uint64_t count, GraphValue& value) {
    const pte::ValueKind kind = held.kind();
    if (kind == pte::ValueKind::kTensor) return read_tensor(held.tensor(), value);
    if (kind == pte::ValueKind::kString) {
      ETSTREAM_ASSIGN(value.string, held.string());
    } else if (kind == pte::ValueKind::kDoubleList) {
      ETSTREAM_ASSIGN(value.doubles, held.values<double>(*held.items()));
    } else if (kind == pte::ValueKind::kBoolList) {
      ETSTREAM_ASSIGN(value.bools, held.values<std::uint8_t>(*held.items()));
    } else if (held.items()) {
      const bool may_be_none = kind == pte::ValueKind::kOptionalTensorList;
      ETSTREAM_ASSIGN(value.items, items(held, *held.items(), count, may_be_none));
    }
    return {};
  }

  Result<void> read_tensor(const pte::Tensor& tensor, GraphValue& value) {
    const auto* info = std::get_if<TensorInfo>(&value.info);
    const auto bytes = byte_size(info->scalar_type, info->sizes);
    if (!bytes) return tensor.corrupt("a tensor of known type and size", bytes.error().message);
    value.size = *bytes;
    ETSTREAM_ASSIGN(const auto allocation, tensor.allocation());
    if (allocation) {
      ETSTREAM_TRY(allocation->check(value.size, memory_sizes_));
      ETSTREAM_ASSIGN(value.memory_id, allocation->memory_id());
      ETSTREAM_ASSIGN(value.memory_offset, allocation->memory_offset());
    }
    ETSTREAM_ASSIGN(pte::Storage storage, tensor.storage());
    value.storage = storage.kind;
    value.data_index = storage.index;
    if (storage.kind == TensorStorage::kConstant || storage.kind == TensorStorage::kMutable) {
      ETSTREAM_ASSIGN(value.data, program_.tensor_data(tensor, storage, value.size));
    }
    value.name = std::move(storage.name);
    return {};
  }

  Result<void> read_operators() {
    return for_each(method_.operators(), [&](const pte::Operator& table) -> Result<void> {
      GraphOperator& callee = graph_.operators.emplace_back();
      ETSTREAM_ASSIGN(callee.name, table.name());
      ETSTREAM_ASSIGN(callee.overload, table.overload());
      return {};
    });
  }

  Result<void> read_delegates() {
    return for_each(method_.delegates(), [&](const pte::Delegate& table) -> Result<void> {
      GraphDelegate& delegate = graph_.delegates.emplace_back();
      ETSTREAM_ASSIGN(delegate.backend, table.backend());
      ETSTREAM_ASSIGN(const auto place, table.place());
      if (!place) return {};
      delegate.in_segment = place->in_segment;
      delegate.index = place->index;
      ETSTREAM_ASSIGN(delegate.data, program_.delegate_data(*place));
      return {};
    });
  }

  Result<void> read_chain(const pte::Chain& chain) {
    const auto first = static_cast<std::uint32_t>(graph_.calls.size());
    ETSTREAM_ASSIGN(const auto instructions, chain.instructions());
    return for_each(instructions, [&](const pte::Instruction& instruction) -> Result<void> {
      ETSTREAM_ASSIGN(const auto held, instruction.call());
      if (!held) return instruction.corrupt("an instruction", "none");
      if (!held->kind()) {
        return held->corrupt("an instruction that ExecuTorch 1.5.1 has", held->type_name());
      }
      const pte::CallLimits limits{graph_.values.size(), graph_.operators.size(), graph_.delegates.size(),
                                   instructions.size()};
      ETSTREAM_ASSIGN(GraphCall call, held->read(limits, [&](const BoundField& field, std::int32_t index,
                                                             std::uint64_t limit) {
        return held->check_index(field, index, limit);
      }));
      call.destination += call.kind == CallKind::kJumpIfFalse ? first : 0;
      ETSTREAM_TRY(charge(*held, call.args));
      if (call.kind == CallKind::kMove) {
        call.inputs = {call.args[0]};
        call.outputs = {call.args[1]};
      } else if (held->args()) {
        split_arguments(graph_, *contents_, call);
      } else {
        call.inputs = call.args;
      }
      connect(call);
      graph_.calls.push_back(std::move(call));
      return {};
    });
  }

  /// Bounds the links to values in lists by the file's size, as calls may share long lists.
  Result<void> charge(const pte::Call& held, const std::vector<std::uint32_t>& args) {
    for (const std::uint32_t arg : args) links_ += graph_.values[arg].items.size();
    if (links_ <= most_links_) return {};
    Error error = held.corrupt(text("at most {} values in the lists that calls take", most_links_), "more");
    error.code = ErrorCode::kTooLarge;
    return error;
  }

  /// Adds the next call to its values, and to those in lists.
  void connect(const GraphCall& call) {
    const auto number = static_cast<std::uint32_t>(graph_.calls.size());
    with_items(call.inputs, [&](std::uint32_t value) {
      see(value);
      note(graph_.values[value].users, number);
      if (const auto shown = graph_.values[value].view_of) note(graph_.values[*shown].users, number);
    });
    with_items(call.outputs, [&](std::uint32_t value) {
      note(graph_.values[value].producers, number);
      contents_->write(value);
    });
  }
  /// Calls `act` with the values, and with those in lists.
  void with_items(const std::vector<std::uint32_t>& values, const auto& act) {
    for (const std::uint32_t value : values) {
      act(value);
      for (const std::int32_t item : graph_.values[value].items) {
        if (item >= 0) act(static_cast<std::uint32_t>(item));
      }
    }
  }
  /// Notes the value that another one shows when it is read though nothing has written it.
  void see(std::uint32_t index) {
    GraphValue& value = graph_.values[index];
    const auto shown = value.view_of ? std::nullopt : contents_->shown_by(index);
    if (!shown) return;
    value.view_of = shown;
    const auto& producers = graph_.values[*shown].producers;
    if (!producers.empty()) value.producers = {producers.back()};
  }
  static void note(std::vector<std::uint32_t>& calls, std::uint32_t number) {
    if (calls.empty() || calls.back() != number) calls.push_back(number);
  }

  const pte::Program& program_;
  const pte::Method& method_;
  const std::uint64_t most_links_;
  std::uint64_t links_ = 0;
  NumberList<std::int64_t> memory_sizes_;
  ProgramGraph graph_;
  std::optional<ValueContents> contents_;  // after the calls that have been read
};

}  // namespace

Result<ProgramGraph> ProgramGraph::read(const ProgramFile& program, std::uint32_t method) {
  return without_exceptions([&]() -> Result<ProgramGraph> {
    const pte::Program& model = program.model();
    ETSTREAM_ASSIGN(const auto methods, model.methods());
    if (method >= methods.size()) {
      return error_in(ErrorCode::kNotFound, model.name(), "there is no method {}; the program has {}", method,
                      methods.size());
    }
    ETSTREAM_TRY(model.segments());  // none is outside the file, whether data is in it or not
    ETSTREAM_ASSIGN(const pte::Method table, methods.at(method));
    return GraphReader(model, table).read();
  });
}

Result<ProgramGraph> ProgramGraph::read(const ProgramFile& program, std::string_view method) {
  return without_exceptions([&]() -> Result<ProgramGraph> {
    ETSTREAM_ASSIGN(const auto names, program.model().method_names());
    for (std::uint32_t i = 0; i < names.size(); ++i) {
      if (names[i] == method) return read(program, i);
    }
    return error_in(ErrorCode::kNotFound, program.model().name(), "there is no method {}; there is {}",
                    quote(method), names_text(names));
  });
}

std::string ProgramGraph::name_of(const GraphCall& call) const {
  if (call.kind == CallKind::kKernel) {
    const GraphOperator& callee = operators[call.callee];
    const std::string_view overload = beginning_of(callee.overload);
    return text("{}{}{}", beginning_of(callee.name), overload.empty() ? "" : ".", overload);
  }
  if (call.kind == CallKind::kDelegate) {
    return text("delegate {}", beginning_of(delegates[call.callee].backend));
  }
  if (call.kind == CallKind::kMove) return "move";
  return call.kind == CallKind::kJumpIfFalse ? "jump if false" : "free";
}

std::string_view kind_of(const ValueInfo& info) {
  static constexpr std::string_view kPlainKinds[] = {program::TensorFields::kName, program::IntFields::kName,
                                                     program::BoolFields::kName,
                                                     program::DoubleFields::kName};
  const auto* other = std::get_if<OtherInfo>(&info);
  return other ? std::string_view(other->kind) : kPlainKinds[info.index()];
}

}  // namespace etstream
