// SPDX-License-Identifier: BSD-3-Clause
//
// Samples of memory over time, in a bounded number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "process/process_figures.h"

namespace etstream {

/// Several processes together have no high_water.
struct MemorySample : ProcessMemory {
  std::uint64_t time = 0;     // in nanoseconds
  std::uint64_t spilled = 0;  // in blocks of heaps, in bytes

  /// Raises all but the time to that of `other`, where it is larger.
  void raise(const MemorySample& other) noexcept;
};

class MemorySeries {
 public:
  static constexpr std::size_t kMost = 4096;

  /// Adds a sample that is not older than the last one. When there are kMost, each two neighbours become one,
  /// with the larger figures of both.
  void add(const MemorySample& sample);
  /// The largest figures of the samples in [begin, end], and of those that reach into it.
  [[nodiscard]] MemorySample most(std::uint64_t begin, std::uint64_t end) const noexcept;
  [[nodiscard]] const std::vector<MemorySample>& samples() const noexcept { return samples_; }

 private:
  std::vector<MemorySample> samples_;
  std::size_t each_ = 1;   // how many added samples make one
  std::size_t added_ = 0;  // how many the last one is made of
};

}  // namespace etstream
