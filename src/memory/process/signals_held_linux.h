// SPDX-License-Identifier: BSD-3-Clause
//
// Signals, held back while a command runs.
#pragma once

#include <signal.h>

#include <cstdint>
#include <ctime>
#include <optional>

namespace etstream {

/// Blocks all signals while it lives, for wait(). Blocks SIGCHLD too, even if the process ignored it.
class SignalsHeld {
 public:
  SignalsHeld() : child_before_(::signal(SIGCHLD, SIG_DFL)) {
    ::sigfillset(&all_);
    ::sigprocmask(SIG_SETMASK, &all_, &before_);
  }
  ~SignalsHeld() { release(); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

  void release() const {
    ::signal(SIGCHLD, child_before_);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  /// Returns the next signal, or nothing if none comes for so many nanoseconds.
  [[nodiscard]] std::optional<::siginfo_t> wait(std::int64_t nanoseconds) const {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const ::timespec pause{.tv_sec = nanoseconds / kSecond, .tv_nsec = nanoseconds % kSecond};
    ::siginfo_t found{};
    if (::sigtimedwait(&all_, &found, &pause) < 0) return std::nullopt;
    return found;
  }

 private:
  void (*child_before_)(int);
  ::sigset_t all_{};
  ::sigset_t before_{};
};

}  // namespace etstream
