// SPDX-License-Identifier: BSD-3-Clause
//
// The processes of a command, watched over time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
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

/// Samples of memory over time, in a bounded number.
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

struct WatchedProcess {
  int process = 0;
  int parent = 0;
  std::optional<std::size_t> parent_at;  // where its parent is among the processes, if it is there
  std::string command;
  std::uint64_t begin = 0;  // when it was seen first, in nanoseconds
  std::uint64_t end = 0;    // and last
  bool runs = true;
  bool has_children = false;
  bool is_copy = true;          // as long as it has not called exec
  ProcessMemory of_others;      // the part of its memory that counts for processes that share it
  std::uint64_t inherited = 0;  // of the anonymous memory that it was seen with first, in bytes
  std::uint64_t anonymous = 0;  // as it was looked at last, in bytes
  std::uint64_t spilled = 0;    // in blocks of its heap, likewise
  ProcessWork work;
  MemorySeries memory;
  MemorySeries with_descendants;  // of it and the processes below it; empty if it never had any
};

/// Returns the growth over `most` bytes that is worth a look: 64 MiB, or 2 % if that is more.
[[nodiscard]] constexpr std::uint64_t step_over(std::uint64_t most) noexcept {
  return std::max(std::uint64_t{64} << 20, most / 50);
}

class ProcessWatch {
 public:
  /// Looks at all processes that descend from `root`, which is not one of them, at a time in nanoseconds.
  /// Looks for new ones every fifth time, and each of the first times. `spilled` tells, by process, how many
  /// bytes lie in their heaps; `shared`, if it knows, how much shared memory there is, which a process may
  /// map or not.
  void look(int root, std::uint64_t now, const std::map<int, std::uint64_t>& spilled,
            const std::function<std::optional<std::uint64_t>()>& shared = {});

  [[nodiscard]] const std::vector<WatchedProcess>& processes() const noexcept { return processes_; }
  /// Returns whether the process was there at the last look. Any process may be asked for.
  [[nodiscard]] bool runs(int process) const noexcept;
  /// Returns whether the process was there at any look.
  [[nodiscard]] bool has_seen(int process) const noexcept;
  /// Returns the samples of all processes together.
  [[nodiscard]] const MemorySeries& total() const noexcept { return total_; }

 private:
  /// Finds the processes below `parent`, which is at `place` among the processes, unless it is the root.
  void find_children(int parent, std::optional<std::size_t> place, std::uint64_t now);
  [[nodiscard]] std::optional<std::size_t> place_of(int process) const noexcept;
  /// Finds which part of their memory, as it was `seen`, processes share.
  void find_shares(const std::vector<ProcessMemory>& seen, std::uint64_t now);
  /// Takes the memory of each process, and adds the sums of those below each, and of all. Shared memory that
  /// no process maps counts for each of them.
  void add_sums(std::vector<MemorySample> sums, std::optional<std::uint64_t> shared, std::uint64_t spilled,
                std::uint64_t now);

  std::vector<WatchedProcess> processes_;  // each behind its parent
  MemorySeries total_;
  unsigned looks_ = 0;
  std::uint64_t next_shares_ = 0;  // when find_shares() may ask the kernel again
};

}  // namespace etstream
