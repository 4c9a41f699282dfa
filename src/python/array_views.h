// SPDX-License-Identifier: BSD-3-Clause
//
// The parts that a class of tensors has in common with other libraries' arrays: its shape, and its elements
// as theirs.
#pragma once

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "python/bindings.h"

namespace etstream::python {

template <class Integer>
Shape shape_of(const std::vector<Integer>& sizes) {
  return nb::tuple(nb::cast(sizes));
}

/// Adds these to a class that has `dtype`, `sizes`, `dim_order` and `data`, of which the first three are None
/// for data that is no tensor's.
template <class Class>
void def_array_views(Class& tensors) {
  const auto call = [](const char* function) {
    return [function](nb::handle self) -> Any {
      return nb::object(nb::module_::import_("etstream._values").attr(function)(self));
    };
  };
  tensors
      .def(
          "numpy", call("numpy_array"),
          "The elements as a NumPy array, where they lie: of a file, mapped, and private, so that writing to "
          "the array leaves the file as it is, which is not to change meanwhile; of a read-only buffer, "
          "read-only. A copy where they are in neither, or not aligned. Types that NumPy lacks, such as "
          "bfloat16, take the package ml_dtypes. Raises ImportError, UnsupportedError, CorruptError.")
      .def("torch", call("torch_tensor"),
           "The elements as a torch tensor on the CPU, where they lie, as numpy() has it; what lies in a "
           "read-only buffer is not to be written to. Raises ImportError, UnsupportedError, CorruptError.")
      .def(
          "__dlpack__",
          [](nb::handle self, const nb::kwargs& options) {
            return nb::object(nb::module_::import_("etstream._values").attr("dlpack")(self, **options));
          },
          nb::arg("options"), nb::sig("def __dlpack__(self, **options: typing.Any) -> typing.Any"),
          "For from_dlpack() of other libraries, by way of torch or NumPy.")
      .def(
          "__dlpack_device__", [](nb::handle) { return std::pair(1, 0); }, "The CPU.");
}

}  // namespace etstream::python
