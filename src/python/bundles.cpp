// SPDX-License-Identifier: BSD-3-Clause
#include "python/bundles.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <variant>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "bpte/bundled_program_schema.h"
#include "etstream/bundled_program.h"
#include "etstream/bundled_program_file.h"
#include "etstream/case_files.h"
#include "flatbuffer/schema_packer.h"
#include "python/array_views.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/object_reader.h"
#include "python/sources.h"
#include "python/writer_versions.h"

namespace etstream::python {
namespace {

BundleFormat format_of(const std::string& name) {
  return choice<BundleFormat>("format", name, {"bp08", BundleFormat::kBp08},
                              {"segmented", BundleFormat::kSegmented});
}

const char* name_of_format(BundleFormat format) {
  return format == BundleFormat::kBp08 ? "bp08" : "segmented";
}

Tensor make_tensor(const std::string& dtype, std::vector<std::int32_t> sizes, const SourceLike& data,
                   std::optional<std::vector<std::uint8_t>> dim_order) {
  const auto type = find_scalar_type(dtype);
  if (!type) {
    raise(make_error(ErrorCode::kInvalidArgument,
                     "dtype: expected the name of a type that ExecuTorch has, such as bfloat16, found {}",
                     quote(dtype)));
  }
  Tensor tensor;
  tensor.scalar_type = *type;
  tensor.sizes = std::move(sizes);
  tensor.data = source_of(data);
  tensor.dim_order = dim_order ? std::move(*dim_order) : contiguous_dim_order(tensor.sizes.size());
  const std::uint64_t size = value_or_raise(byte_size(tensor.scalar_type, tensor.sizes));
  if (size != tensor.data.size()) {
    raise(make_error(ErrorCode::kInvalidArgument,
                     "tensor: expected {} bytes as its dtype and sizes say, found {}", size,
                     tensor.data.size()));
  }
  return tensor;
}

/// Of a tree of them; none for None.
std::vector<Value> values_of(nb::handle objects) {
  std::vector<Value> values;
  if (objects.is_none()) return values;
  const nb::object leaves = nb::module_::import_("etstream._values").attr("leaves")(objects);
  for (const nb::handle object : nb::iter(leaves)) values.push_back(value_of(object));
  return values;
}

MethodTestCase make_test_case(nb::handle inputs, nb::handle expected_outputs) {
  return {values_of(inputs), values_of(expected_outputs)};
}

std::vector<MethodTestSuite> suites_from(const PathLike& path) {
  return without_gil([name = path_of(path)] { return read_test_cases(name); });
}

FilePlan plan_bundle(nb::handle program, std::vector<MethodTestSuite> suites, const std::string& format,
                     bool hash, std::uint32_t program_alignment, bool unchecked,
                     const std::optional<std::string>& as_of, const std::optional<std::string>& flatbuffers) {
  BundledProgram bundle;
  bundle.program = source_of(program);
  bundle.method_test_suites = std::move(suites);
  const BundledProgramOptions options{.format = format_of(format),
                                      .hash = hash,
                                      .program_alignment = program_alignment,
                                      .unchecked = unchecked,
                                      .writer = writer_of(as_of, flatbuffers)};
  return without_gil([&] { return plan(bundle, options); });
}

FilePlan plan_bundle_objects(nb::object bundle, const std::optional<std::string>& as_of,
                             const std::optional<std::string>& flatbuffers) {
  const PackOptions options = bundle_pack_options(writer_of(as_of, flatbuffers));
  const auto packed = [&]() -> Result<FilePlan> {
    ETSTREAM_ASSIGN(const Schema* schema, bundled_program_schema());
    ObjectReader values(*schema, std::move(bundle));
    return pack(*schema, values, options);
  };
  return value_or_raise(packed());
}

BundledProgramFile open_bundle(const SourceLike& source) {
  ByteSource file = source_of(source);
  return without_gil([&] { return BundledProgramFile::open(std::move(file)); });
}

std::vector<MethodTestSuite> suites_of(const BundledProgramFile& file) {
  return without_gil([&]() -> Result<std::vector<MethodTestSuite>> {
    ETSTREAM_ASSIGN(BundledProgram bundle, file.read());
    return std::move(bundle.method_test_suites);
  });
}

void write_cases(const BundledProgramFile& bundle, const PathLike& folder, bool sync) {
  without_gil([&, path = path_of(folder)] { return write_test_cases(bundle, path, {.sync = sync}); });
}

void bind_tensors(nb::module_& module) {
  nb::class_<Tensor> tensors(module, "Tensor",
                             "A tensor's dtype, shape and bytes, which stay where they lie. A value.");
  tensors
      .def(
          "__init__", constructor(&make_tensor), nb::arg("dtype"), nb::arg("sizes"), nb::arg("data"),
          nb::arg("dim_order") = nb::none(),
          "dtype as torch names it; at most 16 sizes; data, a source, is the elements, little-endian, dense, "
          "in the order of dim_order, which has the dimensions outermost first and is 0, 1, 2... where "
          "contiguous. Raises InvalidArgumentError where data is not as long as they say.")
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
}

/// pytest takes a class by such a name for tests otherwise.
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
      .def(nb::init<std::string, std::vector<MethodTestCase>>(), nb::arg("method_name"),
           nb::arg("test_cases"))
      .def_ro("method_name", &MethodTestSuite::method_name)
      .def_ro("test_cases", &MethodTestSuite::test_cases)
      .def("__repr__", [](const MethodTestSuite& self) {
        return text("<etstream.TestSuite of {}: {}>", self.method_name,
                    counted(self.test_cases.size(), "test case"));
      });
}

}  // namespace

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
  return nb::cast<Tensor>(nb::module_::import_("etstream._values").attr("tensor")(object));
}

void bind_bundles(nb::module_& module) {
  bind_tensors(module);
  bind_suites(module);
  module.def("read_test_cases", &suites_from, nb::arg("path"));
  module.def("plan_bundle", &plan_bundle, nb::arg("program"), nb::arg("suites"), nb::arg("format"),
             nb::arg("hash"), nb::arg("program_alignment"), nb::arg("unchecked"), nb::arg("as_of"),
             nb::arg("flatbuffers"));
  module.def(
      "plan_bundle_objects", &plan_bundle_objects, nb::arg("bundle"), nb::arg("as_of"),
      nb::arg("flatbuffers"),
      "The plan of a BP08 bundle in the dataclasses of ExecuTorch's schema, unchecked. Data is whatever is a "
      "source.");
  nb::class_<BundledProgramFile>(
      module, "BundledProgramFile",
      "A bundle (.bpte, of either format), open. Holds at most 512 KiB of it in memory and "
      "the names of its suites. May be used by several threads at once.")
      .def("__init__", constructor(&open_bundle), nb::arg("file"),
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
           "Writes the suites to a new folder, or an empty one, so that read_test_cases(folder/'cases.json') "
           "gives them back. The folder appears complete or not at all.")
      .def("__repr__", [](const BundledProgramFile& self) {
        return text("<etstream.BundledProgramFile, {}, {}: {}>", name_of_format(self.format()),
                    counted(self.suites().size(), "test suite"), self.file().name());
      });
}

}  // namespace etstream::python
