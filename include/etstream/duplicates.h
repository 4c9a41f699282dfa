// SPDX-License-Identifier: BSD-3-Clause
//
// Finds what a file contains more than once.
//
//   const auto found = etstream::find_duplicates(etstream::ByteSource::file("model.pte").value());
//   if (!found) return found.error();
//   for (const auto& group : *found) std::printf("%s\n", group.paths.front().c_str());
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// Payloads with equal bytes at different places.
struct Duplicates {
  std::uint64_t size = 0;              // of each, in bytes
  std::vector<std::string> paths;      // of the pieces: "forward/delegate 0", "named/linear.weight"
  std::vector<std::uint64_t> offsets;  // of each in the file, in bytes

  /// Returns how many bytes the file would save with one copy.
  [[nodiscard]] std::uint64_t wasted() const noexcept { return size * (paths.size() - 1); }
};

/// Finds duplicates among what read_contents() returns for a file of any format that etstream knows, except
/// tables and padding; sorts them by wasted bytes, largest first. What lies in a repeated payload is counted
/// with it and not by itself, so that all wasted bytes may be added up. Reads the payloads that share their
/// size with another, and compares their bytes, in 512 KiB of memory. Errors: those of read_contents();
/// kTooLarge for payloads that share their bytes many times.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<Duplicates>> find_duplicates(const ByteSource& file);

}  // namespace etstream
