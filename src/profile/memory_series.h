// SPDX-License-Identifier: BSD-3-Clause
//
// What was in memory over time, in room that does not grow with the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace etstream {

/// In bytes; what is not of one process has no high_water.
struct MemorySample {
  std::uint64_t time = 0;  // in nanoseconds
  std::uint64_t high_water = 0;
  std::uint64_t resident = 0;
  std::uint64_t anonymous = 0;
  std::uint64_t file = 0;
  std::uint64_t spilled = 0;

  /// Takes what is more in `other`; the time stays.
  void raise(const MemorySample& other) noexcept;
};

class MemorySeries {
 public:
  static constexpr std::size_t kMost = 4096;

  /// Of a time that is not before the one added last. Where there is no more room, each two neighbours become
  /// one that has the most of both.
  void add(const MemorySample& sample);
  /// The most there was in [begin, end], and in the samples that reach into it.
  [[nodiscard]] MemorySample most(std::uint64_t begin, std::uint64_t end) const noexcept;
  [[nodiscard]] const std::vector<MemorySample>& samples() const noexcept { return samples_; }

 private:
  std::vector<MemorySample> samples_;
  std::size_t each_ = 1;   // how many samples were added to one
  std::size_t added_ = 0;  // to the last one
};

}  // namespace etstream
