// SPDX-License-Identifier: BSD-3-Clause
//
// The terminal: its signals, and a progress bar.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace etstream::cli {

/// The descriptors of standard input and output.
inline constexpr int kStandardInput = 0;
inline constexpr int kStandardOutput = 1;

[[nodiscard]] bool standard_output_is_a_terminal();
[[nodiscard]] bool standard_error_is_a_terminal();
/// Returns whether a path, with links followed, is the file, the pipe or the terminal that standard output
/// goes to.
[[nodiscard]] bool leads_to_standard_output(const std::string& path);

/// Catches interrupts while it lives: Ctrl-C and a request to end (SIGINT, SIGTERM, SIGHUP) only set a mark,
/// so that the work can stop in good order. The second one ends the process as usual. Only one may exist at a
/// time.
class CaughtInterrupts {
 public:
  CaughtInterrupts();
  CaughtInterrupts(const CaughtInterrupts&) = delete;
  CaughtInterrupts& operator=(const CaughtInterrupts&) = delete;
  ~CaughtInterrupts();
};
[[nodiscard]] bool interrupted();
/// Ends the process by the signal that was caught, so that a shell sees what happened.
void die_of_interrupt();

/// Ends the process by a signal that has ended another one.
void die_of(int signal);

/// Makes a write fail when its reader has gone away, or at a limit to the size of files. By default the
/// signals SIGPIPE and SIGXFSZ end the process silently, as is right for one that only reports.
void let_writes_fail();

/// Opens standard input, output and error if the parent closed them, on something that can't be read or
/// written. Otherwise the next file to be opened would take their place, and be written to.
void occupy_standard_descriptors();

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
