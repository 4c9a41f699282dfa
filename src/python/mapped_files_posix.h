// SPDX-License-Identifier: BSD-3-Clause
//
// Files as memory: the file that memory is a mapping of, and, in the module, a file's bytes as a bytes
// object.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

#include "etstream/byte_source.h"

namespace etstream::python {

/// Returns whether some of `memory`, mapped as it has been since `since`, is a mapping of `file`. If the last
/// list of mappings is older than that, makes a new one. Returns false if the system does not list them.
[[nodiscard]] bool is_mapping_of(std::span<const std::byte> memory, const FileIdentity& file,
                                 std::chrono::steady_clock::time_point since);

}  // namespace etstream::python
