// SPDX-License-Identifier: BSD-3-Clause
//
// The environment variables by which `etstream run` configures the library that it has loaded before others.
// Sizes are decimal numbers of bytes.
#pragma once

#include <cstdint>

namespace etstream::heap {

inline constexpr const char* kFolderVariable = "ETSTREAM_HEAP_FOLDER";
inline constexpr const char* kLimitVariable = "ETSTREAM_HEAP_LIMIT";
inline constexpr const char* kFromVariable = "ETSTREAM_HEAP_FROM";
/// A file that holds a TreeUse.
inline constexpr const char* kReportVariable = "ETSTREAM_HEAP_REPORT";

/// The default is so small because ExecuTorch's partitioners keep, for each node of a graph, the set of all
/// nodes that depend on it: tens of KiB each, hundreds of MiB together.
inline constexpr std::uint64_t kDefaultFrom = 16 << 10;

}  // namespace etstream::heap
