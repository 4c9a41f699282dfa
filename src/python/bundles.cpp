// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/bundled_program.h"
#include "etstream/tensor.h"
#include "etstream/verify.h"
#include "flatbuffer/schema_packer.h"
#include "formats/bpte/bundled_program.h"
#include "formats/bpte/test_cases.h"
#include "formats/tensor/dimensions.h"
#include "formats/tensor/strided_source.h"
#include "present/reports.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/object_reader.h"
#include "python/outputs.h"
#include "python/sources.h"

namespace etstream::python {
namespace {

BundleFormat format_of(const std::string& name) {
  return choice<BundleFormat>("format", name, {"bp08", BundleFormat::kBp08},
                              {"segmented", BundleFormat::kSegmented});
}

const char* name_of_format(BundleFormat format) {
  return format == BundleFormat::kBp08 ? "bp08" : "segmented";
}

using DtypeLike = Annotated<"etstream._types.DtypeLike">;

ScalarType type_of(const DtypeLike& dtype) {
  const std::string name =
      nb::isinstance<nb::str>(dtype)
          ? nb::cast<std::string>(dtype)
          : nb::cast<std::string>(
                nb::module_::import_("etstream._arguments").attr("dtype_name")("dtype", dtype));
  return type_named(name);
}

/// Makes a tensor, and checks it. Without a `dim_order` it is contiguous, and a bundle may have its elements
/// in another order.
Tensor sound_tensor(ScalarType type, const std::vector<std::int64_t>& sizes, ByteSource data,
                    std::optional<std::vector<std::uint8_t>> dim_order) {
  Tensor tensor;
  tensor.scalar_type = type;
  for (const std::int64_t size : sizes) {
    if (!std::in_range<std::int32_t>(size)) {
      raise(make_error(ErrorCode::kInvalidArgument, "sizes: expected dimensions of less than 2**31, found {}",
                       size));
    }
    tensor.sizes.push_back(static_cast<std::int32_t>(size));
  }
  tensor.data = std::move(data);
  tensor.any_order = !dim_order;
  tensor.dim_order = dim_order ? std::move(*dim_order) : contiguous_dim_order(tensor.sizes.size());
  if (const auto problem = problem_of(tensor)) {
    raise(make_error(ErrorCode::kInvalidArgument, "the tensor {}", *problem));
  }
  return tensor;
}

Tensor make_tensor(const DtypeLike& dtype, const std::vector<std::int64_t>& sizes, const SourceLike& data,
                   std::optional<std::vector<std::uint8_t>> dim_order) {
  const ScalarType type = type_of(dtype);
  return sound_tensor(type, sizes, data_of(data), std::move(dim_order));
}

/// Makes a contiguous tensor whose elements lie in `data` by `strides` in bytes, from `offset` on.
Tensor gathered_tensor(const DtypeLike& dtype, const std::vector<std::int64_t>& sizes,
                       const std::vector<std::int64_t>& strides, const SourceLike& data,
                       std::uint64_t offset) {
  const ScalarType type = type_of(dtype);
  StridedElements elements{item_size(type), {sizes.begin(), sizes.end()}, strides, offset};
  ByteSource gathered = value_or_raise(gather(data_of(data), std::move(elements)));
  return sound_tensor(type, sizes, std::move(gathered), std::nullopt);
}

/// Returns the tensor as a contiguous one, which a bundle lays out as the method has it.
Tensor in_any_order(const Tensor& tensor) {
  Tensor out = value_or_raise(with_dim_order(tensor, contiguous_dim_order(tensor.sizes.size())));
  out.any_order = true;
  return out;
}

/// Refuses an invalid tensor, which a file may have; verify() reports it.
void require_sound(const Tensor& tensor) {
  if (const auto problem = problem_of(tensor)) {
    raise(make_error(ErrorCode::kCorrupt, "{}: a tensor {}", tensor.data.name(), *problem));
  }
}

/// Returns the value for a Python object. A number has the type that it has in Python, a bool before an int.
/// A tensor is a Tensor, or one of torch's or NumPy's. Raises TypeError for something else.
Value value_of(nb::handle object) {
  if (object.is_none()) return std::monostate{};
  if (PyBool_Check(object.ptr())) return object.is(Py_True);
  if (PyLong_Check(object.ptr())) {
    const long long number = PyLong_AsLongLong(object.ptr());
    if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return std::int64_t{number};
  }
  if (PyFloat_Check(object.ptr()) && !nb::hasattr(object, "dtype")) return nb::cast<double>(object);
  if (nb::isinstance<Tensor>(object)) return nb::cast<Tensor>(object);
  return nb::cast<Tensor>(nb::module_::import_("etstream._arrays")
                              .attr("tensor")(object, "an int, a float, a bool, None, or a tensor"));
}

/// Returns the values at the leaves of a tree of objects; no values for None. Errors about a value name
/// `kind` and its number.
std::vector<Value> values_of(const char* kind, nb::handle objects) {
  std::vector<Value> values;
  if (objects.is_none()) return values;
  const nb::object leaves = nb::module_::import_("etstream._arrays").attr("leaves")(objects);
  for (const nb::handle object : nb::iter(leaves)) {
    try {
      values.push_back(value_of(object));
    } catch (nb::python_error& error) {
      const nb::str said(error.value());
      nb::raise_from(error, error.type().ptr(), "%s %zu: %U", kind, values.size(), said.ptr());
    }
  }
  return values;
}

MethodTestCase make_test_case(nb::handle inputs, nb::handle expected_outputs) {
  return {values_of("input", inputs), values_of("expected output", expected_outputs)};
}

using TestCasesLike = Annotated<"collections.abc.Iterable[etstream._types.TestCaseLike]">;

MethodTestSuite make_test_suite(std::string method_name, const TestCasesLike& test_cases) {
  MethodTestSuite suite{std::move(method_name), {}};
  const nb::object case_of = nb::module_::import_("etstream._bundles").attr("case_of");
  for (const nb::handle one : several("test_cases", "test cases", test_cases)) {
    suite.test_cases.push_back(nb::cast<MethodTestCase>(case_of(one)));
  }
  return suite;
}

std::vector<MethodTestSuite> suites_from(const PathLike& path) {
  return without_gil([name = path_of(path)] { return read_test_cases(name); });
}

FilePlan plan_bundle(const SourceLike& program, std::vector<MethodTestSuite> suites, const Options& given,
                     const std::optional<std::string>& flatbuffers) {
  BundledProgram bundle;
  bundle.program = source_of(program);
  bundle.method_test_suites = std::move(suites);
  BundledProgramOptions options{
      .format = format_of(option<std::string>(given, "to")),
      .hash = option<bool>(given, "hash"),
      .unchecked = option<bool>(given, "unchecked"),
      .writer = writer_of(option<std::optional<std::string>>(given, "as_of"), flatbuffers)};
  options.program_alignment =
      alignment_option(given, "program_alignment").value_or(options.program_alignment);
  return without_gil([&] { return plan(bundle, options); });
}

/// Returns the plan of a BP08 bundle in the dataclasses of ExecuTorch's schema, unchecked. Data is whatever
/// is a source.
FilePlan plan_bundle_objects(nb::object bundle, const std::optional<std::string>& as_of,
                             const std::optional<std::string>& flatbuffers) {
  const PackerOptions options = bundle_packer_options(writer_of(as_of, flatbuffers));
  const auto packed = [&]() -> Result<FilePlan> {
    ETSTREAM_ASSIGN(const Schema* schema, bundled_program_schema());
    ObjectReader values(*schema, std::move(bundle));
    return pack(*schema, values, options);
  };
  return value_or_raise(packed());
}

std::vector<MethodTestSuite> suites_of(const BundledProgramFile& file) {
  return without_gil([&]() -> Result<std::vector<MethodTestSuite>> {
    ETSTREAM_ASSIGN(BundledProgram bundle, file.read());
    return std::move(bundle.method_test_suites);
  });
}

void write_cases(const BundledProgramFile& bundle, const PathLike& folder, bool sync,
                 const LimitLike& max_disk) {
  const auto most = limit("max_disk", max_disk);
  CollectedWarnings warnings;
  without_gil([&, path = path_of(folder)] {
    return write_test_cases(bundle, path, warnings.options(sync), {}, most);
  });
  warnings.show();
}

const BundledProgramFile::Suite& suite_at(const BundledProgramFile& bundle, std::size_t suite,
                                          std::uint32_t index) {
  if (suite < bundle.suites().size() && index < bundle.suites()[suite].test_cases) {
    return bundle.suites()[suite];
  }
  const nb::object words =
      nb::cast(text("{}: there is no test case {} in suite {}", bundle.file().name(), index, suite));
  PyErr_SetObject(PyExc_IndexError, words.ptr());
  throw nb::python_error();
}

/// Returns a test case that is safe to run: the program is sound as far as its metadata says, and has such
/// inputs and outputs, in whose dim_order the tensors are. Errors: kCorrupt; kInvalidArgument, naming method,
/// case and value.
Result<MethodTestCase> fitted_case(const BundledProgramFile& bundle, const BundledProgramFile::Suite& suite,
                                   std::uint32_t index) {
  const std::string name = bundle.file().name();
  ETSTREAM_ASSIGN(const ProgramFile program, bundle.open_program());
  ETSTREAM_TRY(require_sound(program));
  const auto refused = [&](const Findings& findings) {
    return unsound(ErrorCode::kInvalidArgument, name, findings, AdviceTerm::kVerify);
  };
  Findings findings;
  ETSTREAM_ASSIGN(const auto methods, program.methods());
  const MethodInfo* method = MethodNames(methods).find(suite.method_name, findings);
  if (!method) return refused(findings);
  ETSTREAM_ASSIGN(MethodTestCase test_case, bundle.test_case(suite, index));
  lay_out(*method, test_case, WhichTensors::kAll);
  check_test_case(*method, test_case, index, findings);
  if (!findings.ok()) return refused(findings);
  return test_case;
}

MethodTestCase fitted_case_at(const BundledProgramFile& bundle, std::size_t suite, std::uint32_t index) {
  const auto& found = suite_at(bundle, suite, index);
  return without_gil([&] { return fitted_case(bundle, found, index); });
}

/// Returns the method of each suite in file order, and how many test cases it has.
std::vector<std::pair<std::string, std::uint32_t>> suite_sizes(const BundledProgramFile& bundle) {
  std::vector<std::pair<std::string, std::uint32_t>> out;
  for (const auto& suite : bundle.suites()) out.emplace_back(suite.method_name, suite.test_cases);
  return out;
}

/// Compares two values; tensors are brought into one order.
Report compare_values(nb::handle expected_object, nb::handle actual_object, std::optional<double> rtol,
                      std::optional<double> atol, std::uint64_t integer, bool nan_equal) {
  const Value expected = value_of(expected_object);
  const Value actual = value_of(actual_object);
  const Tolerance tolerance{.absolute = atol, .relative = rtol, .integer = integer, .nan_equal = nan_equal};
  OutputRun output;
  output.comparison = without_gil([&]() -> Result<Comparison> {
    const auto* one = std::get_if<Tensor>(&expected);
    const auto* other = std::get_if<Tensor>(&actual);
    if (!one || !other || one->sizes != other->sizes) return compare(expected, actual, tolerance);
    ETSTREAM_ASSIGN(const Tensor moved, with_dim_order(*other, one->dim_order));
    return compare(expected, moved, tolerance);
  });
  MethodRun run;
  run.outputs.push_back(output);
  const nb::object report = in_python(runs_to_json({run}))[0]["outputs"][0];
  report["message"] = summary(*output.comparison);
  return report;
}

void bind_tensors(nb::module_& module) {
  nb::class_<Tensor> tensors(module, "Tensor",
                             "A tensor's dtype, shape and bytes, which stay where they lie. A value.");
  tensors
      .def("__init__", constructor(&make_tensor), nb::arg("dtype"), nb::arg("sizes"), nb::arg("data"),
           nb::arg("dim_order") = nb::none(),
           "dtype as torch or NumPy has it, or a name, such as 'bfloat16' or 'bf16'; at most 16 sizes; data, "
           "a source, is the elements, little-endian, dense, "
           "in the order of dim_order, which has the dimensions outermost first. Without dim_order they are "
           "contiguous, and a bundle lays them out in the order that the method has; with it, they stay as "
           "they lie. Raises InvalidArgumentError where data is not as long as they say, and for a "
           "dim_order that is none.")
      .def_prop_ro(
          "dtype", [](const Tensor& self) { return std::string(name_of(self.scalar_type)); },
          "As torch names it; 'unknown' for a number that is none of its types'.")
      .def_prop_ro(
          "scalar_type", [](const Tensor& self) { return static_cast<int>(self.scalar_type); },
          "The dtype's number in ExecuTorch's files.")
      .def_ro("sizes", &Tensor::sizes, "Of the dimensions.")
      .def_ro("dim_order", &Tensor::dim_order, "The dimensions, outermost first.")
      .def_prop_ro(
          "shape", [](const Tensor& self) { return shape_of(self.sizes); }, "The sizes.")
      .def_ro("data", &Tensor::data, "The elements, little-endian, dense.")
      .def("__repr__", [](const Tensor& self) {
        return nb::str("<etstream.Tensor of {}, {}: {}>")
            .format(std::string(name_of(self.scalar_type)), shape_of(self.sizes), self.data.name());
      });
  def_array_views(tensors);
  module.def("gathered_tensor", &gathered_tensor);
  module.def("in_any_order", &in_any_order);
  module.def("require_sound", &require_sound);
}

/// Tells pytest that the class is no test, as its name suggests one.
void say_no_test(nb::handle type) { type.attr("__test__") = false; }

void bind_suites(nb::module_& module) {
  nb::class_<MethodTestCase> cases(module, "TestCase",
                                   "Inputs of a method, and what it is to give for them.");
  say_no_test(cases);
  cases
      .def(
          "__init__", constructor(&make_test_case), nb::arg("inputs").none(),
          nb::arg("expected_outputs").none() = nb::tuple(),
          "A value each for every input and output of the method: an int, a float, a bool, None, a Tensor, a "
          "torch tensor or a NumPy array; those that are not contiguous are copied. Lists, tuples and dicts "
          "of them, in each other, are flattened as ExecuTorch does (torch.utils._pytree), and one value "
          "alone is a list of it. None for expected_outputs is none of them.")
      .def_ro("inputs", &MethodTestCase::inputs, nb::rv_policy::copy, "One for each input of the method.")
      .def_ro("expected_outputs", &MethodTestCase::expected_outputs, nb::rv_policy::copy,
              "One for each output of the method; none in a case that is for profiling only.")
      .def("__repr__", [](nb::handle self) {
        return nb::str("etstream.TestCase({}, {})")
            .format(self.attr("inputs"), self.attr("expected_outputs"));
      });
  nb::class_<MethodTestSuite> suites(module, "TestSuite", "The test cases of one method.");
  say_no_test(suites);
  suites
      .def("__init__", constructor(&make_test_suite), nb::arg("method_name"), nb::arg("test_cases"),
           "Test cases are etstream's, or ExecuTorch's MethodTestCase.")
      .def_ro("method_name", &MethodTestSuite::method_name)
      .def_ro("test_cases", &MethodTestSuite::test_cases)
      .def("__repr__", [](const MethodTestSuite& self) {
        return text("<etstream.TestSuite of {}: {}>", self.method_name,
                    counted(self.test_cases.size(), "test case"));
      });
}

}  // namespace

void bind_bundles(nb::module_& module) {
  bind_tensors(module);
  bind_suites(module);
  module.def("compare", &compare_values, nb::arg("expected").none(), nb::arg("actual").none(), nb::kw_only(),
             nb::arg("rtol").none(), nb::arg("atol").none(), nb::arg("integer"), nb::arg("nan_equal"));
  module.def("read_test_cases", &suites_from);
  module.def("plan_bundle", &plan_bundle);
  module.def("plan_bundle_objects", &plan_bundle_objects);
  nb::class_<BundledProgramFile>(
      module, "BundledProgramFile",
      "A bundle (.bpte, of either format), open. Holds at most 512 KiB of it in memory and "
      "the names of its suites. May be used by several threads at once.")
      .def("__init__", constructor(&opened_file<BundledProgramFile>), nb::arg("file"),
           "Reads all metadata of a source and checks its structure. Raises CorruptError, naming file, "
           "offset, expected and found.")
      .def_prop_ro(
          "format", [](const BundledProgramFile& self) { return name_of_format(self.format()); },
          "'bp08' or 'segmented'.")
      .def_prop_ro("version", &BundledProgramFile::version, "Of the schema.")
      .def_prop_ro("program", &BundledProgramFile::program, "The .pte file inside, which stays where it is.")
      .def_prop_ro("program_offset", &BundledProgramFile::program_offset,
                   "Where that is in the file, in bytes.")
      .def_prop_ro(
          "suites", &suites_of,
          "In file order; a method may come twice. The data of tensors stays where it is. Read again at "
          "each use.")
      .def(
          "plan_as",
          [](const BundledProgramFile& self, const std::string& format, bool hash) {
            return without_gil([&, to = format_of(format)] { return self.plan_as(to, hash); });
          },
          nb::arg("format"), nb::arg("hash") = true,
          "The plan of the same content in 'bp08' or 'segmented', without loss; of a copy where it is in "
          "that one. Raises TooLargeError for bp08 over 2 GiB.")
      .def("write_test_cases", &write_cases, nb::arg("folder"), nb::kw_only(), nb::arg("sync") = true,
           nb::arg("max_disk") = nb::none(),
           "Writes the suites to a new folder, or an empty one, so that read_test_cases(folder/'cases.json') "
           "gives them back. The folder appears complete or not at all. max_disk is that of "
           "FilePlan.write(), for the tensors, which cases may share in the bundle.")
      .def("__repr__", [](const BundledProgramFile& self) {
        return text("<etstream.BundledProgramFile, {}, {}: {}>", name_of_format(self.format()),
                    counted(self.suites().size(), "test suite"), self.file().name());
      });
  module.def("suite_sizes", &suite_sizes);
  module.def("fitted_test_case", &fitted_case_at);
}

}  // namespace etstream::python
