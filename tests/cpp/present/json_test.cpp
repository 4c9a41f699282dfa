// SPDX-License-Identifier: BSD-3-Clause
#include "present/json.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace etstream::json_test {

struct Pair {
  int first = 0;
  std::vector<std::string> second;
};

static void to_json(Json& out, const Pair& pair) { out = ETSTREAM_MEMBERS(pair.first, pair.second); }

namespace {

using Parsed = nlohmann::ordered_json;

TEST_CASE("values have the text that they have in nlohmann-json") {
  const Json empty;
  Json report = {{"yes", true},
                 {"least", std::numeric_limits<std::int64_t>::min()},
                 {"most", std::numeric_limits<std::uint64_t>::max()},
                 {"none", std::optional<int>()},
                 {"some", std::optional<int>(3)},
                 {"list", std::vector<Pair>{{1, {}}, {2, {"a", "b"}}}},
                 {"bools", std::vector<bool>{true, false}},
                 {"mixed", Json::list(1, "two", Json::list(), Json{{"three", 3.0}})},
                 {"left out", unless_empty(0)},
                 {"also left out", unless_empty(std::string())}};
  report.update({{"more", unless_empty(7)}, {"no number", std::nan("")}});
  report.add("nothing", empty);
  const auto expected = Parsed::parse(R"({"yes": true, "least": -9223372036854775808,
      "most": 18446744073709551615, "some": 3, "list": [{"first": 1, "second": []},
      {"first": 2, "second": ["a", "b"]}], "bools": [true, false], "mixed": [1, "two", [], {"three": 3.0}],
      "more": 7, "no number": null})");
  CHECK(report.text() == expected.dump());
  CHECK(json_text(report) == expected.dump(2));
  CHECK(json_text(Json::of_text(expected.dump(3))) == expected.dump(2));
}

TEST_CASE("numbers have the fewest digits that read back as the same, laid out as nlohmann-json does") {
  for (const double number : {0.0, -0.0, 1.0, 0.1, 100000.0, 123456789012345.6, 999999999999999.0, 1e15, 1e16,
                              -2.5e300, 1e-4, 0.00012, 9.9e-5, 1e-5, 5e-324}) {
    CHECK(Json(number).text() == Parsed(number).dump());
  }
  std::mt19937_64 random(54);  // NOLINT: the same numbers each time
  for (int i = 0; i < 10000; ++i) {
    const double number =
        std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 200) - 150);
    CHECK(std::stod(Json(number).text()) == number);
    CHECK(Json(number).text().size() <= Parsed(number).dump().size());
  }
}

TEST_CASE("texts are escaped as in nlohmann-json, and control characters beyond ASCII too") {
  std::string all;
  for (char c = 0; c < 0x7f; ++c) all += c;
  all += "\u00e4\u20ac\U0001f600";
  CHECK(Json(all).text() == Parsed(all).dump());
  CHECK(Json("\x7f\u009b\u202e").text() == R"("\u007f\u009b\u202e")");
  CHECK(Json("a\xff\xe4z").text() == "\"a\xff\xe4z\"");
  CHECK(json_text(Json("a\xff\xe4z")) == "\"a\ufffd\ufffdz\"");
}

TEST_CASE("a page has its data in its place, whatever it is") {
  const std::string data = "[\"<script>" + std::string(100, 'x') + "\"]";
  CHECK(filled_page("a PAGE DATA b", data) == "a [\"\\u003cscript>" + std::string(100, 'x') + "\"] b");
}

}  // namespace
}  // namespace etstream::json_test
