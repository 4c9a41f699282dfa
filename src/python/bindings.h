// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of the module, a source file each, and what their bindings have in common.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "etstream/sink.h"
#include "etstream/tensor.h"
#include "present/json.h"
#include "python/errors.h"

/// Takes strings to Python and back, in place of nanobind/stl/string.h. Strings of the library contain paths,
/// and names from files, and neither need be UTF-8. Bytes that are not UTF-8 come as os.fsdecode gives them,
/// as surrogates, and go back as they were.
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

namespace etstream::python {

/// A type as Python's signatures spell it.
template <std::size_t kLength>
struct Annotation {
  constexpr Annotation(const char (&words)[kLength]) {  // NOLINT: it stands for them
    for (std::size_t i = 0; i < kLength; ++i) text[i] = words[i];
  }
  char text[kLength] = {};
};

/// Any object, annotated as `kType`: its user checks what it is.
template <Annotation kType>
class Annotated : public nb::object {
 public:
  static constexpr auto Name = nb::detail::const_name(kType.text);  // NOLINT: nanobind's name for it
  using nb::object::object;
  Annotated(nb::object it) : nb::object(std::move(it)) {}  // NOLINT: it is the same object
  static bool check_(nb::handle) { return true; }
};

using SourceLike = Annotated<"etstream._types.SourceLike">;
using SourcesLike = Annotated<"collections.abc.Iterable[etstream._types.SourceLike]">;
using PathLike = Annotated<"str | os.PathLike[str]">;
using PathsLike = Annotated<"collections.abc.Iterable[str | os.PathLike[str]]">;
using OutputLike = Annotated<"etstream._types.OutputLike">;
using Any = Annotated<"typing.Any">;
using Options = Annotated<"collections.abc.Mapping[str, typing.Any]">;
using Report = Annotated<"dict[str, typing.Any]">;
using LimitLike = Annotated<"int | str">;
using Key = Annotated<"str">;
using Names = Annotated<"collections.abc.Iterator[str]">;
using Shape = Annotated<"tuple[int, ...]">;

/// Returns a report as dicts, lists, texts and numbers, as etstream.results takes it. Texts keep bytes that
/// are not UTF-8.
[[nodiscard]] Report in_python(const Json& report);

/// Returns a Table of results of the class `kind` of etstream.results, which have `data` and what `describe`
/// returns for each item.
template <class Items, class Describe>
nb::object table_of(const char* kind, const Items& items, Describe describe) {
  const nb::object results = nb::module_::import_("etstream.results");
  nb::list rows;
  for (const auto& item : items) {
    Report row = in_python(describe(item));
    row["data"] = item.data;
    rows.append(results.attr(kind).attr("_of")(row));
  }
  return results.attr("Table")(rows);
}

/// Returns an iterator over the names in `items`, for a mapping.
template <class Items>
Names names_of(const Items& items) {
  nb::list out;
  for (const auto& item : items) out.append(item.name);
  return nb::iter(out);
}

/// Returns the name that a key is; nothing for a key that is no name, such as a number, which a mapping does
/// not have.
inline std::optional<std::string> name_of_key(const Key& key) {
  std::string name;
  return nb::try_cast(key, name) ? std::optional(std::move(name)) : std::nullopt;
}

/// Quotes a key for messages.
inline std::string quoted_key(const Key& key) {
  const auto name = name_of_key(key);
  return name ? quote(*name) : nb::cast<std::string>(nb::repr(key));
}

/// Returns the type of this name. Raises InvalidArgumentError for another name.
inline ScalarType type_named(const std::string& name) {
  if (const auto type = find_scalar_type(name)) return *type;
  raise(make_error(ErrorCode::kInvalidArgument,
                   "dtype: expected a type that ExecuTorch has, such as bfloat16, found {}", quote(name)));
}

/// Returns one of the options that a function has as a dict of all. Raises TypeError for another type.
template <class T>
T option(const Options& options, const char* name) {
  T out{};
  const nb::object given = options[name];
  if (nb::try_cast(given, out)) return out;
  throw nb::type_error(text("{}: found {}", name, nb::repr(given).c_str()).c_str());
}

/// Returns an alignment in bytes, which is given as an int or a str; nothing for None. Raises TypeError,
/// InvalidArgumentError.
inline std::optional<std::uint32_t> alignment_option(const Options& options, const char* name) {
  const nb::object arguments = nb::module_::import_("etstream._arguments");
  const nb::object bytes = arguments.attr("alignment")(name, options[name]);
  return bytes.is_none() ? std::nullopt : std::optional(nb::cast<std::uint32_t>(bytes));
}

/// Makes an __init__ of the class that `function` returns.
template <class T, class... Arguments>
auto constructor(T (*function)(Arguments...)) {
  return [function](T* self, Arguments... arguments) {
    new (self) T(function(std::forward<Arguments>(arguments)...));
  };
}

/// Returns the one of two values that the argument called `argument` asks for by its name. Raises
/// InvalidArgumentError for another name.
template <class T>
T choice(const char* argument, const std::string& name, std::pair<std::string_view, T> one,
         std::pair<std::string_view, T> other) {
  if (name == one.first) return one.second;
  if (name == other.first) return other.second;
  raise(make_error(ErrorCode::kInvalidArgument, "{}: expected '{}' or '{}', found {}", argument, one.first,
                   other.first, quote(name)));
}

/// Returns the release as which files are written; nothing for None. Raises InvalidArgumentError for an
/// unknown release.
inline std::optional<ExecutorchRelease> release_of(const std::optional<std::string>& as_of) {
  if (!as_of) return std::nullopt;
  return value_or_raise(executorch_release(*as_of));
}

/// Returns the sharing of vtables; nothing for None. Raises InvalidArgumentError for an invalid version.
inline std::optional<VtableSharing> vtables_of(const std::optional<std::string>& flatbuffers) {
  if (!flatbuffers) return std::nullopt;
  return value_or_raise(vtable_sharing(*flatbuffers));
}

/// Returns the version to write, with the latest in place of None.
inline WriterVersion writer_of(const std::optional<std::string>& as_of,
                               const std::optional<std::string>& flatbuffers) {
  const WriterVersion latest;
  return {release_of(as_of).value_or(latest.release), vtables_of(flatbuffers).value_or(latest.vtables)};
}

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
      return nb::object(nb::module_::import_("etstream._arrays").attr(function)(self));
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
            return nb::object(nb::module_::import_("etstream._arrays").attr("dlpack")(self, **options));
          },
          nb::arg("options"), nb::sig("def __dlpack__(self, **options: typing.Any) -> typing.Any"),
          "For from_dlpack() of other libraries, by way of torch or NumPy.")
      .def(
          "__dlpack_device__", [](nb::handle) { return std::pair(1, 0); }, "The CPU.");
}

void bind_bundles(nb::module_& module);
void bind_checkpoints(nb::module_& module);
void bind_containers(nb::module_& module);
void bind_file_plans(nb::module_& module);
void bind_flatbuffer_texts(nb::module_& module);
void bind_mapped_files(nb::module_& module);
void bind_programs(nb::module_& module);
void bind_reports(nb::module_& module);
void bind_sources(nb::module_& module);

}  // namespace etstream::python
