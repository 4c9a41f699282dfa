// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "etstream/memory_budget.h"
#include "present/reports.h"

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

}  // namespace
}  // namespace etstream::budget_report_test
