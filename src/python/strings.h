// SPDX-License-Identifier: BSD-3-Clause
//
// Strings on their way between the library and Python, in place of nanobind/stl/string.h. Strings of the
// library contain paths, and names from files, and neither need be UTF-8. Bytes that are not UTF-8 come as
// os.fsdecode gives them, as surrogates, and go back as they were.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

template <>
struct nanobind::detail::type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle object, std::uint32_t, cleanup_list*) noexcept {
    if (PyUnicode_Check(object.ptr()) == 0) return false;
    const auto bytes =
        steal<nanobind::bytes>(PyUnicode_AsEncodedString(object.ptr(), "utf-8", "surrogateescape"));
    if (!bytes.is_valid()) {
      PyErr_Clear();
      return false;
    }
    value.assign(bytes.c_str(), bytes.size());
    return true;
  }

  static handle from_cpp(const std::string& words, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_DecodeUTF8(words.data(), static_cast<Py_ssize_t>(words.size()), "surrogateescape");
  }
};
