// SPDX-License-Identifier: BSD-3-Clause
//
// RangeHasher: the hashes of ranges of a file whose bytes pass once, from the first to the last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/content_hash.h"
#include "etstream/file_plan.h"

namespace etstream {

/// Memory: 16 bytes a range, and a hasher for each that is passing. Used by one thread at a time.
class RangeHasher {
 public:
  /// `ranges` are by offset, and outlive the hasher.
  explicit RangeHasher(const std::vector<Trailer::Range>& ranges);

  /// The bytes from position() on.
  void pass(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  /// One for each range. To be called once all ranges have passed.
  [[nodiscard]] const std::vector<ContentHash>& hashes() const noexcept { return hashes_; }

 private:
  const std::vector<Trailer::Range>& ranges_;
  std::vector<ContentHash> hashes_;
  std::map<std::size_t, ContentHasher> passing_;  // by the index of their range
  std::size_t next_ = 0;                          // the first range that is not reached yet
  std::uint64_t position_ = 0;
};

}  // namespace etstream
