// SPDX-License-Identifier: BSD-3-Clause
//
// Bundles that check() and plan() refuse, with a real program of two methods:
//   count: int64 [2, 7], bool [2, 7] -> int64 [2], float64 [7]
//   scale: float32 [3, 5], 2, 0.25, true -> float32 [3, 5]
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "etstream/bundled_program.h"
#include "golden_bundles.h"
#include "test_errors.h"
#include "test_paths.h"
#include "test_sources.h"

namespace etstream::bundled_program_check_test {
namespace {

BundledProgram good_bundle() { return read_golden(kGoldenDir + "/sorted_suites_of_a_real_program"); }

MethodTestSuite& count(BundledProgram& bundle) { return bundle.method_test_suites[0]; }
MethodTestSuite& scale(BundledProgram& bundle) { return bundle.method_test_suites[1]; }
Value& scale_input(BundledProgram& bundle, std::size_t i) { return scale(bundle).test_cases[1].inputs[i]; }
Tensor& scale_tensor(BundledProgram& bundle) { return std::get<Tensor>(scale_input(bundle, 0)); }
Tensor& scale_output(BundledProgram& bundle) {
  return std::get<Tensor>(scale(bundle).test_cases[1].expected_outputs[0]);
}

Findings findings_of(const BundledProgram& bundle) {
  auto findings = check(bundle);
  REQUIRE_MESSAGE(findings, findings.error().message);
  return std::move(findings).value();
}

struct Row {
  std::string error;
  std::function<void(BundledProgram&)> spoil;
};

/// Damages a good bundle in each way: check() finds the one error, plan() refuses it unless unchecked.
void check_all_refused(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.error);
    BundledProgram bundle = good_bundle();
    row.spoil(bundle);
    const Findings findings = findings_of(bundle);
    REQUIRE(findings.errors.size() == 1);
    CHECK(exactly(findings.errors[0].message) == containing(row.error));
    CHECK(error_of(plan(bundle)) == exactly("kInvalidArgument: " + findings.errors[0].message));
    CHECK(plan(bundle, {.unchecked = true}));
  }
}

TEST_CASE(
    "test cases that fit the program have nothing to find, also without expected outputs, for profiling") {
  BundledProgram bundle = good_bundle();
  scale_input(bundle, 2) = 0.25001;  // within what ExecuTorch takes for equal
  scale(bundle).test_cases[0].expected_outputs.clear();
  CHECK(findings_of(bundle).errors.empty());
  CHECK(plan(bundle));
}

// tests/peer/misfits.py has more, with what ExecuTorch makes of each.
TEST_CASE("what does not fit the program, or would harm ExecuTorch's reader, is refused with its place") {
  const std::string place = "method 'scale', test case 1: input ";
  const auto bytes = [](Tensor& tensor, std::uint64_t size) { tensor.data = ByteSource::zeros(size); };
  check_all_refused({
      {"method 'scale', test case 1: 3 inputs given, the method has 4",
       [](BundledProgram& b) { scale(b).test_cases[1].inputs.pop_back(); }},
      {place + "0 is an integer, expected a tensor",
       [](BundledProgram& b) { scale_input(b, 0) = std::int64_t{2}; }},
      {"input 1 is 3, but the method was exported with 2",
       [](BundledProgram& b) { scale_input(b, 1) = std::int64_t{3}; }},
      {place + "0 has 59 bytes of data, expected 60", [&](BundledProgram& b) { bytes(scale_tensor(b), 59); }},
      {place + "0 has scalar type 18",
       [](BundledProgram& b) { scale_tensor(b).scalar_type = static_cast<ScalarType>(18); }},
      {place + "0 has sizes [-3, 5]",
       [](BundledProgram& b) {
         scale_tensor(b).sizes = {-3, 5};
       }},
      {place + "0 has 17 dimensions, expected at most 16",
       [](BundledProgram& b) {
         scale_tensor(b).sizes.assign(17, 1);
         scale_tensor(b).dim_order = contiguous_dim_order(17);
       }},
      {"expected output 0 has 59 bytes of data", [&](BundledProgram& b) { bytes(scale_output(b), 59); }},
  });
}

TEST_CASE("a dimension order that is no permutation is refused") {
  for (const std::vector<std::uint8_t>& order :
       std::vector<std::vector<std::uint8_t>>{{}, {0}, {0, 0}, {0, 2}, {0, 1, 1}, {255, 0}}) {
    check_all_refused({{"input 0 has a dim_order that is not a permutation of its 2 dimensions",
                        [&](BundledProgram& bundle) { scale_tensor(bundle).dim_order = order; }}});
  }
}

TEST_CASE("the refusal has the first errors, and says how many more there are") {
  BundledProgram bundle = good_bundle();
  scale_input(bundle, 1) = std::int64_t{3};
  scale_input(bundle, 3) = false;
  for (std::size_t i = 0; i < 3; ++i) count(bundle).test_cases[i].inputs.clear();
  CHECK(findings_of(bundle).errors.size() == 5);
  const std::string end = ": 0 inputs given, the method has 2; ";
  CHECK(error_of(plan(bundle)) ==
        exactly("kInvalidArgument: method 'count', test case 0" + end + "method 'count', test case 1" + end +
                "method 'count', test case 2" + end + "and 2 more errors; check() lists all"));
}

TEST_CASE("what is no ExecuTorch program is refused unless unchecked, and the error says what was expected") {
  for (const std::string& program :
       {std::string("ET12"), std::string("1234ET1"), std::string("\x08\0\0\0ET13....", 12),
        std::string("\x08\0\0\0BP08....", 12)}) {
    CAPTURE(program);
    const BundledProgram bundle{.version = 2, .method_test_suites = {}, .program = source_of(program)};
    CHECK_FALSE(plan(bundle));
    CHECK(error_of(plan(bundle)) == containing("memory: "));
    CHECK(error_of(plan(bundle)) == containing("ET12"));
    CHECK(plan(bundle, {.unchecked = true}));
  }
  const BundledProgram empty{.version = 2, .method_test_suites = {}, .program = source_of("")};
  CHECK(error_of(plan(empty)) == containing("is empty"));
  CHECK(plan(empty, {.unchecked = true}));
}

TEST_CASE("a program that can't be read is an error, also where it can be read in part") {
  const ByteSource good = good_bundle().program;
  for (const std::uint64_t intact : {0U, 8U, 100U}) {
    CAPTURE(intact);
    BundledProgram bundle;
    bundle.program =
        ByteSource::concatenation({good.slice(0, intact).value(), failing(good.size() - intact, 0)}).value();
    CHECK(code_of(plan(bundle)) == "kIo");
    CHECK(error_of(plan(bundle)) == containing("the disk is on fire"));
  }
}

}  // namespace
}  // namespace etstream::bundled_program_check_test
