// SPDX-License-Identifier: BSD-3-Clause
#include "memory/process/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <system_error>

#include "core/base/text.h"
#include "core/base/try.h"
#include "memory/process/process_figures.h"
#include "memory/process/signals_held_linux.h"

namespace etstream {
namespace {

constexpr std::int64_t kShortestPause = 10'000'000;  // nanoseconds
constexpr std::int64_t kLongestPause = 100'000'000;
/// The divisor of a processor's time that looking may use: one part in 125, or 0.8 %.
constexpr std::int64_t kTimePerLook = 125;
/// The time by which looking may be ahead of that. At first it looks as often as it can.
constexpr std::int64_t kAhead = 1'000'000'000;

/// The pauses between looks.
class Pauses {
 public:
  [[nodiscard]] std::int64_t next() const {
    const auto taken = static_cast<std::int64_t>(nanoseconds_of(CLOCK_PROCESS_CPUTIME_ID) - taken_before_);
    const auto passed = static_cast<std::int64_t>(nanoseconds_of(CLOCK_MONOTONIC) - begin_);
    return std::clamp(kTimePerLook * taken - passed - kAhead, kShortestPause, kLongestPause);
  }

 private:
  std::uint64_t taken_before_ = nanoseconds_of(CLOCK_PROCESS_CPUTIME_ID);
  std::uint64_t begin_ = nanoseconds_of(CLOCK_MONOTONIC);
};

/// Returns how the child ended, if it has ended. While the child is stopped, this process is too.
std::optional<CommandEnd> end_of(::pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, WNOHANG | WUNTRACED) == child) {
    if (WIFEXITED(status)) return CommandEnd{WEXITSTATUS(status), 0};
    if (WIFSIGNALED(status)) return CommandEnd{0, WTERMSIG(status)};
    // The sender of SIGSTOP to the command continues it too.
    if (WSTOPSIG(status) == SIGSTOP) continue;
    ::raise(SIGSTOP);
    ::kill(child, SIGCONT);
  }
  return std::nullopt;
}

/// Gives a file in memory its size. The limit of files' sizes (ulimit -f) is meant for files on disks: beyond
/// it SIGXFSZ would end this process. Returns false if it fails; errno says why.
bool resize(int file, std::size_t size) {
  ::rlimit before{};
  if (::getrlimit(RLIMIT_FSIZE, &before) != 0) return false;
  if (before.rlim_max < size) {
    errno = EFBIG;
    return false;
  }
  const bool is_low = before.rlim_cur < size;
  const ::rlimit raised{.rlim_cur = size, .rlim_max = before.rlim_max};
  if (is_low && ::setrlimit(RLIMIT_FSIZE, &raised) != 0) return false;
  const int failed = ::ftruncate(file, static_cast<off_t>(size)) == 0 ? 0 : errno;
  if (is_low) ::setrlimit(RLIMIT_FSIZE, &before);
  errno = failed;
  return failed == 0;
}

/// Starts the command, with signals as they were before. Returns its process.
Result<::pid_t> start(const std::vector<std::string>& command, const SignalsHeld& signals) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return out_of_resources("start a process", errno);
  const Descriptor failure(ends[0]);
  Descriptor for_child(ends[1]);
  const ::pid_t child = ::fork();
  if (child == 0) {
    signals.release();
    const int failed = become(command).system_code;
    static_cast<void>(!::write(for_child.get(), &failed, sizeof(failed)));
    ::_exit(1);
  }
  if (child < 0) return out_of_resources("start a process", errno);
  for_child = Descriptor();
  int failed = 0;
  if (::read(failure.get(), &failed, sizeof(failed)) <= 0) return child;
  ::waitpid(child, nullptr, 0);
  return cannot_run(command, failed);
}

}  // namespace

Error out_of_resources(std::string_view doing, int error) {
  return Error{ErrorCode::kOutOfMemory, text("cannot {}: {}", doing, std::generic_category().message(error)),
               error};
}

Result<Descriptor> share_memory(const char* name, std::size_t size, const char* variable) {
  Descriptor file(::memfd_create(name, MFD_CLOEXEC));
  if (!file || !resize(file.get(), size)) {
    return out_of_resources("share memory with the command", errno);
  }
  // The path in this process's folder: a command may close descriptors that it does not know.
  ::setenv(variable, text("/proc/{}/fd/{}", ::getpid(), file.get()).c_str(), 1);
  return file;
}

Result<CommandEnd> run_watched(const std::vector<std::string>& command, const std::function<void()>& look) {
  return run_watched(command, look, SignalsHeld());
}

Result<CommandEnd> run_watched(const std::vector<std::string>& command, const std::function<void()>& look,
                               const SignalsHeld& signals) {
  ETSTREAM_ASSIGN(const ::pid_t child, start(command, signals));
  std::optional<CommandEnd> end;
  const Pauses pauses;
  while (!(end = end_of(child))) {
    look();
    const auto signal = signals.wait(pauses.next());
    // Signals of the terminal reach the command anyway.
    if (signal && signal->si_signo != SIGCHLD && signal->si_code <= 0) ::kill(child, signal->si_signo);
  }
  return *end;
}

}  // namespace etstream
