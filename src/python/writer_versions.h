// SPDX-License-Identifier: BSD-3-Clause
//
// The versions that files are written as, from the text that Python gives.
#pragma once

#include <optional>
#include <string>

#include "etstream/writer_version.h"
#include "python/errors.h"

namespace etstream::python {

/// None for None. Raises InvalidArgumentError for what is no release.
inline std::optional<ExecutorchRelease> release_of(const std::optional<std::string>& as_of) {
  if (!as_of) return std::nullopt;
  return value_or_raise(executorch_release(*as_of));
}

/// None for None. Raises InvalidArgumentError for what is no version.
inline std::optional<VtableSharing> vtables_of(const std::optional<std::string>& flatbuffers) {
  if (!flatbuffers) return std::nullopt;
  return value_or_raise(vtable_sharing(*flatbuffers));
}

/// The latest of what is None.
inline WriterVersion writer_of(const std::optional<std::string>& as_of,
                               const std::optional<std::string>& flatbuffers) {
  const WriterVersion latest;
  return {release_of(as_of).value_or(latest.release), vtables_of(flatbuffers).value_or(latest.vtables)};
}

}  // namespace etstream::python
