// SPDX-License-Identifier: BSD-3-Clause
//
// The order of elements in test tensors of a program that has its own: an input and an output of 2 x 3 whose
// columns are outermost.
#include "formats/bpte/test_cases.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "etstream/bundled_program.h"
#include "file_bytes.h"
#include "runtime_checks/one_call_program.h"
#include "test_errors.h"
#include "test_sources.h"

namespace etstream::case_layout_test {
namespace {

using Order = std::vector<std::uint8_t>;

/// Returns the bytes of a program whose tensors are bytes in this order.
std::string program_in(const Order& order) {
  auto object = one_call::sound_object();
  for (auto& value : object.execution_plan[0]->values) {
    auto* const tensor = value->val.AsTensor();
    if (!tensor) continue;
    tensor->scalar_type = scalar_type::ScalarType_BYTE;
    tensor->sizes = {2, 3};
    tensor->dim_order = order;
  }
  return one_call::packed(object);
}

Tensor tensor_in(const Order& order, const std::string& bytes, bool any_order) {
  return {ScalarType::kUInt8, {2, 3}, order, source_of(bytes), any_order};
}

BundledProgram bundle_of(const std::string& program, const Tensor& input, const Tensor& output) {
  BundledProgram bundle;
  bundle.program = source_of(program);
  bundle.method_test_suites = {{"forward", {{{input, input}, {output}}}}};
  return bundle;
}

/// Returns the order and the bytes of the first input, and of the output, in the file that is planned.
std::string written_tensors(const BundledProgram& bundle, const BundledProgramOptions& options = {}) {
  const auto layout = plan(bundle, options);
  REQUIRE_MESSAGE(layout, layout.error().message);
  const std::string bytes = written(*layout);
  const auto file = BundledProgramFile::open(file_of(bytes));
  REQUIRE(file);
  const auto test_case = file->test_case(file->suites()[0], 0);
  REQUIRE(test_case);
  std::string out;
  for (const Value& value : {test_case->inputs[0], test_case->expected_outputs[0]}) {
    const auto& tensor = std::get<Tensor>(value);
    for (const std::uint8_t dimension : tensor.dim_order) out += std::to_string(dimension);
    out += text_of(tensor.data);
  }
  return out;
}

TEST_CASE("tensors in any order are written in the method's") {
  const std::string columns = program_in({1, 0});
  const std::string rows = program_in({0, 1});
  const Tensor tensor = tensor_in({0, 1}, "abcdef", true);
  for (const auto format : {BundleFormat::kBp08, BundleFormat::kSegmented}) {
    CHECK(written_tensors(bundle_of(columns, tensor, tensor), {.format = format}) == "10adbecf10adbecf");
    CHECK(written_tensors(bundle_of(rows, tensor, tensor), {.format = format}) == "01abcdef01abcdef");
  }
  const Tensor said = tensor_in({1, 0}, "adbecf", false);
  CHECK(written_tensors(bundle_of(columns, tensor, said)) == "10adbecf10adbecf");
  CHECK(written_tensors(bundle_of(columns, said, tensor)) == "10adbecf10adbecf");
  const auto checked = check(bundle_of(columns, tensor, tensor));
  REQUIRE(checked);
  CHECK(lines_of(checked->errors) + lines_of(checked->warnings) == "");
}

TEST_CASE("tensors whose order is said stay, and one that the method does not have is refused") {
  const std::string columns = program_in({1, 0});
  const Tensor by_rows = tensor_in({0, 1}, "abcdef", false);
  const Tensor by_columns = tensor_in({1, 0}, "adbecf", false);
  CHECK(written_tensors(bundle_of(columns, by_rows, by_columns)) == "01abcdef10adbecf");
  CHECK(error_of(plan(bundle_of(columns, by_rows, by_rows))) ==
        containing("has another dim_order than the method's output"));
  const Tensor set_later = tensor_in({1, 0}, "adbecf", true);
  CHECK(written_tensors(bundle_of(program_in({0, 1}), set_later, by_rows)) == "10adbecf01abcdef");
}

TEST_CASE("of a program that can't be asked, tensors stay as they are") {
  const Tensor by_rows = tensor_in({0, 1}, "abcdef", true);
  CHECK(written_tensors(bundle_of("no program", by_rows, by_rows), {.unchecked = true}) ==
        "01abcdef01abcdef");
}

}  // namespace
}  // namespace etstream::case_layout_test
