// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "etstream/program_plan.h"
#include "present/reports.h"
#include "printed.h"
#include "test_sources.h"

namespace etstream::weight_reports_test {
namespace {

TEST_CASE("what programs keep and rename is told, but for data of no bytes and all renamed keys but ten") {
  const std::vector<SharingInput> before = {{"a", source_of("12345")}, {"b", source_of("123456")}};
  SharedWeightsPlan plan;
  plan.programs.resize(2);
  plan.data = {{0, {{0, "empty", KeptBecause::kSmall}}, {}}, {1, {{1, "one", KeptBecause::kSmall}}, {}}};
  const auto renamed = [&](std::size_t keys) {
    plan.renamed.resize(keys, {1, "w", "v"});
    const std::string all = printed_to(stdout, [&] { print_sharing(before, plan); });
    return all.substr(all.find("shared:"));
  };
  const std::string kept =
      "shared: nothing\n\nkept by the programs:\n"
      "             1  in 1 piece, of b: it is too small to gain by it\n";
  CHECK(renamed(0) == kept);
  std::string keys = "\nrenamed, as the name stands for other data too:\n";
  for (int i = 0; i < 10; ++i) keys += "  b: 'w' is 'v'\n";
  CHECK(renamed(10) == kept + keys);
  CHECK(renamed(12) == kept + keys + "  ... and 2 more keys\n");
  const auto report = nlohmann::json::parse(json_text(sharing_to_json(before, plan)));
  CHECK(report["size_before"] == 11);
  CHECK(report["kept"].size() == 2);
  CHECK(report["renamed"][11] == nlohmann::json::parse(R"({"program": "b", "name": "w", "key": "v"})"));
  CHECK(!report.contains("weights"));
}

TEST_CASE("a payload is explained by tensors or a constant, or not") {
  WeightOrigins origins;
  origins.payloads.resize(3);
  origins.payloads[0].label = "a";
  origins.payloads[0].constant = "zeros";
  origins.payloads[1].label = "b";
  origins.payloads[2].label = "c";
  origins.payloads[2].tensors = {{"w", {}}};
  origins.payloads[2].constant = "ones";
  CHECK(printed_to(stdout, [&] { print_origins(origins); }) ==
        "             0  a\n                no weights: zeros\n"
        "             0  b\n                not explained\n"
        "             0  c\n                'w'; or no weights: ones\n"
        "2 of 3 payloads explained\n");
}

}  // namespace
}  // namespace etstream::weight_reports_test
