// SPDX-License-Identifier: BSD-3-Clause
//
// A process whose system calls are watched and may be changed, by ptrace. Linux 5.3, x86-64 and aarch64.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "write_calls.h"

/// The point at which a process has stopped.
struct Stop {
  enum class Kind { kEntry, kExit, kOther, kEnded };
  Kind kind = Kind::kOther;
  SystemCall call;                  // at an entry
  std::int64_t result = 0;          // at an exit
  int signal = 0;                   // at kOther: the signal to pass on, 0 for none
  std::optional<int> exit_code;     // at kEnded, unless
  std::optional<int> death_signal;  // a signal ended it
};

/// A process with one thread. It is killed if the tracer ends.
class Tracee {
 public:
  /// Starts `command`; it is stopped before its first instruction.
  explicit Tracee(const std::vector<std::string>& command);

  [[nodiscard]] pid_t id() const { return id_; }
  /// Lets it run up to the next stop; `signal` reaches it on the way.
  Stop run(int signal = 0);

  /// Changes an argument. To be called at an entry.
  void set_argument(std::size_t index, std::uint64_t value) const;
  /// Prevents the call. To be called at an entry.
  void skip_call() const;
  /// Changes the result of the call. To be called at an exit.
  void set_result(std::int64_t value) const;

 private:
  pid_t id_;
};
