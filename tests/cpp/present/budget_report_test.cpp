// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "etstream/memory_budget.h"
#include "present/reports.h"
#include "printed.h"

namespace etstream::budget_report_test {
namespace {

TEST_CASE("a delegate of Ethos-U has the sizes that its command stream says") {
  MemoryBudget budget;
  MethodBudget& method = budget.methods.emplace_back();
  method.delegates = {{"EthosUBackend", 100, true, true, MethodBudget::EthosU{12, 34, 56}},
                      {"EthosUBackend", 90, false, true, MethodBudget::EthosU{0, {}, {}}},
                      {"EthosUBackend", 80, false, true, MethodBudget::EthosU{{}, 7, {}}},
                      {"EthosUBackend", 70, false, true, MethodBudget::EthosU{{}, {}, 8}},
                      {"Backend", 60, false, false, {}}};
  CHECK(budget_to_json("f", budget)["methods"][0]["delegates"] == Json::parse(R"([
    {"backend": "EthosUBackend", "size": 100, "in_segment": true, "is_known": true,
     "commands": 12, "weights": 34, "scratch": 56},
    {"backend": "EthosUBackend", "size": 90, "in_segment": false, "is_known": true, "commands": 0},
    {"backend": "EthosUBackend", "size": 80, "in_segment": false, "is_known": true, "weights": 7},
    {"backend": "EthosUBackend", "size": 70, "in_segment": false, "is_known": true, "scratch": 8},
    {"backend": "Backend", "size": 60, "in_segment": false, "is_known": false}
  ])"));
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
}

}  // namespace
}  // namespace etstream::budget_report_test
