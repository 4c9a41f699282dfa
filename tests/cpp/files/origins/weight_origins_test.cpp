// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/reweight.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "files/origins/made_network.h"
#include "test_errors.h"

namespace etstream::weight_origins_test {
namespace {

TEST_CASE("origins have the labels, names, places and types of their payloads") {
  const Checkpoint weights = made::checkpoint(1);
  const made::Program made = made::program_of(weights);
  const std::string program = made::file(made);
  const TensorDataFile data = made::opened_data(made::data_of(weights));
  const auto origins = explain(made::opened(program), {&data}, weights);
  REQUIRE_MESSAGE(origins, full_message(origins.error()));
  CHECK(origins->are_explained());
  REQUIRE(origins->payloads.size() == 12);
  const PayloadOrigin& state = origins->payloads[1];
  CHECK(state.label == "initial state 'state' of method 'forward'");
  CHECK(state.name == "state");
  CHECK(state.file == "bad");
  CHECK(state.type == "float32 [3]");
  CHECK((program.substr(static_cast<std::size_t>(state.offset), 12) == text_of(state.data)));
  const PayloadOrigin& nibbles = origins->payloads[4];
  CHECK(nibbles.type == "128 integers of 4 bits");
  CHECK(nibbles.name == made.named_data[0].first);
  REQUIRE(nibbles.tensors.size() == 1);
  CHECK(nibbles.tensors[0].tensor == "first.weight");
  CHECK(nibbles.tensors[0].steps ==
        std::vector<std::string>{"quantized to integers from -8 to 7, 16 a scale"});
  CHECK(origins->payloads[3].constant == "numbers from 0 in steps of 1");
  CHECK(origins->payloads[3].tensors.empty());
  CHECK(origins->unused == std::vector<std::string>{"unused.weight"});
}

TEST_CASE("a payload that nothing explains has no tensors, and the nearest") {
  made::Program program;
  program.constants = {{made::floats(4, 1), {4}}};
  const auto origins =
      explain(made::opened(made::file(program)), {}, {{}, {made::tensor("w", {2, 2}, made::floats(4, 2))}});
  REQUIRE(origins);
  CHECK_FALSE(origins->are_explained());
  REQUIRE(origins->payloads.size() == 1);
  CHECK_FALSE(origins->payloads[0].is_explained());
  CHECK(origins->payloads[0].nearest == std::vector<std::string>{"w"});
  CHECK(origins->unused == std::vector<std::string>{"w"});
}

TEST_CASE("a missing file of weights is an error") {
  const Checkpoint weights = made::checkpoint(1);
  const auto origins = explain(made::opened(made::file(made::program_of(weights))), {}, weights);
  CHECK(code_of(origins) == exactly("kNotFound"));
}

}  // namespace
}  // namespace etstream::weight_origins_test
