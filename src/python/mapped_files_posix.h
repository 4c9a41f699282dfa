// SPDX-License-Identifier: BSD-3-Clause
//
// Files as memory: which file memory is a mapping of, and, in the module, a file's bytes as a bytes object.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

#include "etstream/byte_source.h"

namespace etstream::python {

/// Whether some of `memory`, mapped as it has been since `since`, is a mapping of `file`. What is mapped is
/// listed again where the last list is older than that. False where the system does not list it.
[[nodiscard]] bool is_mapping_of(std::span<const std::byte> memory, const FileIdentity& file,
                                 std::chrono::steady_clock::time_point since);

}  // namespace etstream::python
