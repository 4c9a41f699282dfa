// SPDX-License-Identifier: BSD-3-Clause
//
// The reasons why test cases can't run: the rules one by one on a method made here, and files that others
// bundled. tests/cpp/formats/bpte/bundled_program_check_test.cpp has the bundles that check() and plan()
// refuse.
#include "formats/bpte/test_cases.h"

#include <doctest/doctest.h>

#include <functional>
#include <limits>

#include "bundled_program_generated.h"
#include "etstream/bundled_program.h"
#include "file_bytes.h"
#include "program_generated.h"
#include "test_errors.h"

namespace etstream::test_case_check_test {
namespace {

namespace bp = etstream::bundled_program;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TensorInfo info_of(std::vector<std::int32_t> sizes, ShapeDynamism dynamism) {
  auto order = contiguous_dim_order(sizes.size());
  return {ScalarType::kFloat32, std::move(sizes), std::move(order), dynamism};
}

Tensor tensor_of(std::vector<std::int32_t> sizes) {
  const std::uint64_t bytes = byte_size(ScalarType::kFloat32, sizes).value();
  auto order = contiguous_dim_order(sizes.size());
  return {ScalarType::kFloat32, std::move(sizes), std::move(order), ByteSource::zeros(bytes)};
}

/// Returns the errors and warnings if a method takes `info` and a case gives `value`.
std::string found_for(const ValueInfo& info, const Value& value) {
  Findings findings;
  check_test_case({"m", {info}, {}}, {{value}, {}}, 7, findings);
  return lines_of(findings.errors) + lines_of(findings.warnings);
}

TEST_CASE("a static shape takes itself alone, a bound what has its rank and is not larger in any dimension") {
  struct Row {
    std::vector<std::int32_t> given;
    bool is_static_fit, bound_fit;
  };
  const Row rows[] = {{{2, 6}, true, true},      {{2, 5}, false, true},  {{1, 1}, false, true},
                      {{0, 6}, false, true},     {{6, 2}, false, false}, {{12, 1}, false, false},
                      {{13, 1}, false, false},   {{3, 6}, false, false}, {{12}, false, false},
                      {{2, 6, 1}, false, false}, {{}, false, false},     {{0x7fffffff, 2}, false, false}};
  for (const Row& row : rows) {
    CAPTURE(row.given.size());
    const Tensor tensor = tensor_of(row.given);
    const std::string fixed = found_for(info_of({2, 6}, ShapeDynamism::kStatic), tensor);
    const std::string bound = found_for(info_of({2, 6}, ShapeDynamism::kDynamicBound), tensor);
    CHECK(found_for(info_of({2, 6}, ShapeDynamism::kDynamicUnbound), tensor) == bound);
    CHECK(fixed.empty() == row.is_static_fit);
    CHECK(bound.empty() == row.bound_fit);
    if (!row.bound_fit) {
      CHECK(exactly(bound) == containing("method 'm', test case 7: input 0 has shape ["));
      CHECK(exactly(bound) == containing(", expected at most [2, 6]: "));
      const bool has_rank = row.given.size() == 2;
      CHECK(exactly(bound) == containing(has_rank ? " is over the bound of dimension " : ", not 2\n"));
      CHECK((has_rank || exactly(fixed) == containing(", not 2\n")));
    }
  }
}

TEST_CASE("a double fits if it is within ExecuTorch's tolerance, 1e-4 and 1e-5 of the exported one") {
  struct Row {
    double exported, fits, does_not;
  };
  for (const Row& row :
       {Row{1, 1.0001, 1.00012}, Row{1, 0.9999, 0.99988}, Row{0, 0.0001, 0.000101},
        Row{1e6, 1e6 + 10, 1e6 + 10.01}, Row{-1e6, -1e6 - 10, -1e6 - 10.01}, Row{kNan, kNan, 1},
        Row{1, 1, kNan}, Row{kInfinity, kInfinity, 1}, Row{kInfinity, kInfinity, -kInfinity},
        Row{1, 1, kInfinity}, Row{1e308, 1e308, -1e308}}) {
    CAPTURE(row.exported);
    CHECK(found_for(row.exported, row.fits).empty());
    CHECK_FALSE(found_for(row.exported, row.does_not).empty());
  }
  CHECK(found_for(1.0, 2.0) ==
        "method 'm', test case 7: input 0 is 2, but the method was exported with 1 and "
        "ExecuTorch refuses another value\n");
}

TEST_CASE("a value that no test case can hold fits nothing") {
  for (const Value& value : {Value(), Value(std::int64_t{1}), Value(tensor_of({}))}) {
    CHECK(exactly(found_for(OtherInfo{"TensorList"}, value)) ==
          containing("expected a TensorList, which no test case can hold\n"));
  }
}

TEST_CASE("data of any other length than the shape says is found, also where the length overflows") {
  Tensor tensor = tensor_of({2, 6});
  tensor.data = ByteSource::zeros(~std::uint64_t{0});
  CHECK(exactly(found_for(info_of({2, 6}, ShapeDynamism::kStatic), tensor)) ==
        containing(" bytes of data, expected 48 for float32 [2, 6]"));
  tensor.sizes.assign(16, 0x7fffffff);
  tensor.dim_order = contiguous_dim_order(16);
  CHECK(exactly(found_for(info_of({2, 6}, ShapeDynamism::kStatic), tensor)) ==
        containing("input 0 has sizes [2147483647, "));
}

TEST_CASE("a channels-last input is warned of, unless it has no elements") {
  TensorInfo info = info_of({1, 3, 2, 2}, ShapeDynamism::kStatic);
  Tensor tensor = tensor_of({1, 3, 2, 2});
  CHECK(found_for(info, tensor).empty());
  info.dim_order = {0, 2, 3, 1};
  CHECK(exactly(found_for(info, tensor)) ==
        containing("input 0 lies in another dim_order than the method's input"));
  info.sizes = {0, 3, 2, 2};
  tensor.sizes = {0, 3, 2, 2};
  tensor.data = {};
  CHECK(found_for(info, tensor).empty());
}

/// Returns the findings in the real bundle, unpacked, changed and packed again.
Findings findings_after(const std::function<void(bp::BundledProgramT&)>& change) {
  const std::string real = real_bundle();
  bp::BundledProgramT object;
  bp::GetBundledProgram(real.data())->UnPackTo(&object);
  change(object);
  flatbuffers::FlatBufferBuilder builder;
  bp::FinishBundledProgramBuffer(builder, bp::BundledProgram::Pack(builder, &object));
  return findings_of(finished(builder));
}

bp::BundledMethodTestCaseT& scale_case(bp::BundledProgramT& object) {
  auto& suite = *object.method_test_suites.at(1);
  REQUIRE(suite.method_name == "scale");
  return *suite.test_cases.at(0);
}

TEST_CASE("a vector that ExecuTorch takes to be there is an error where it is absent") {
  struct Row {
    std::string vector;
    std::function<void(bp::BundledProgramT&)> remove;  // an empty vector is packed as an absent one
  };
  const auto tensor = [](bp::BundledProgramT& b) -> bp::TensorT& {
    return *scale_case(b).inputs[0]->val.AsTensor();
  };
  const Row rows[] = {
      {"BundledProgram.method_test_suites", [](bp::BundledProgramT& b) { b.method_test_suites.clear(); }},
      {"BundledProgram.program", [](bp::BundledProgramT& b) { b.program.clear(); }},
      {"BundledMethodTestSuite.method_name",
       [](bp::BundledProgramT& b) { b.method_test_suites[1]->method_name.clear(); }},
      {"BundledMethodTestSuite.test_cases",
       [](bp::BundledProgramT& b) { b.method_test_suites[1]->test_cases.clear(); }},
      {"BundledMethodTestCase.inputs", [](bp::BundledProgramT& b) { scale_case(b).inputs.clear(); }},
      {"BundledMethodTestCase.expected_outputs",
       [](bp::BundledProgramT& b) { scale_case(b).expected_outputs.clear(); }},
      {"Tensor.sizes", [&](bp::BundledProgramT& b) { tensor(b).sizes.clear(); }},
      {"Tensor.data", [&](bp::BundledProgramT& b) { tensor(b).data.clear(); }},
      {"Tensor.dim_order", [&](bp::BundledProgramT& b) { tensor(b).dim_order.clear(); }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.vector);
    const Findings findings = findings_after(row.remove);
    REQUIRE(!findings.errors.empty());
    CHECK(exactly(findings.errors[0].message) == containing("bad: offset "));
    CHECK(exactly(findings.errors[0].message) ==
          containing(": expected " + row.vector + ", which ExecuTorch reads unchecked, found none"));
  }
}

TEST_CASE("a tensor of 17 dimensions in a file is found, not read") {
  const Findings findings = findings_after(
      [](bp::BundledProgramT& b) { scale_case(b).inputs[0]->val.AsTensor()->sizes.assign(17, 1); });
  REQUIRE(findings.errors.size() == 1);
  CHECK(exactly(findings.errors[0].message) ==
        containing("expected at most 16 dimensions in Tensor.sizes, found 17"));
}

TEST_CASE("another schema version is warned of") {
  const Findings findings = findings_after([](bp::BundledProgramT& b) { b.version = 3; });
  CHECK(findings.ok());
  REQUIRE(!findings.warnings.empty());
  CHECK(findings.warnings[0].message == "bad: schema version 3, expected 2");
}

TEST_CASE("errors in the program of a bundle are those of the bundle's file, at their offsets in it") {
  const std::string bundle = real_bundle();
  const std::uint64_t program_at = BundledProgramFile::open(file_of(bundle))->program_offset();
  const std::string program = real_program();
  const auto* const plan_0 = program::GetProgram(program.data())->execution_plan()->Get(0);
  // ProgramFile::open() sees the first, and verify() the second.
  for (const std::size_t at : {std::size_t{0}, position_of(program, plan_0->name())}) {
    CAPTURE(at);
    std::string bad_program = program;
    put_at(bad_program, at, ~std::uint32_t{0});
    std::string bad_bundle = bundle;
    put_at(bad_bundle, program_at + at, ~std::uint32_t{0});
    const Findings alone = findings_of(bad_program);
    const Findings bundled = findings_of(bad_bundle);
    REQUIRE(alone.errors.size() == 1);
    REQUIRE(bundled.errors.size() == 1);
    REQUIRE(alone.errors[0].offset.has_value());
    CHECK(bundled.errors[0].file == "bad");
    CHECK(bundled.errors[0].offset == program_at + *alone.errors[0].offset);
  }
}

TEST_CASE("a program that lies where ExecuTorch does not load one from is found") {
  const std::string program = real_program();
  flatbuffers::FlatBufferBuilder builder;
  const auto bytes =
      builder.CreateVector(reinterpret_cast<const std::uint8_t*>(program.data()), program.size());
  const auto suites = builder.CreateVector(std::vector<flatbuffers::Offset<bp::BundledMethodTestSuite>>());
  bp::FinishBundledProgramBuffer(builder, bp::CreateBundledProgram(builder, 2, suites, bytes));
  const std::string file = finished(builder);
  const auto opened = BundledProgramFile::open(file_of(file));
  REQUIRE(opened);
  REQUIRE(opened->program_offset() % 16 != 0);
  CHECK(lines_of(findings_of(file).errors) == "bad: offset " + std::to_string(opened->program_offset()) +
                                                  ": expected the program at a multiple of 16, or ExecuTorch "
                                                  "does not load it, found one that is not\n");
}

}  // namespace
}  // namespace etstream::test_case_check_test
