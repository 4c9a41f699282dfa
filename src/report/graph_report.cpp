// SPDX-License-Identifier: BSD-3-Clause
#include "report/graph_report.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "etstream/inspect.h"

namespace etstream {
namespace {

using Json = nlohmann::ordered_json;

std::string dot_string(std::string_view words) {
  std::string out = "\"";
  for (const char c : printable(words)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string label_of(const GraphValue& value, std::uint32_t index) {
  std::string out = text(index, ": ", describe(value.info));
  if (!value.name.empty()) out += text(" ", value.name);
  if (value.storage != TensorStorage::kNone) out += text(" (", name_of(value.storage), ")");
  return out;
}

bool is_drawn(const GraphValue& value) {
  const bool is_tensor = value.storage != TensorStorage::kNone;
  return value.items.empty() && (is_tensor || value.is_input || value.is_output || !value.producers.empty());
}

/// `values` without those that are not drawn, and with items in the place of lists; each once.
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

/// A number, or a text where JSON has none: "nan", "inf".
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
  if (call.kind == GraphCall::Kind::kKernel) out["operator"] = call.callee;
  if (call.kind == GraphCall::Kind::kDelegate) out["delegate"] = call.callee;
  if (call.kind == GraphCall::Kind::kJumpIfFalse) out["destination"] = call.destination;
  out["args"] = call.args;
  out["inputs"] = call.inputs;
  out["outputs"] = call.outputs;
  return out;
}

}  // namespace

std::string graph_to_dot(const ProgramGraph& graph) {
  std::string out = text("digraph ", dot_string(graph.method), " {\n  node [fontname=\"monospace\"];\n");
  const auto line = [&](const auto&... words) { out += text("  ", words..., ";\n"); };
  for (std::uint32_t i = 0; i < graph.values.size(); ++i) {
    const GraphValue& value = graph.values[i];
    if (!is_drawn(value)) continue;
    line("v", i, " [label=", dot_string(label_of(value, i)), ", shape=ellipse, ", shape_of(value), "]");
  }
  for (std::uint32_t i = 0; i < graph.values.size(); ++i) {
    if (const auto shown = graph.values[i].view_of) line("v", *shown, " -> v", i, " [style=dashed]");
  }
  for (std::uint32_t i = 0; i < graph.calls.size(); ++i) {
    const GraphCall& call = graph.calls[i];
    line("c", i, " [label=", dot_string(text(i, ": ", graph.name_of(call))), ", shape=box]");
    for (const std::uint32_t value : drawn(graph, call.inputs)) line("v", value, " -> c", i);
    for (const std::uint32_t value : drawn(graph, call.outputs)) line("c", i, " -> v", value);
    if (call.kind == GraphCall::Kind::kJumpIfFalse && call.destination < graph.calls.size()) {
      line("c", i, " -> c", call.destination, " [style=dotted]");
    }
  }
  return out + "}\n";
}

Json graph_to_json(const ProgramGraph& graph) {
  Json out = {{"method", graph.method},     {"inputs", graph.inputs},
              {"outputs", graph.outputs},   {"memory_sizes", graph.memory_sizes},
              {"operators", Json::array()}, {"delegates", Json::array()},
              {"values", Json::array()},    {"calls", Json::array()}};
  for (const GraphOperator& called : graph.operators) {
    out["operators"].push_back({{"name", called.name}, {"overload", called.overload}});
  }
  for (const GraphDelegate& delegate : graph.delegates) {
    out["delegates"].push_back({{"backend", delegate.backend},
                                {"size", delegate.data.size()},
                                {"in_segment", delegate.in_segment},
                                {"index", delegate.index}});
  }
  for (const GraphValue& value : graph.values) out["values"].push_back(value_to_json(value));
  for (const GraphCall& call : graph.calls) out["calls"].push_back(call_to_json(graph, call));
  return out;
}

}  // namespace etstream
