// SPDX-License-Identifier: BSD-3-Clause
#include "layout/range_hasher.h"

#include <algorithm>

namespace etstream {

RangeHasher::RangeHasher(const std::vector<Trailer::Range>& ranges)
    : ranges_(ranges), hashes_(ranges.size()) {}

void RangeHasher::pass(std::span<const std::byte> bytes) {
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
