// SPDX-License-Identifier: BSD-3-Clause
//
// RangeHasher: the hashes of ranges of a file whose bytes pass once, from the first to the last.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/base/hashes.h"
#include "etstream/sink.h"

namespace etstream {

/// Memory: 16 bytes a range, and a hasher for each that is passing. Used by one thread at a time.
class RangeHasher {
 public:
  /// `ranges` are by offset, and outlive the hasher.
  explicit RangeHasher(const std::vector<Trailer::Range>& ranges) : ranges_(ranges), hashes_(ranges.size()) {}

  /// Takes the bytes from position() on.
  void pass(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  /// Returns a hash for each range. To be called once all ranges have passed.
  [[nodiscard]] const std::vector<ContentHash>& hashes() const noexcept { return hashes_; }

 private:
  const std::vector<Trailer::Range>& ranges_;
  std::vector<ContentHash> hashes_;
  std::map<std::size_t, ContentHasher> passing_;  // by the index of their range
  std::size_t next_ = 0;                          // the first range that is not reached yet
  std::uint64_t position_ = 0;
};

inline void RangeHasher::pass(std::span<const std::byte> bytes) {
  const std::uint64_t end = position_ + bytes.size();
  while (next_ < ranges_.size() && ranges_[next_].offset <= end) passing_.try_emplace(next_++);
  for (auto passing = passing_.begin(); passing != passing_.end();) {
    const Trailer::Range& range = ranges_[passing->first];
    const std::uint64_t range_end = range.offset + range.size;
    const std::uint64_t from = std::max(range.offset, position_);
    const std::uint64_t to = std::min(range_end, end);
    if (from < to) passing->second.update(bytes.subspan(from - position_, to - from));
    if (range_end > end) {
      ++passing;
      continue;
    }
    hashes_[passing->first] = passing->second.hash();
    passing = passing_.erase(passing);
  }
  position_ = end;
}

}  // namespace etstream
