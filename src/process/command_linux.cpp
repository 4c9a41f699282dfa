// SPDX-License-Identifier: BSD-3-Clause
#include "process/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <optional>
#include <system_error>

#include "base/text.h"
#include "base/try.h"

namespace etstream {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kShortestPause = 10'000'000;  // nanoseconds
constexpr std::int64_t kLongestPause = 100'000'000;
/// Of this time it takes one part to look, at most: 0.8 % of a processor.
constexpr std::int64_t kTimePerLook = 125;
/// It looks at first as often as it can, whatever that takes.
constexpr std::int64_t kAhead = kSecond;

std::int64_t nanoseconds_of(::clockid_t clock) {
  ::timespec time{};
  ::clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * kSecond + time.tv_nsec;
}

/// How long to wait between looks.
class Pauses {
 public:
  [[nodiscard]] std::int64_t next() const {
    const std::int64_t taken = nanoseconds_of(CLOCK_PROCESS_CPUTIME_ID) - taken_before_;
    const std::int64_t passed = nanoseconds_of(CLOCK_MONOTONIC) - begin_;
    return std::clamp(kTimePerLook * taken - passed - kAhead, kShortestPause, kLongestPause);
  }

 private:
  std::int64_t taken_before_ = nanoseconds_of(CLOCK_PROCESS_CPUTIME_ID);
  std::int64_t begin_ = nanoseconds_of(CLOCK_MONOTONIC);
};

/// For as long as it lives, all signals wait to be looked at, also that a child has ended if that was
/// ignored.
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
  /// The next one, or nothing if none comes for so many nanoseconds.
  [[nodiscard]] std::optional<::siginfo_t> wait(std::int64_t nanoseconds) const {
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

/// How the child has ended, if it has. One that stops stops this process, until it goes on.
std::optional<CommandEnd> end_of(::pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, WNOHANG | WUNTRACED) == child) {
    if (WIFEXITED(status)) return CommandEnd{WEXITSTATUS(status), 0};
    if (WIFSIGNALED(status)) return CommandEnd{0, WTERMSIG(status)};
    // Whoever stops the command alone goes on with it alone.
    if (WSTOPSIG(status) == SIGSTOP) continue;
    ::raise(SIGSTOP);
    ::kill(child, SIGCONT);
  }
  return std::nullopt;
}

/// Starts the command, which has the signals as they were; its process, or why it could not be started.
Result<::pid_t> start(const std::vector<std::string>& command, const SignalsHeld& signals) {
  std::array<int, 2> failure{};
  if (::pipe2(failure.data(), O_CLOEXEC) != 0) {
    return Error{ErrorCode::kOutOfMemory,
                 text("cannot start a process: {}", std::generic_category().message(errno)), errno};
  }
  const ::pid_t child = ::fork();
  if (child == 0) {
    signals.release();
    const int failed = become(command).system_code;
    static_cast<void>(!::write(failure[1], &failed, sizeof(failed)));
    ::_exit(1);
  }
  const int not_forked = errno;
  ::close(failure[1]);
  int failed = child < 0 ? not_forked : 0;
  if (child > 0 && ::read(failure[0], &failed, sizeof(failed)) > 0) ::waitpid(child, nullptr, 0);
  ::close(failure[0]);
  if (failed == 0) return child;
  if (child < 0) {
    return Error{ErrorCode::kOutOfMemory,
                 text("cannot start a process: {}", std::generic_category().message(failed)), failed};
  }
  return cannot_run(command, failed);
}

}  // namespace

Result<CommandEnd> run_watched(const std::vector<std::string>& command, const std::function<void()>& look) {
  const SignalsHeld signals;
  ETSTREAM_ASSIGN(const ::pid_t child, start(command, signals));
  std::optional<CommandEnd> end;
  const Pauses pauses;
  while (!(end = end_of(child))) {
    look();
    const auto signal = signals.wait(pauses.next());
    // Those of the terminal's reach the command by themselves.
    if (signal && signal->si_signo != SIGCHLD && signal->si_code <= 0) ::kill(child, signal->si_signo);
  }
  return *end;
}

}  // namespace etstream
