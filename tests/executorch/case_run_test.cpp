// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/executorch/case_run.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "etstream/dim_order.h"
#include "etstream/executorch/loaded_method.h"
#include "etstream/executorch/program_loader.h"
#include "example_bundle.h"
#include "test_errors.h"

namespace etstream {
namespace {

using ::executorch::runtime::Program;

const Tolerance kTolerance{.absolute = 1e-4, .relative = 1e-4};

/// The method of examples/, which takes a float32 [1, 1, 16, 16] and gives a float32 [1, 10].
struct Example {
  TemporaryFolder folder;
  BundledProgramFile bundle = segmented_example(folder);
  std::unique_ptr<::executorch::runtime::DataLoader> loader =
      open_mapped_program_loader(bundle.program()).value();
  ::executorch::runtime::Result<Program> program = Program::load(loader.get());
  LoadedMethod loaded = LoadedMethod::load(*program, "forward").value();
  MethodTestCase first = bundle.test_case(bundle.suites()[0], 0).value();

  Tensor& input() { return std::get<Tensor>(first.inputs[0]); }
  Tensor& output() { return std::get<Tensor>(first.expected_outputs[0]); }
  Result<TestCaseRun> run(const Tolerance& tolerance = kTolerance) {
    return run_test_case(loaded.method(), first, 3, tolerance);
  }
};

std::vector<float> floats_of(const Tensor& tensor) {
  std::vector<float> out(tensor.data.size() / sizeof(float));
  REQUIRE(tensor.data.read_at(0, std::as_writable_bytes(std::span(out))));
  return out;
}

void set_floats(Tensor& tensor, const std::vector<float>& floats) {
  const auto bytes = std::as_bytes(std::span(floats));
  tensor.data = ByteSource::owned({bytes.begin(), bytes.end()});
}

TEST_CASE("a test case passes, again and again, and says how close it was") {
  Example example;
  for (int i = 0; i < 3; ++i) {
    const auto run = example.run();
    REQUIRE_MESSAGE(run, run.error().message);
    CHECK(run->passed());
    REQUIRE(run->outputs.size() == 1);
    CHECK(run->outputs[0].elements == 10);
    CHECK(run->outputs[0].largest_absolute_error < 1e-5);
  }
}

TEST_CASE("one element that is not as expected fails, and is told") {
  Example example;
  auto scores = floats_of(example.output());
  const float right = scores[7];
  scores[7] += 0.5F;
  set_floats(example.output(), scores);
  const auto run = example.run().value();
  CHECK(!run.passed());
  CHECK(run.outputs[0].mismatches == 1);
  CHECK(run.outputs[0].first->index == 7);
  CHECK(std::abs(std::get<double>(run.outputs[0].first->actual) - right) < 1e-4);
}

TEST_CASE("a NaN is expected where it is, and only there") {
  Example example;
  auto scores = floats_of(example.output());
  scores[2] = NAN;
  set_floats(example.output(), scores);
  CHECK(example.run()->outputs[0].mismatches == 1);
  // A NaN in the image makes every score NaN.
  auto image = floats_of(example.input());
  image[0] = NAN;
  set_floats(example.input(), image);
  CHECK(example.run()->outputs[0].mismatches == 9);
  set_floats(example.output(), std::vector<float>(10, NAN));
  CHECK(example.run()->passed());
  Tolerance strict = kTolerance;
  strict.nan_equal = false;
  CHECK(example.run(strict)->outputs[0].mismatches == 10);
}

TEST_CASE("a test case that expects nothing is run and compares nothing") {
  Example example;
  example.first.expected_outputs.clear();
  const auto run = example.run().value();
  CHECK(run.passed());
  CHECK(run.outputs.empty());
}

TEST_CASE("tensors in other orders of dimensions are brought into the method's") {
  Example example;
  example.input() = with_dim_order(example.input(), {0, 3, 2, 1}).value();
  example.output() = with_dim_order(example.output(), {1, 0}).value();
  CHECK(example.run()->passed());
  // The same bytes, declared in that order, are another image.
  example.input().dim_order = {0, 1, 2, 3};
  CHECK(!example.run()->passed());
}

TEST_CASE("what does not fit the method is an error that names method, test case and value") {
  const std::string where = "kInvalidArgument: method 'forward', test case 3: ";
  const auto error = [](const auto& spoil) {
    Example example;
    spoil(example);
    return error_of(example.run());
  };
  CHECK(error([](Example& e) { e.first.inputs.clear(); }) ==
        exactly(where + "0 inputs given, the method has 1"));
  CHECK(error([](Example& e) { e.first.inputs.emplace_back(true); }) ==
        exactly(where + "2 inputs given, the method has 1"));
  CHECK(error([](Example& e) { e.first.expected_outputs.emplace_back(1.0); }) ==
        exactly(where + "2 expected outputs given, the method has 1"));
  CHECK(error([](Example& e) { e.first.inputs[0] = 1.0; }) ==
        exactly(where + "input 0 is a Double, expected a Tensor"));
  CHECK(error([](Example& e) { e.first.inputs[0] = std::monostate(); }) ==
        exactly(where + "input 0 is a None, expected a Tensor"));
  CHECK(error([](Example& e) { e.first.expected_outputs[0] = std::int64_t{1}; }) ==
        exactly(where + "expected output 0 is a Int, expected a Tensor"));
  CHECK(error([](Example& e) { e.input().scalar_type = ScalarType::kInt32; }) ==
        exactly(where + "input 0 is int32, expected float32"));
  CHECK(error([](Example& e) { e.input().scalar_type = static_cast<ScalarType>(77); }) ==
        exactly(where + "input 0 is unknown, expected float32"));
  CHECK(error([](Example& e) { e.output().scalar_type = ScalarType::kFloat16; }) ==
        exactly(where + "expected output 0 is float16, expected float32"));
  CHECK(error([](Example& e) {
          e.input().sizes = {1, 16, 16};
        }) == exactly(where + "input 0 has 3 dimensions, expected 4"));
  CHECK(error([](Example& e) {
          e.input().dim_order = {0, 1, 2};
        }) == containing("input 0 has a dim_order of 3 dimensions, expected 4"));
  CHECK(error([](Example& e) {
          e.input().dim_order = {0, 1, 2, 9};
        }) == containing("dim_order [0, 1, 2, 9] is not a permutation"));
  CHECK(error([](Example& e) {
          e.input().sizes = {1, 1, 16, -16};
        }) == containing("input 0 has a negative size"));
  CHECK(error([](Example& e) {
          e.input().sizes = {2, 1, 16, 16};
        }) == containing("more than the 1024 bytes"));
  CHECK(error([](Example& e) { e.input().data = ByteSource::zeros(1023); }) ==
        exactly(where + "input 0 has 1023 bytes of data, expected 1024 for its shape"));
  CHECK(error([](Example& e) { e.output().data = ByteSource::zeros(41); }) ==
        exactly(where + "expected output 0 has 41 bytes of data, expected 40 for its shape"));
  // The number of elements is right, but the shape is not.
  CHECK(error([](Example& e) {
          e.input().sizes = {1, 1, 8, 32};
        }) == containing(where.substr(18) + "input 0: the method does not take its shape"));
  CHECK(error([](Example& e) {
          e.output().sizes = {2, 5};
        }) == exactly(where + "output 0 has shape [1, 10], expected [2, 5]"));
}

TEST_CASE("sizes whose product is over every range are an error, though another is zero") {
  constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
  Example example;
  example.input().sizes = {kMost, kMost, kMost, 0};
  example.input().data = ByteSource();
  CHECK(error_of(example.run()) == containing("input 0 has a negative size, or more"));
  example.input().sizes = {0, kMost, kMost, kMost};
  CHECK(error_of(example.run()) == containing("input 0 has a negative size, or more"));
}

TEST_CASE("after an error the method runs as before") {
  Example example;
  const MethodTestCase right = example.first;
  example.input().sizes = {1, 1, 8, 32};
  CHECK(!example.run());
  example.first = right;
  CHECK(example.run()->passed());
}

TEST_CASE("a method that the program has not is not found") {
  const Example example;
  CHECK(error_of(LoadedMethod::load(*example.program, "back\nward")) ==
        exactly("kNotFound: method 'back\\x0award': the program has no such method"));
}

}  // namespace
}  // namespace etstream
