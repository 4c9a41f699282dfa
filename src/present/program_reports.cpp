// SPDX-License-Identifier: BSD-3-Clause
//
// The reports of a program's memory budget and of its graph.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "etstream/inspect.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream {

// These functions turn the items of lists into JSON. Json finds them by their arguments, so they are
// in no namespace of their own.
ETSTREAM_TO_JSON(AllocatorBudget, budget, budget.method_allocator(), budget.values, budget.tensors,
                 budget.lists, budget.delegates, budget.backends, budget.calls, budget.load_temp);

ETSTREAM_TO_JSON(MethodBudget::Planned, planned, planned.id, planned.size, planned.used);

static void to_json(Json& out, const MethodBudget::Delegate& delegate) {
  out = ETSTREAM_MEMBERS(delegate.backend, delegate.size, delegate.in_segment, delegate.is_known);
  if (!delegate.ethos_u) return;
  const auto& [commands, weights, scratch] = *delegate.ethos_u;
  out.update({{"commands", commands}, {"weights", weights}, {"scratch", scratch}});
}

ETSTREAM_TO_JSON(MethodBudget::Ends, ends, ends.count, ends.size, ends.provided);

ETSTREAM_TO_JSON(MethodBudget, method, method.name, method.bits_64, method.bits_32, method.run_temp,
                 method.kernel_calls, method.planned, method.delegates, method.inputs, method.outputs);

ETSTREAM_TO_JSON(CaseBudget, cases, cases.method, cases.test_cases, cases.inputs, cases.expected_outputs);

Json budget_to_json(const std::string& file, const MemoryBudget& budget) {
  Json out = {{"file", file}, {"size", budget.file_size}, {"alignment", budget.file_alignment}};
  out.update(
      ETSTREAM_MEMBERS(budget.flatbuffer_size, budget.constants_size, budget.external_keys, budget.methods));
  out.add("suites", budget.cases);
  return out;
}

namespace {

/// Returns a sentence for each amount that the file does not say.
std::vector<std::string> unsaid(const MemoryBudget& budget) {
  std::vector<std::string> out;
  if (budget.external_keys != 0) {
    out.push_back(text("the data of {} is to come from tensor data files, which take memory of their own",
                       counted(budget.external_keys, "key")));
  }
  for (const MethodBudget& method : budget.methods) {
    const std::string name = printable(method.name);
    if (std::ranges::find(method.delegates, "XnnpackBackend", &MethodBudget::Delegate::backend) !=
        method.delegates.end()) {
      out.push_back(
          text("{}: XnnpackBackend takes more from the heap, for the weights that it packs too", name));
    }
    for (const std::string& backend : method.unknown_backends()) {
      out.push_back(text("{}: {} takes more from the method allocator, and maybe from the temp allocator",
                         name, printable(backend)));
    }
    if (method.kernel_calls == 0) continue;
    out.push_back(text("{}: kernels may take more from the temp allocator, in {}", name,
                       counted(method.kernel_calls, "call")));
  }
  return out;
}

void print_allocators(const MethodBudget& method) {
  const AllocatorBudget& wide = method.bits_64;
  const AllocatorBudget& narrow = method.bits_32;
  const auto row = [](std::string_view what, std::uint64_t on_64, std::uint64_t on_32) {
    say("  {:24}{:>14}{:>14}\n", what, on_64, on_32);
  };
  row("method allocator", wide.method_allocator(), narrow.method_allocator());
  row("  values", wide.values, narrow.values);
  row("  tensors", wide.tensors, narrow.tensors);
  row("  lists", wide.lists, narrow.lists);
  row("  delegates", wide.delegates, narrow.delegates);
  row("  backends", wide.backends, narrow.backends);
  row("  calls", wide.calls, narrow.calls);
  row("temp allocator to load", wide.load_temp, narrow.load_temp);
  row("temp allocator to run", method.run_temp, method.run_temp);
}

/// Returns the meaning that Arm's runner gives to a memory beyond the first.
std::string_view region_of(std::uint32_t id) {
  return id == 2 ? ", slow in Arm's runner" : id == 3 ? ", fast in Arm's runner" : "";
}

void print_ends(std::string_view what, const MethodBudget::Ends& ends) {
  say("  {} {} of {} bytes, {} of them in the caller's buffers\n", ends.count, what, ends.size,
      ends.provided);
}

void print_method(const MethodBudget& method) {
  say("\nmethod {}\n  {:24}{:>14}{:>14}\n", printable(method.name), "bytes of", "64-bit", "32-bit");
  print_allocators(method);
  for (const MethodBudget::Planned& planned : method.planned) {
    say("  planned memory {}{}: {}, used up to {}\n", planned.id, region_of(planned.id), planned.size,
        planned.used);
  }
  print_ends(method.inputs.count == 1 ? "input" : "inputs", method.inputs);
  print_ends(method.outputs.count == 1 ? "output" : "outputs", method.outputs);
  for (std::size_t i = 0; i < method.delegates.size(); ++i) {
    const MethodBudget::Delegate& delegate = method.delegates[i];
    std::string streams;
    if (const auto& parts = delegate.ethos_u) {
      const auto shown = [](std::optional<std::uint64_t> size) {
        return size ? std::to_string(*size) : "not in the program";
      };
      streams = text(": commands {}, weights {}, scratch {}", shown(parts->commands), shown(parts->weights),
                     shown(parts->scratch));
    }
    say("  delegate {} to {}, {} bytes of data{}\n", i, printable(delegate.backend), delegate.size, streams);
  }
}

}  // namespace

std::string budget_to_c(const MemoryBudget& budget) {
  std::string out = "// Memory that ExecuTorch's runtime asks for, in bytes.\n";
  for (const std::string& sentence : unsaid(budget)) out += text("// {}.\n", sentence);
  const auto add = [&](std::string_view name, std::uint64_t size) {
    out += text("#define {} {}\n", name, size);
  };
  const auto add_pools = [&](const PoolSizes& pools) {
    add("ET_METHOD_ALLOCATOR_SIZE", pools.method_allocator);
    add("ET_TEMP_ALLOCATOR_SIZE", pools.temp_allocator);
  };
  out += "#include <stdint.h>\n\n#if UINTPTR_MAX > 0xffffffff\n";
  add_pools(budget.pools_64());
  out += "#else\n";
  add_pools(budget.pools_32());
  out += "#endif\n";
  const std::vector<std::uint64_t> planned = budget.planned();
  add("ET_PLANNED_MEMORY_COUNT", planned.size());
  for (std::size_t i = 0; i < planned.size(); ++i) {
    add(text("ET_PLANNED_MEMORY_{}_SIZE", i + 1), planned[i]);
  }
  add("ET_FILE_SIZE", budget.file_size);
  add("ET_FILE_ALIGNMENT", budget.file_alignment);
  return out;
}

void print_budget(const std::string& file, const MemoryBudget& budget) {
  say("{}: {} bytes, at a multiple of {} where it is read whole; flatbuffer {}, constants {}\n", file,
      budget.file_size, budget.file_alignment, budget.flatbuffer_size, budget.constants_size);
  for (const MethodBudget& method : budget.methods) print_method(method);
  if (!budget.cases.empty()) say("\n");
  for (const CaseBudget& cases : budget.cases) {
    say("test suite of {}: inputs of up to {} bytes, expected outputs of up to {} bytes\n",
        printable(cases.method), cases.inputs, cases.expected_outputs);
  }
  const auto sentences = unsaid(budget);
  if (!sentences.empty()) say("\nnot in these figures\n");
  for (const std::string& sentence : sentences) say("  {}\n", sentence);
}
namespace {

std::string dot_string(std::string_view words) {
  std::string out = "\"";
  for (const char c : printable(words)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string label_of(const GraphValue& value, std::uint32_t index) {
  std::string out = text("{}: {}", index, describe(value.info));
  if (!value.name.empty()) out += text(" {}", value.name);
  if (value.storage != TensorStorage::kNone) out += text(" ({})", name_of(value.storage));
  return out;
}

bool is_drawn(const GraphValue& value) {
  const bool is_tensor = value.storage != TensorStorage::kNone;
  return value.items.empty() && (is_tensor || value.is_input || value.is_output || !value.producers.empty());
}

/// Returns those of `values` that are drawn, with items in the place of lists; each once.
std::set<std::uint32_t> drawn(const ProgramGraph& graph, const std::vector<std::uint32_t>& values) {
  std::set<std::uint32_t> out;
  const auto add = [&](std::uint32_t value) {
    if (is_drawn(graph.values[value])) out.insert(value);
  };
  for (const std::uint32_t value : values) {
    add(value);
    for (const std::int32_t item : graph.values[value].items) {
      if (item >= 0) add(static_cast<std::uint32_t>(item));
    }
  }
  return out;
}

const char* shape_of(const GraphValue& value) {
  if (value.is_input || value.is_output) return "style=bold";
  return value.storage == TensorStorage::kPlanned ? "style=solid" : "style=dashed";
}

/// Returns the members that tell the value of what is no tensor.
Json content_to_json(const GraphValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.info)) return {{"value", *integer}};
  if (const auto* boolean = std::get_if<bool>(&value.info)) return {{"value", *boolean}};
  if (const auto* number = std::get_if<double>(&value.info)) return {{"value", number_or_text(*number)}};
  const std::string_view kind = kind_of(value.info);
  if (kind == "String") return {{"value", value.string}};
  if (kind == "BoolList") return {{"value", value.bools}};
  if (kind == "DoubleList") {
    Json items = Json::list();
    for (const double item : value.doubles) items.push_back(number_or_text(item));
    return {{"value", items}};
  }
  return kind.ends_with("List") ? Json{{"items", value.items}} : Json();
}

Json value_to_json(const GraphValue& value) {
  Json out = {{"kind", kind_of(value.info)}};
  if (const auto* tensor = std::get_if<TensorInfo>(&value.info)) {
    const bool dynamic = tensor->dynamism != ShapeDynamism::kStatic;
    out.add("dtype", name_of(tensor->scalar_type));
    out.update(
        ETSTREAM_MEMBERS(tensor->sizes, tensor->dim_order, dynamic, name_of(value.storage), value.size));
    if (value.memory_id != 0) out.update(ETSTREAM_MEMBERS(value.memory_id, value.memory_offset));
    out.update(ETSTREAM_MEMBERS(unless_empty(value.data_index), unless_empty(value.name), value.view_of));
  } else {
    out.update(content_to_json(value));
  }
  out.update({{"input", value.is_input},
              {"output", value.is_output},
              {"producers", value.producers},
              {"users", value.users}});
  return out;
}

Json call_to_json(const ProgramGraph& graph, const GraphCall& call) {
  Json out = {{"name", graph.name_of(call)}};
  if (call.kind == CallKind::kKernel) out.add("operator", call.callee);
  if (call.kind == CallKind::kDelegate) out.add("delegate", call.callee);
  if (call.kind == CallKind::kJumpIfFalse) out.add("destination", call.destination);
  out.update(ETSTREAM_MEMBERS(call.args, call.inputs, call.outputs));
  return out;
}

/// Writes a list of a graph, an item at a time, as it may be too long to be in memory as JSON.
template <class Item, class ToJson>
void write_list(std::string_view name, const std::vector<Item>& items,
                const std::function<void(std::string_view)>& take, ToJson to_json) {
  take(text(",\n  \"{}\": [", name));
  for (std::size_t i = 0; i < items.size(); ++i) {
    take((i == 0 ? "\n    " : ",\n    ") + json_text(to_json(items[i]), 2));
  }
  take(items.empty() ? "]" : "\n  ]");
}

}  // namespace

std::string graph_to_dot(const ProgramGraph& graph) {
  std::string out = text("digraph {} {{\n  node [fontname=\"monospace\"];\n", dot_string(graph.method));
  const auto line = [&]<class... Arguments>(Template<Arguments...> words, const Arguments&... arguments) {
    out += text("  {};\n", text(words, arguments...));
  };
  for (std::uint32_t i = 0; i < graph.values.size(); ++i) {
    const GraphValue& value = graph.values[i];
    if (!is_drawn(value)) continue;
    line("v{} [label={}, shape=ellipse, {}]", i, dot_string(label_of(value, i)), shape_of(value));
  }
  for (std::uint32_t i = 0; i < graph.values.size(); ++i) {
    if (const auto shown = graph.values[i].view_of) line("v{} -> v{} [style=dashed]", *shown, i);
  }
  for (std::uint32_t i = 0; i < graph.calls.size(); ++i) {
    const GraphCall& call = graph.calls[i];
    line("c{} [label={}, shape=box]", i, dot_string(text("{}: {}", i, graph.name_of(call))));
    for (const std::uint32_t value : drawn(graph, call.inputs)) line("v{} -> c{}", value, i);
    for (const std::uint32_t value : drawn(graph, call.outputs)) line("c{} -> v{}", i, value);
    if (call.kind == CallKind::kJumpIfFalse && call.destination < graph.calls.size()) {
      line("c{} -> c{} [style=dotted]", i, call.destination);
    }
  }
  return out + "}\n";
}

void write_graph_json(const ProgramGraph& graph, const std::function<void(std::string_view)>& take) {
  const std::string start =
      json_text(ETSTREAM_MEMBERS(graph.method, graph.inputs, graph.outputs, graph.memory_sizes));
  take(std::string_view(start).substr(0, start.size() - 2));  // without "\n}"
  write_list("operators", graph.operators, take,
             [](const GraphOperator& called) { return ETSTREAM_MEMBERS(called.name, called.overload); });
  write_list("delegates", graph.delegates, take, [](const GraphDelegate& delegate) {
    return ETSTREAM_MEMBERS(delegate.backend, delegate.data.size(), delegate.in_segment, delegate.index);
  });
  write_list("values", graph.values, take, value_to_json);
  write_list("calls", graph.calls, take, [&](const GraphCall& call) { return call_to_json(graph, call); });
  take("\n}\n");
}

}  // namespace etstream
