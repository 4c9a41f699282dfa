// SPDX-License-Identifier: BSD-3-Clause
#include "cli/writer_options.h"

#include <string>

namespace etstream::cli {
namespace {

constexpr const char* kVersion = "VERSION";

/// An option whose text `parse` takes to `out`.
template <class T>
void add(CLI::App& command, const std::string& name, const std::string& description, std::optional<T>& out,
         Result<T> (*parse)(std::string_view)) {
  command
      .add_option(
          name,
          [&out, name, parse](const CLI::results_t& given) {
            const Result<T> found = parse(given.front());
            if (!found) throw CLI::ValidationError(name, found.error().message);
            out = *found;
            return true;
          },
          description)
      ->type_name(kVersion);
}

}  // namespace

void add_as_of(CLI::App& command, std::optional<ExecutorchRelease>& as_of) {
  add(command, "--as-of",
      "Write the bytes that this release of ExecuTorch writes, from 1.0 to " + name_of(kLatestRelease), as_of,
      executorch_release);
}

void add_flatbuffers(CLI::App& command, std::optional<VtableSharing>& vtables) {
  add(command, "--flatbuffers",
      "Write the bytes that ExecuTorch writes with this version of Python's flatbuffers", vtables,
      vtable_sharing);
}

}  // namespace etstream::cli
