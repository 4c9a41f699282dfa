// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "bpte/case_check.h"
#include "container/findings.h"
#include "etstream/bundled_program_file.h"
#include "etstream/compare.h"
#include "etstream/dim_order.h"
#include "python/bindings.h"
#include "python/bundles.h"
#include "python/errors.h"

namespace etstream::python {
namespace {

const BundledProgramFile::Suite& suite_at(const BundledProgramFile& bundle, std::size_t suite,
                                          std::uint32_t index) {
  if (suite < bundle.suites().size() && index < bundle.suites()[suite].test_cases) {
    return bundle.suites()[suite];
  }
  throw nb::index_error(
      text("{}: there is no test case {} in suite {}", bundle.file().name(), index, suite).c_str());
}

MethodTestCase case_at(const BundledProgramFile& bundle, std::size_t suite, std::uint32_t index) {
  const auto& found = suite_at(bundle, suite, index);
  return without_gil([&] { return bundle.test_case(found, index); });
}

/// Puts tensors in the order of dimensions that the method has them in; what does not fit is left to the
/// check.
Result<void> put_in_order(const std::vector<ValueInfo>& infos, std::vector<Value>& values) {
  for (std::size_t i = 0; i < std::min(infos.size(), values.size()); ++i) {
    const auto* info = std::get_if<TensorInfo>(&infos[i]);
    const auto* tensor = std::get_if<Tensor>(&values[i]);
    if (!info || !tensor || info->dim_order == tensor->dim_order) continue;
    auto moved = with_dim_order(*tensor, info->dim_order);
    if (moved) {
      values[i] = *std::move(moved);
    } else if (moved.error().code != ErrorCode::kInvalidArgument) {
      return moved.error();
    }
  }
  return {};
}

Result<MethodTestCase> fitted_case(const BundledProgramFile& bundle, const BundledProgramFile::Suite& suite,
                                   std::uint32_t index) {
  const std::string name = bundle.file().name();
  ETSTREAM_ASSIGN(const ProgramFile program, bundle.open_program());
  Findings findings;
  ETSTREAM_TRY(program.verify(findings));
  if (!findings.ok()) return first_error(ErrorCode::kCorrupt, name, findings);
  ETSTREAM_ASSIGN(const auto methods, program.methods());
  const MethodInfo* method = MethodNames(methods).find(suite.method_name, findings);
  if (!method)
    return make_error(ErrorCode::kInvalidArgument, "{}: {}", name, findings.errors.front().message);
  ETSTREAM_ASSIGN(MethodTestCase test_case, bundle.test_case(suite, index));
  ETSTREAM_TRY(put_in_order(method->inputs, test_case.inputs));
  ETSTREAM_TRY(put_in_order(method->outputs, test_case.expected_outputs));
  check_test_case(*method, test_case, index, findings);
  if (!findings.ok())
    return make_error(ErrorCode::kInvalidArgument, "{}: {}", name, findings.errors.front().message);
  return test_case;
}

std::vector<std::pair<std::string, std::uint32_t>> suite_sizes(const BundledProgramFile& bundle) {
  std::vector<std::pair<std::string, std::uint32_t>> out;
  for (const auto& suite : bundle.suites()) out.emplace_back(suite.method_name, suite.test_cases);
  return out;
}

/// As run_test_case() compares them.
Comparison compare_values(nb::handle expected_object, nb::handle actual_object, double rtol, double atol,
                          std::uint64_t integer, bool nan_equal) {
  const Value expected = value_of(expected_object);
  const Value actual = value_of(actual_object);
  const Tolerance tolerance{.absolute = atol, .relative = rtol, .integer = integer, .nan_equal = nan_equal};
  return without_gil([&]() -> Result<Comparison> {
    const auto* one = std::get_if<Tensor>(&expected);
    const auto* other = std::get_if<Tensor>(&actual);
    if (!one || !other || one->sizes != other->sizes) return compare(expected, actual, tolerance);
    ETSTREAM_ASSIGN(const Tensor moved, with_dim_order(*other, one->dim_order));
    return compare(expected, moved, tolerance);
  });
}

void bind_comparisons(nb::module_& module) {
  nb::class_<Mismatch>(module, "Mismatch", "An element, or a scalar, that is not as expected.")
      .def_ro("index", &Mismatch::index, "Of the element, in the order in which the expected data lies.")
      .def_ro("expected", &Mismatch::expected, nb::sig("def expected(self) -> int | float"))
      .def_ro("actual", &Mismatch::actual, nb::sig("def actual(self) -> int | float"))
      .def("__repr__", [](const Mismatch& self) {
        return nb::str("<etstream.Mismatch at {}: expected {}, found {}>")
            .format(self.index, self.expected, self.actual);
      });
  nb::class_<Comparison>(module, "Comparison",
                         "How far one output is from the expected one: over the pairs of elements in which "
                         "both are finite. True where no element mismatches; str() says it in a line.")
      .def_ro("elements", &Comparison::elements, "How many were compared; 1 for a scalar.")
      .def_ro("mismatches", &Comparison::mismatches, "How many of them are further off than allowed.")
      .def_ro("largest_absolute_error", &Comparison::largest_absolute_error)
      .def_ro("mean_absolute_error", &Comparison::mean_absolute_error)
      .def_ro("largest_relative_error", &Comparison::largest_relative_error,
              "|actual - expected| / |expected|, of those whose expected one is not 0.")
      .def_ro("first", &Comparison::first, "The first mismatch, if any.")
      .def_ro("worst", &Comparison::worst,
              "The mismatch with the largest absolute error, or the first with a NaN or an infinity.")
      .def("__bool__", &Comparison::passed)
      .def("__str__", &summary)
      .def("__repr__",
           [](const Comparison& self) { return text("<etstream.Comparison: {}>", summary(self)); });
  module.def("compare", &compare_values, nb::arg("expected"), nb::arg("actual"), nb::kw_only(),
             nb::arg("rtol"), nb::arg("atol"), nb::arg("integer"), nb::arg("nan_equal"));
}

}  // namespace

void bind_test_cases(nb::module_& module) {
  bind_comparisons(module);
  module.def("suite_sizes", &suite_sizes, nb::arg("bundle"),
             "Of each suite in file order, the method and how many test cases it has.");
  module.def("test_case", &case_at, nb::arg("bundle"), nb::arg("suite"), nb::arg("index"),
             "A test case of the suite with that number, as it is in the file.");
  module.def(
      "fitted_test_case",
      [](const BundledProgramFile& bundle, std::size_t suite, std::uint32_t index) {
        const auto& found = suite_at(bundle, suite, index);
        return without_gil([&] { return fitted_case(bundle, found, index); });
      },
      nb::arg("bundle"), nb::arg("suite"), nb::arg("index"),
      "The same, safe to run: the program is sound as far as its metadata says, and has such inputs and "
      "outputs, in whose dim_order the tensors are. Raises CorruptError, and InvalidArgumentError naming "
      "method, case and value.");
}

}  // namespace etstream::python
