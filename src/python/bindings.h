// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of the module, a source file each, and what their bindings have in common.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "etstream/writer_version.h"
#include "python/errors.h"
#include "python/strings.h"

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
using Report = Annotated<"dict[str, typing.Any]">;
using Key = Annotated<"str">;
using Names = Annotated<"collections.abc.Iterator[str]">;
using Shape = Annotated<"tuple[int, ...]">;

/// Returns a report as dicts, lists, texts and numbers, as etstream.results takes it. Texts keep bytes that
/// are not UTF-8.
[[nodiscard]] Report in_python(const nlohmann::ordered_json& report);

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

void bind_bundles(nb::module_& module);
void bind_checkpoints(nb::module_& module);
void bind_embedded_files(nb::module_& module);
void bind_fat_containers(nb::module_& module);
void bind_file_plans(nb::module_& module);
void bind_flatbuffer_texts(nb::module_& module);
void bind_heap(nb::module_& module);
void bind_mapped_files(nb::module_& module);
void bind_native_packages(nb::module_& module);
void bind_packed_files(nb::module_& module);
void bind_programs(nb::module_& module);
void bind_reports(nb::module_& module);
void bind_reweighting(nb::module_& module);
void bind_sources(nb::module_& module);

}  // namespace etstream::python
