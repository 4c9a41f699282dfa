// SPDX-License-Identifier: BSD-3-Clause
#include "profile/memory_series.h"

#include <algorithm>

namespace etstream {

void MemorySample::raise(const MemorySample& other) noexcept {
  ProcessMemory::raise(other);
  spilled = std::max(spilled, other.spilled);
}

void MemorySeries::add(const MemorySample& sample) {
  if (!samples_.empty() && added_ < each_) {
    samples_.back().raise(sample);
    ++added_;
    return;
  }
  if (samples_.size() == kMost) {
    for (std::size_t i = 0; i < kMost / 2; ++i) {
      samples_[i] = samples_[2 * i];
      samples_[i].raise(samples_[2 * i + 1]);
    }
    samples_.resize(kMost / 2);
    each_ *= 2;
  }
  samples_.push_back(sample);
  added_ = 1;
}

MemorySample MemorySeries::most(std::uint64_t begin, std::uint64_t end) const noexcept {
  MemorySample out;
  const auto later = [](std::uint64_t time, const MemorySample& sample) { return time < sample.time; };
  auto at = std::upper_bound(samples_.begin(), samples_.end(), begin, later);
  // A sample made of several may reach into the time.
  if (each_ > 1 && at != samples_.begin()) --at;
  for (; at != samples_.end() && at->time <= end; ++at) out.raise(*at);
  return out;
}

}  // namespace etstream
