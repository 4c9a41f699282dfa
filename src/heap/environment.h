// SPDX-License-Identifier: BSD-3-Clause
//
// How `etstream run` tells the library that it has loaded before others what the heap is to be. Sizes are in
// bytes, as decimal numbers.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace etstream::heap {

inline constexpr const char* kFolderVariable = "ETSTREAM_HEAP_FOLDER";
inline constexpr const char* kLimitVariable = "ETSTREAM_HEAP_LIMIT";
inline constexpr const char* kFromVariable = "ETSTREAM_HEAP_FROM";
/// A file that holds a TreeUse.
inline constexpr const char* kReportVariable = "ETSTREAM_HEAP_REPORT";

/// Partitioners of ExecuTorch note, for each node of a graph, all that depends on it: sets of tens of KiB,
/// hundreds of MiB together.
inline constexpr std::uint64_t kDefaultFrom = 16 << 10;

/// What a variable says, or `otherwise` where it is not set or no number.
[[nodiscard]] inline std::uint64_t number_in_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return otherwise;
  std::uint64_t number = otherwise;
  std::from_chars(text, text + std::strlen(text), number);
  return number;
}

}  // namespace etstream::heap
