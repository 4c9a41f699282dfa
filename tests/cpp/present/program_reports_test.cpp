// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "etstream/inspect.h"
#include "etstream/program.h"
#include "present/reports.h"
#include "printed.h"
#include "runtime_checks/one_call_program.h"

namespace etstream::program_reports_test {
namespace {

using namespace one_call;  // NOLINT: the index of each value

/// Returns the graph of a program whose call takes the values that `change` gives it.
ProgramGraph graph_of(const Spoil& change) {
  ProgramT object = sound_object();
  change(*object.execution_plan[0]);
  const auto program = ProgramFile::open(file_of(packed(object)));
  REQUIRE_MESSAGE(program, program.error().message);
  auto graph = ProgramGraph::read(*program, "forward");
  REQUIRE_MESSAGE(graph, graph.error().message);
  return *std::move(graph);
}

using Parsed = nlohmann::ordered_json;

Parsed json_of(const ProgramGraph& graph) {
  std::string out;
  write_graph_json(graph, [&](std::string_view piece) { out += piece; });
  Parsed found = Parsed::parse(out);
  CHECK(out == found.dump(2) + "\n");
  return found;
}

std::size_t count(const std::string& words, const std::string& part) {
  std::size_t out = 0;
  for (std::size_t at = words.find(part); at != std::string::npos; at = words.find(part, at + 1)) ++out;
  return out;
}

// tests/peer/test_views.py compares values and calls with those of the program.
TEST_CASE("numbers that JSON lacks are words, and lists of bools numbers") {
  const ProgramGraph graph = graph_of([](ExecutionPlanT& plan) {
    add_value(plan, DoubleT()).double_val = std::numeric_limits<double>::infinity();
    add_value(plan, DoubleListT()).items = {0.5, std::numeric_limits<double>::quiet_NaN()};
    add_value(plan, BoolListT()).items = {true, false};
    add_value(plan, BoolT()).bool_val = true;
  });
  const Parsed values = json_of(graph)["values"];
  CHECK(values[7]["value"] == "inf");
  CHECK(values[8]["value"] == Parsed::array({0.5, "nan"}));
  CHECK(values[9]["value"] == Parsed::array({1, 0}));
  CHECK(values[10]["value"] == true);
}

TEST_CASE(
    "a value is drawn if it is a tensor, an input or an output, with its name, its storage and its view") {
  ProgramGraph graph = graph_of([](ExecutionPlanT&) {});
  graph.method = "a\"b\\c";
  GraphValue& tensor = graph.values[kInput];
  tensor.storage = TensorStorage::kConstant;
  tensor.memory_id = 1;
  tensor.memory_offset = 2;
  tensor.data_index = 1;
  tensor.name = "x";
  tensor.view_of = kOther;
  graph.values[kAlpha].is_input = true;
  graph.values[kText].is_output = true;
  const std::string dot = graph_to_dot(graph);
  CHECK(dot.starts_with("digraph \"a\\\"b\\\\c\" {\n"));
  CHECK(count(dot, "  v0 [label=\"0: float32 [2] x (constant)\", shape=ellipse, style=bold];\n") == 1);
  CHECK(count(dot, "  v1 -> v0 [style=dashed];\n") == 1);
  CHECK(count(dot, "v2 [") == 1);
  CHECK(count(dot, "v5 [") == 0);
  CHECK(count(dot, "v6 [") == 1);
  CHECK(json_of(graph)["values"][kInput] == Parsed::parse(R"({
    "kind": "Tensor", "dtype": "float32", "sizes": [2], "dim_order": [0], "dynamic": false, "storage": "constant",
    "size": 8, "memory_id": 1, "memory_offset": 2, "data_index": 1, "name": "x", "view_of": 1,
    "input": true, "output": false, "producers": [], "users": [0]})"));
}

TEST_CASE("a budget is printed with the use of each memory and each delegate, and with what it lacks") {
  MemoryBudget budget;
  budget.external_keys = 1;
  MethodBudget& method = budget.methods.emplace_back();
  method.name = "f";
  method.planned = {{1, 10, 9}, {2, 20, 19}, {3, 1, 0}, {4, 40, 39}};
  method.inputs = {2, 8, 4};
  method.delegates = {{"XnnpackBackend", 100, true, true, {}},
                      {"EthosUBackend", 90, true, true, MethodBudget::EthosU{12, {}, 56}},
                      {"Mine", 80, false, false, {}}};
  method.kernel_calls = 1;
  const std::string all = printed_to(stdout, [&] { print_budget("m.pte", budget); });
  CHECK(all.substr(all.find("  planned memory 1")) == R"(  planned memory 1: 10, used up to 9
  planned memory 2, slow in Arm's runner: 20, used up to 19
  planned memory 3, fast in Arm's runner: 1, used up to 0
  planned memory 4: 40, used up to 39
  2 inputs of 8 bytes, 4 of them in the caller's buffers
  0 outputs of 0 bytes, 0 of them in the caller's buffers
  delegate 0 to XnnpackBackend, 100 bytes of data
  delegate 1 to EthosUBackend, 90 bytes of data: commands 12, weights not in the program, scratch 56
  delegate 2 to Mine, 80 bytes of data

not in these figures
  the data of 1 key is to come from tensor data files, which take memory of their own
  f: XnnpackBackend takes more from the heap, for the weights that it packs too
  f: Mine takes more from the method allocator, and maybe from the temp allocator
  f: kernels may take more from the temp allocator, in 1 call
)");
  const Parsed report = Parsed::parse(json_text(budget_to_json("f", budget)));
  CHECK(report["methods"][0]["delegates"][1] == Parsed::parse(R"({"backend": "EthosUBackend", "size": 90,
    "in_segment": true, "is_known": true, "commands": 12, "scratch": 56})"));
}

}  // namespace
}  // namespace etstream::program_reports_test
