// SPDX-License-Identifier: BSD-3-Clause
//
// Samples of memory over time, in a bounded number.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/process/process_figures.h"

namespace etstream {

/// A sample. For several processes together it has no high_water.
struct MemorySample : ProcessMemory {
  std::uint64_t time = 0;     // in nanoseconds
  std::uint64_t spilled = 0;  // in blocks of heaps, in bytes

  /// Raises all figures except the time to those of `other`, if they are larger.
  void raise_to(const MemorySample& other) noexcept {
    ProcessMemory::raise_to(other);
    spilled = std::max(spilled, other.spilled);
  }
};

class MemorySeries {
 public:
  static constexpr std::size_t kMost = 4096;

  /// Adds a sample, not older than the last. When there are kMost, each pair becomes one sample with the
  /// larger figures.
  void add(const MemorySample& sample) {
    if (!samples_.empty() && added_ < each_) {
      samples_.back().raise_to(sample);
      ++added_;
      return;
    }
    if (samples_.size() == kMost) {
      for (std::size_t i = 0; i < kMost / 2; ++i) {
        samples_[i] = samples_[2 * i];
        samples_[i].raise_to(samples_[2 * i + 1]);
      }
      samples_.resize(kMost / 2);
      each_ *= 2;
    }
    samples_.push_back(sample);
    added_ = 1;
  }
  /// Returns the largest figures of the samples in (begin, end], and of those that reach into it.
  [[nodiscard]] MemorySample most(std::uint64_t begin, std::uint64_t end) const noexcept {
    MemorySample out;
    const auto later = [](std::uint64_t time, const MemorySample& sample) { return time < sample.time; };
    auto at = std::upper_bound(samples_.begin(), samples_.end(), begin, later);
    // A sample made of several may reach into this time.
    if (each_ > 1 && at != samples_.begin()) --at;
    for (; at != samples_.end() && at->time <= end; ++at) out.raise_to(*at);
    return out;
  }
  [[nodiscard]] const std::vector<MemorySample>& samples() const noexcept { return samples_; }

 private:
  std::vector<MemorySample> samples_;
  std::size_t each_ = 1;   // how many added samples make one
  std::size_t added_ = 0;  // how many the last one is made of
};

}  // namespace etstream
