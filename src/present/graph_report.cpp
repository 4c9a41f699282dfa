// SPDX-License-Identifier: BSD-3-Clause
#include "present/reports.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "etstream/inspect.h"

namespace etstream {
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

/// Returns a number, or a text for a number that JSON lacks: "nan", "inf".
Json number_to_json(double number) { return std::isfinite(number) ? Json(number) : Json(exact_text(number)); }

Json value_to_json(const GraphValue& value) {
  Json out = {{"kind", kind_of(value.info)}};
  if (const auto* tensor = std::get_if<TensorInfo>(&value.info)) {
    out["dtype"] = name_of(tensor->scalar_type);
    out["sizes"] = tensor->sizes;
    out["dim_order"] = tensor->dim_order;
    out["dynamic"] = tensor->dynamism != ShapeDynamism::kStatic;
    out["storage"] = name_of(value.storage);
    out["size"] = value.size;
    if (value.memory_id != 0) {
      out["memory_id"] = value.memory_id;
      out["memory_offset"] = value.memory_offset;
    }
    if (value.data_index != 0) out["data_index"] = value.data_index;
    if (!value.name.empty()) out["name"] = value.name;
    if (value.view_of) out["view_of"] = *value.view_of;
  } else if (const auto* integer = std::get_if<std::int64_t>(&value.info)) {
    out["value"] = *integer;
  } else if (const auto* boolean = std::get_if<bool>(&value.info)) {
    out["value"] = *boolean;
  } else if (const auto* number = std::get_if<double>(&value.info)) {
    out["value"] = number_to_json(*number);
  } else if (kind_of(value.info) == "String") {
    out["value"] = value.string;
  } else if (kind_of(value.info) == "DoubleList") {
    out["value"] = Json::array();
    for (const double item : value.doubles) out["value"].push_back(number_to_json(item));
  } else if (kind_of(value.info) == "BoolList") {
    out["value"] = value.bools;
  } else if (kind_of(value.info).ends_with("List")) {
    out["items"] = value.items;
  }
  out["input"] = value.is_input;
  out["output"] = value.is_output;
  out["producers"] = value.producers;
  out["users"] = value.users;
  return out;
}

Json call_to_json(const ProgramGraph& graph, const GraphCall& call) {
  Json out = {{"name", graph.name_of(call)}};
  if (call.kind == CallKind::kKernel) out["operator"] = call.callee;
  if (call.kind == CallKind::kDelegate) out["delegate"] = call.callee;
  if (call.kind == CallKind::kJumpIfFalse) out["destination"] = call.destination;
  out["args"] = call.args;
  out["inputs"] = call.inputs;
  out["outputs"] = call.outputs;
  return out;
}

/// Writes a list of a graph, an item at a time, as it may be too long to be in memory as JSON.
template <class Item, class ToJson>
void write_list(std::string_view name, const std::vector<Item>& items,
                const std::function<void(std::string_view)>& take, ToJson to_json) {
  take(text(",\n  \"{}\": [", name));
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::string out = i == 0 ? "\n    " : ",\n    ";
    for (const char c : json_text(to_json(items[i]))) {
      out += c;
      if (c == '\n') out += "    ";  // which no string has in it, as JSON escapes it
    }
    take(out);
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
  const std::string start = json_text({{"method", graph.method},
                                       {"inputs", graph.inputs},
                                       {"outputs", graph.outputs},
                                       {"memory_sizes", graph.memory_sizes}});
  take(std::string_view(start).substr(0, start.size() - 2));  // without "\n}"
  write_list("operators", graph.operators, take, [](const GraphOperator& called) {
    return Json{{"name", called.name}, {"overload", called.overload}};
  });
  write_list("delegates", graph.delegates, take, [](const GraphDelegate& delegate) {
    return Json{{"backend", delegate.backend},
                {"size", delegate.data.size()},
                {"in_segment", delegate.in_segment},
                {"index", delegate.index}};
  });
  write_list("values", graph.values, take, value_to_json);
  write_list("calls", graph.calls, take, [&](const GraphCall& call) { return call_to_json(graph, call); });
  take("\n}\n");
}

}  // namespace etstream
