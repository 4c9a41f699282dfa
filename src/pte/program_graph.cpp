// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_graph.h"

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"
#include "flatbuffer/table_reader.h"
#include "pte/call_outputs.h"
#include "pte/program_parts.h"
#include "pte/program_payloads.h"
#include "pte/value_info.h"

namespace etstream {
namespace {

class GraphReader {
 public:
  GraphReader(const TableReader& plan, const ProgramPayloads& payloads, std::uint64_t most_links)
      : plan_(plan), payloads_(payloads), most_links_(most_links) {}

  Result<ProgramGraph> read() {
    ETSTREAM_ASSIGN(auto name, plan_.string("name"));
    graph_.method = std::move(name).value_or("");
    ETSTREAM_ASSIGN(const auto sizes, plan_.values<std::int64_t>("non_const_buffer_sizes"));
    for (const std::int64_t size : sizes) graph_.memory_sizes.push_back(static_cast<std::uint64_t>(size));
    ETSTREAM_TRY(read_values());
    ETSTREAM_ASSIGN(graph_.inputs, indices(plan_, "inputs"));
    ETSTREAM_ASSIGN(graph_.outputs, indices(plan_, "outputs"));
    for (const std::uint32_t input : graph_.inputs) graph_.values[input].is_input = true;
    for (const std::uint32_t output : graph_.outputs) graph_.values[output].is_output = true;
    ETSTREAM_TRY(read_operators());
    ETSTREAM_TRY(read_delegates());
    ETSTREAM_ASSIGN(const TableList chains, plan_.tables("chains"));
    contents_.emplace(graph_);
    for (std::uint32_t i = 0; i < chains.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader chain, chains.at(i));
      ETSTREAM_TRY(read_chain(chain));
    }
    for (const std::uint32_t output : graph_.outputs) see(output);
    return std::move(graph_);
  }

 private:
  static Result<std::uint32_t> index(const TableReader& table, std::string_view name, std::uint64_t limit) {
    ETSTREAM_ASSIGN(const auto found, table.scalar<std::int32_t>(name));
    if (found >= 0 && std::cmp_less(found, limit)) return static_cast<std::uint32_t>(found);
    return out_of_range(table, name, found, limit);
  }
  static Error out_of_range(const TableReader& table, std::string_view name, std::int64_t found,
                            std::uint64_t limit) {
    return table.corrupt(text(table.type_name(), ".", name, " from 0 to below ", limit), text(found));
  }

  /// Indices of values. `T` is how wide they are in the file; `none` may be among them.
  template <class T>
  Result<std::vector<std::int32_t>> items(const TableReader& table, std::string_view name,
                                          std::uint64_t count, bool may_be_none) const {
    ETSTREAM_ASSIGN(const auto listed, table.values<T>(name));
    std::vector<std::int32_t> out;
    for (const T item : listed) {
      const bool is_none = may_be_none && item == -1;
      if (!is_none && (item < 0 || std::cmp_greater_equal(item, count))) {
        return out_of_range(table, name, item, count);
      }
      out.push_back(static_cast<std::int32_t>(item));
    }
    return out;
  }
  Result<std::vector<std::uint32_t>> indices(const TableReader& table, std::string_view name) const {
    ETSTREAM_ASSIGN(const auto listed, items<std::int32_t>(table, name, graph_.values.size(), false));
    return std::vector<std::uint32_t>(listed.begin(), listed.end());
  }

  Result<void> read_values() {
    ETSTREAM_ASSIGN(const TableList values, plan_.tables("values"));
    for (std::uint32_t i = 0; i < values.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader table, values.at(i));
      ETSTREAM_ASSIGN(const auto held, table.member("val"));
      GraphValue value;
      ETSTREAM_ASSIGN(value.info, read_value_info(held));
      if (held) ETSTREAM_TRY(read_content(*held, values.size(), value));
      graph_.values.push_back(std::move(value));
    }
    return {};
  }

  /// What is in a value beyond its ValueInfo.
  Result<void> read_content(const TableReader& held, std::uint64_t count, GraphValue& value) {
    const std::string& kind = held.type_name();
    if (kind == "Tensor") return read_tensor(held, value);
    if (kind == "String") {
      ETSTREAM_ASSIGN(auto string, held.string("string_val"));
      value.string = std::move(string).value_or("");
    } else if (kind == "IntList") {
      ETSTREAM_ASSIGN(value.items, items<std::int64_t>(held, "items", count, false));
    } else if (kind == "TensorList" || kind == "OptionalTensorList") {
      ETSTREAM_ASSIGN(value.items, items<std::int32_t>(held, "items", count, kind != "TensorList"));
    } else if (kind == "DoubleList") {
      ETSTREAM_ASSIGN(value.doubles, held.values<double>("items"));
    } else if (kind == "BoolList") {
      ETSTREAM_ASSIGN(value.bools, held.values<std::uint8_t>("items"));
    }
    return {};
  }

  Result<void> read_tensor(const TableReader& tensor, GraphValue& value) {
    const auto* info = std::get_if<TensorInfo>(&value.info);
    const auto bytes = byte_size(info->scalar_type, info->sizes);
    if (!bytes) return tensor.corrupt("a tensor of known type and size", bytes.error().message);
    value.size = *bytes;
    ETSTREAM_ASSIGN(value.data_index, tensor.scalar<std::uint32_t>("data_buffer_idx"));
    ETSTREAM_ASSIGN(const auto allocation, tensor.child("allocation_info"));
    if (allocation) ETSTREAM_TRY(read_allocation(*allocation, value));
    ETSTREAM_ASSIGN(const auto extra, tensor.child("extra_tensor_info"));
    std::uint64_t segments = 0;
    if (extra) {
      constexpr std::int8_t kExternal = 1;  // TensorDataLocation.EXTERNAL
      ETSTREAM_ASSIGN(auto name, extra->string("fully_qualified_name"));
      value.name = std::move(name).value_or("");
      ETSTREAM_ASSIGN(segments, extra->scalar<std::uint64_t>("mutable_data_segments_idx"));
      ETSTREAM_ASSIGN(const auto location, extra->scalar<std::int8_t>("location"));
      if (location == kExternal) {
        value.storage = TensorStorage::kExternal;
        return {};
      }
    }
    if (value.data_index == 0) {
      value.storage = allocation ? TensorStorage::kPlanned : TensorStorage::kOutside;
    } else if (allocation) {
      value.storage = TensorStorage::kMutable;
      ETSTREAM_ASSIGN(value.data, payloads_.mutable_data(tensor, segments, value.data_index, value.size));
    } else {
      value.storage = TensorStorage::kConstant;
      ETSTREAM_ASSIGN(value.data, payloads_.constant(tensor, value.data_index, value.size));
    }
    return {};
  }

  Result<void> read_allocation(const TableReader& allocation, GraphValue& value) {
    ETSTREAM_ASSIGN(value.memory_id, allocation.scalar<std::uint32_t>("memory_id"));
    ETSTREAM_ASSIGN(const auto low, allocation.scalar<std::uint32_t>("memory_offset_low"));
    ETSTREAM_ASSIGN(const auto high, allocation.scalar<std::uint32_t>("memory_offset_high"));
    value.memory_offset = std::uint64_t{high} << 32 | low;
    const auto& sizes = graph_.memory_sizes;
    if (value.memory_id == 0 || value.memory_id >= sizes.size()) {
      return allocation.corrupt(text("a memory_id from 1 to below ", sizes.size()), text(value.memory_id));
    }
    if (!range_fits(value.memory_offset, value.size, sizes[value.memory_id])) {
      return allocation.corrupt(
          text(value.size, " bytes inside the ", sizes[value.memory_id], " of memory ", value.memory_id),
          text("them at ", value.memory_offset));
    }
    return {};
  }

  Result<void> read_operators() {
    ETSTREAM_ASSIGN(const TableList operators, plan_.tables("operators"));
    for (std::uint32_t i = 0; i < operators.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader table, operators.at(i));
      ETSTREAM_ASSIGN(auto name, table.string("name"));
      ETSTREAM_ASSIGN(auto overload, table.string("overload"));
      graph_.operators.push_back({std::move(name).value_or(""), std::move(overload).value_or("")});
    }
    return {};
  }

  Result<void> read_delegates() {
    ETSTREAM_ASSIGN(const TableList delegates, plan_.tables("delegates"));
    for (std::uint32_t i = 0; i < delegates.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader table, delegates.at(i));
      GraphDelegate delegate;
      ETSTREAM_ASSIGN(auto id, table.string("id"));
      delegate.backend = std::move(id).value_or("");
      ETSTREAM_ASSIGN(const auto processed, table.child("processed"));
      if (processed) {
        constexpr std::int8_t kInSegment = 1;  // DataLocation.SEGMENT
        ETSTREAM_ASSIGN(const auto location, processed->scalar<std::int8_t>("location"));
        delegate.in_segment = location == kInSegment;
        ETSTREAM_ASSIGN(delegate.index, processed->scalar<std::uint32_t>("index"));
        ETSTREAM_ASSIGN(delegate.data, payloads_.delegate(*processed, delegate.in_segment, delegate.index));
      }
      graph_.delegates.push_back(std::move(delegate));
    }
    return {};
  }

  Result<void> read_chain(const TableReader& chain) {
    const auto first = static_cast<std::uint32_t>(graph_.calls.size());
    ETSTREAM_ASSIGN(const TableList instructions, chain.tables("instructions"));
    for (std::uint32_t i = 0; i < instructions.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader instruction, instructions.at(i));
      ETSTREAM_ASSIGN(const auto held, instruction.member("instr_args"));
      if (!held) return instruction.corrupt("an instruction", "none");
      GraphCall call;
      ETSTREAM_TRY(read_call(*held, first, instructions.size(), call));
      connect(call);
      graph_.calls.push_back(std::move(call));
    }
    return {};
  }

  /// An instruction of a chain of `count`, whose first is number `first`.
  Result<void> read_call(const TableReader& held, std::uint32_t first, std::uint32_t count, GraphCall& call) {
    const std::string& kind = held.type_name();
    const std::size_t values = graph_.values.size();
    if (kind == "KernelCall" || kind == "DelegateCall") {
      const bool is_kernel = kind == "KernelCall";
      call.kind = is_kernel ? GraphCall::Kind::kKernel : GraphCall::Kind::kDelegate;
      ETSTREAM_ASSIGN(call.callee, is_kernel ? index(held, "op_index", graph_.operators.size())
                                             : index(held, "delegate_index", graph_.delegates.size()));
      ETSTREAM_ASSIGN(call.args, indices(held, "args"));
      ETSTREAM_TRY(charge(held, call.args));
      split_arguments(graph_, *contents_, call);
    } else if (kind == "MoveCall") {
      call.kind = GraphCall::Kind::kMove;
      ETSTREAM_ASSIGN(const auto from, index(held, "move_from", values));
      ETSTREAM_ASSIGN(const auto to, index(held, "move_to", values));
      call.args = {from, to};
      call.inputs = {from};
      call.outputs = {to};
    } else if (kind == "JumpFalseCall") {
      call.kind = GraphCall::Kind::kJumpIfFalse;
      ETSTREAM_ASSIGN(const auto condition, index(held, "cond_value_index", values));
      ETSTREAM_ASSIGN(const auto to, index(held, "destination_instruction", std::uint64_t{count} + 1));
      call.args = {condition};
      call.inputs = call.args;
      call.destination = first + to;
    } else {
      call.kind = GraphCall::Kind::kFree;
      ETSTREAM_ASSIGN(const auto value, index(held, "value_index", values));
      call.args = {value};
      call.inputs = call.args;
    }
    return {};
  }

  /// Keeps the links to values in lists in proportion to the file, though calls may share long lists.
  Result<void> charge(const TableReader& held, const std::vector<std::uint32_t>& args) {
    for (const std::uint32_t arg : args) links_ += graph_.values[arg].items.size();
    if (links_ <= most_links_) return {};
    Error error = held.corrupt(text("at most ", most_links_, " values in the lists that calls take"), "more");
    error.code = ErrorCode::kTooLarge;
    return error;
  }

  /// Makes the next call known to its values, and to those in lists.
  void connect(const GraphCall& call) {
    const auto number = static_cast<std::uint32_t>(graph_.calls.size());
    for_each(call.inputs, [&](std::uint32_t value) {
      see(value);
      note(graph_.values[value].users, number);
      if (const auto shown = graph_.values[value].view_of) note(graph_.values[*shown].users, number);
    });
    for_each(call.outputs, [&](std::uint32_t value) {
      note(graph_.values[value].producers, number);
      contents_->write(value);
    });
  }
  template <class F>
  void for_each(const std::vector<std::uint32_t>& values, F act) {
    for (const std::uint32_t value : values) {
      act(value);
      for (const std::int32_t item : graph_.values[value].items) {
        if (item >= 0) act(static_cast<std::uint32_t>(item));
      }
    }
  }
  /// Notes what a value shows that is read though nothing writes it.
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

  const TableReader& plan_;
  const ProgramPayloads& payloads_;
  const std::uint64_t most_links_;
  std::uint64_t links_ = 0;
  ProgramGraph graph_;
  std::optional<ValueContents> contents_;  // after the calls that have been read
};

Result<TableList> plans_of(const ProgramFile& program) {
  ETSTREAM_ASSIGN(const TableReader root, TableReader::root(program.parts().view));
  return root.tables("execution_plan");
}

}  // namespace

Result<ProgramGraph> ProgramGraph::read(const ProgramFile& program, std::uint32_t method) {
  return without_exceptions([&]() -> Result<ProgramGraph> {
    ETSTREAM_ASSIGN(const TableList plans, plans_of(program));
    if (method >= plans.size()) {
      return make_error(ErrorCode::kNotFound, program.parts().view.name(), ": there is no method ", method,
                        "; the program has ", plans.size());
    }
    ETSTREAM_ASSIGN(const ProgramPayloads payloads, ProgramPayloads::read(program));
    ETSTREAM_ASSIGN(const TableReader plan, plans.at(method));
    return GraphReader(plan, payloads, program.flatbuffer_size()).read();
  });
}

Result<ProgramGraph> ProgramGraph::read(const ProgramFile& program, std::string_view method) {
  return without_exceptions([&]() -> Result<ProgramGraph> {
    ETSTREAM_ASSIGN(const TableList plans, plans_of(program));
    std::string names;
    for (std::uint32_t i = 0; i < plans.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader plan, plans.at(i));
      ETSTREAM_ASSIGN(const auto name, plan.string("name"));
      if (name.value_or("") == method) return read(program, i);
      names += text(i > 0 ? ", " : "", quote(name.value_or("")));
    }
    return make_error(ErrorCode::kNotFound, program.parts().view.name(), ": there is no method ",
                      quote(method), "; there is ", names);
  });
}

std::string ProgramGraph::name_of(const GraphCall& call) const {
  switch (call.kind) {
    case GraphCall::Kind::kKernel: {
      const GraphOperator& callee = operators[call.callee];
      return callee.overload.empty() ? callee.name : text(callee.name, ".", callee.overload);
    }
    case GraphCall::Kind::kDelegate:
      return text("delegate ", delegates[call.callee].backend);
    case GraphCall::Kind::kMove:
      return "move";
    case GraphCall::Kind::kJumpIfFalse:
      return "jump if false";
    case GraphCall::Kind::kFree:
      return "free";
  }
  return "";
}

std::string_view name_of(TensorStorage storage) noexcept {
  switch (storage) {
    case TensorStorage::kNone:
      return "";
    case TensorStorage::kOutside:
      return "outside";
    case TensorStorage::kPlanned:
      return "planned";
    case TensorStorage::kConstant:
      return "constant";
    case TensorStorage::kMutable:
      return "mutable";
    case TensorStorage::kExternal:
      return "external";
  }
  return "";
}

std::string_view kind_of(const ValueInfo& info) {
  static constexpr std::string_view kKinds[] = {"Tensor", "Int", "Bool", "Double"};
  const auto* other = std::get_if<OtherInfo>(&info);
  return other ? std::string_view(other->kind) : kKinds[info.index()];
}

}  // namespace etstream
