// SPDX-License-Identifier: BSD-3-Clause
//
// A progress bar on standard error, for work that takes over a second, if standard error is a terminal.
#pragma once

#include <chrono>
#include <cstdint>

namespace etstream::cli {

class ProgressBar {
 public:
  ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// Wipes the bar away.
  ~ProgressBar();

  /// Shows the bytes done and in all. May be called at any rate.
  void show(std::uint64_t done, std::uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  const bool enabled_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_shown_ = start_;
  bool visible_ = false;
};

}  // namespace etstream::cli
