// SPDX-License-Identifier: BSD-3-Clause
//
// Sources that have equal bytes, found by reading them. Errors are those of reading.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream {

/// Returns the offset of the first byte that differs, or the end of the shorter source; nothing if both are
/// the same. Does not read sources that are at one place.
[[nodiscard]] Result<std::optional<std::uint64_t>> first_difference(const ByteSource& a, const ByteSource& b);

/// Finds first differences. Bytes of one source are read once for each distance to the bytes of the other
/// that they are compared with, in however many pairs they lie: pairs may share places, and overlap.
class Comparisons {
 public:
  /// Does the same as first_difference().
  [[nodiscard]] Result<std::optional<std::uint64_t>> first_difference(const ByteSource& a,
                                                                      const ByteSource& b);
  /// Returns how many bytes were found to be equal by reading them.
  [[nodiscard]] std::uint64_t compared() const noexcept { return compared_; }

 private:
  /// Bytes of two storages that are at one distance from each other.
  struct Aligned {
    struct Run {
      std::uint64_t end = 0;  // up to where the bytes are equal
      bool ends_in_difference = false;
    };
    ByteSource a;  // which keeps its storage from being that of another source
    ByteSource b;
    std::map<std::uint64_t, Run> runs = {};  // by where they begin in the storage of a
  };
  std::map<std::tuple<const ByteStorage*, const ByteStorage*, std::uint64_t>, Aligned> known_;
  std::uint64_t compared_ = 0;
};

[[nodiscard]] Result<bool> same_bytes(const ByteSource& a, const ByteSource& b);

/// Returns whether writing `plan` gives `file`. An extent that is a range of `file` at its own offset counts
/// as equal; all else is read and compared.
[[nodiscard]] Result<bool> gives_same_bytes(const FilePlan& plan, const ByteSource& file);

/// Returns for each of `sources` the index of the first that has equal bytes: its own if none before it has.
/// Empty sources are equal. Sources at one place are equal without being read. A source is read only if
/// another place has the same size. Then both its ends are read, and sources with equal ends are read once
/// side by side. A source that differs from the first of them in the middle is read once or twice more.
/// Error: kTooLarge if sources that overlap would have the bytes of a storage read more than 4 times on
/// average.
[[nodiscard]] Result<std::vector<std::uint32_t>> first_equal(const std::vector<ByteSource>& sources);

}  // namespace etstream
