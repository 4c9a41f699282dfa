// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/out_of_core.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/text.h"
#include "base/try.h"
#include "heap/environment.h"
#include "heap/heap_linux.h"
#include "heap/process_memory.h"
#include "heap/spill_file.h"
#include "heap/spill_folder.h"
#include "heap/statistics.h"

namespace etstream {
namespace {

constexpr const char* kPreloadVariable = "LD_PRELOAD";
constexpr long kLookEveryNanoseconds = 10'000'000;

Result<std::string> usable_folder(const OutOfCoreOptions& options) {
  ETSTREAM_ASSIGN(std::string folder, heap::spill_folder(options.spill_folder));
  heap::SpillFile attempt;
  const heap::SpillError failed = attempt.open(folder.c_str(), heap::kSmallestSpan);
  attempt.close();
  if (failed) return heap::cannot_spill_to(folder, failed);
  return folder;
}

/// Puts into the environment what the library reads there.
Result<void> set_environment(const OutOfCoreOptions& options) {
  const Result<std::string> folder = usable_folder(options);
  // Other codes are for what is wrong with the command.
  if (!folder) return Error{ErrorCode::kInvalidArgument, folder.error().message, folder.error().system_code};
  if (::access(options.library.c_str(), R_OK) != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 text("there is no {}, which serves the blocks", quote(options.library)), errno};
  }
  if (options.library.find_first_of(" :") != std::string::npos) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the path of {} has a space or a colon, which LD_PRELOAD can't have",
                      quote(options.library));
  }
  const char* const before = std::getenv(kPreloadVariable);
  const std::string preloaded =
      before != nullptr && *before != '\0' ? text("{}:{}", options.library, before) : options.library;
  ::setenv(kPreloadVariable, preloaded.c_str(), 1);
  ::setenv(heap::kFolderVariable, folder->c_str(), 1);
  ::setenv(heap::kLimitVariable, std::to_string(options.limit).c_str(), 1);
  ::setenv(heap::kFromVariable, std::to_string(std::max(options.from, heap::kGranule)).c_str(), 1);
  return {};
}

Error cannot_run(const std::vector<std::string>& command, int failed) {
  return Error{failed == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
               text("cannot run {}: {}", quote(command.front()), std::generic_category().message(failed)),
               failed};
}

/// Returns only if that fails.
Error become(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  return cannot_run(command, errno);
}

/// Memory that all processes of the command tell of themselves in.
class SharedUse {
 public:
  static Result<SharedUse> make() {
    SharedUse made;
    made.file_ = ::memfd_create("etstream-heap", MFD_CLOEXEC);
    if (made.file_ < 0 || ::ftruncate(made.file_, sizeof(heap::TreeUse)) != 0) {
      return system_error("cannot share memory with the command");
    }
    void* const mapped =
        ::mmap(nullptr, sizeof(heap::TreeUse), PROT_READ | PROT_WRITE, MAP_SHARED, made.file_, 0);
    if (mapped == MAP_FAILED) return system_error("cannot share memory with the command");
    made.tree_ = static_cast<heap::TreeUse*>(mapped);
    // By this process's name for it: a command may close descriptors that it does not know.
    const std::string path = text("/proc/{}/fd/{}", ::getpid(), made.file_);
    ::setenv(heap::kReportVariable, path.c_str(), 1);
    return made;
  }
  SharedUse(SharedUse&& other) noexcept
      : file_(std::exchange(other.file_, -1)), tree_(std::exchange(other.tree_, nullptr)) {}
  SharedUse& operator=(SharedUse&&) = delete;
  SharedUse(const SharedUse&) = delete;
  SharedUse& operator=(const SharedUse&) = delete;
  ~SharedUse() {
    if (tree_ != nullptr) ::munmap(tree_, sizeof(heap::TreeUse));
    if (file_ >= 0) ::close(file_);
  }

  /// Looks at the processes as they are now.
  void look(OutOfCoreUse& use) const {
    std::uint64_t anonymous = 0;
    std::uint64_t resident = 0;
    std::uint64_t spilled = 0;
    for_each_process([&](const heap::ProcessUse& process) {
      const std::optional<heap::ProcessMemory> memory = heap::memory_of(process.process.load());
      if (!memory) return;
      anonymous += memory->anonymous;
      resident += memory->resident;
      spilled += process.live.load();
    });
    use.anonymous = std::max(use.anonymous, anonymous);
    use.resident = std::max(use.resident, resident);
    use.spilled = std::max(use.spilled, spilled);
  }

  /// Adds what the processes counted themselves.
  void add_counts(OutOfCoreUse& use) const {
    use.processes = tree_->processes.load();
    for_each_process([&](const heap::ProcessUse& process) {
      use.blocks += process.blocks.load();
      use.paged_out += process.paged_out.load();
      use.refused += process.refused.load();
      use.spilled = std::max(use.spilled, process.peak.load());
    });
  }

 private:
  SharedUse() = default;

  static Error system_error(const char* doing) {
    return Error{ErrorCode::kOutOfMemory, text("{}: {}", doing, std::generic_category().message(errno)),
                 errno};
  }

  template <class Look>
  void for_each_process(Look look) const {
    const std::size_t known = std::min<std::size_t>(tree_->processes.load(), heap::TreeUse::kPlaces);
    std::for_each_n(tree_->places.begin(), known, look);
  }

  int file_ = -1;
  heap::TreeUse* tree_ = nullptr;
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
  /// The next one, or nothing if none comes for a while.
  [[nodiscard]] std::optional<::siginfo_t> wait() const {
    const ::timespec pause{.tv_sec = 0, .tv_nsec = kLookEveryNanoseconds};
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

Error become_out_of_core(const std::vector<std::string>& command, const OutOfCoreOptions& options) {
  if (command.empty()) return make_error(ErrorCode::kInvalidArgument, "there is no command to run");
  if (auto set = set_environment(options); !set) return std::move(set).error();
  return become(command);
}

Result<CommandEnd> run_out_of_core(const std::vector<std::string>& command, const OutOfCoreOptions& options,
                                   OutOfCoreUse& use) {
  if (command.empty()) return make_error(ErrorCode::kInvalidArgument, "there is no command to run");
  ETSTREAM_TRY(set_environment(options));
  ETSTREAM_ASSIGN(const SharedUse shared, SharedUse::make());
  const auto began = std::chrono::steady_clock::now();
  const SignalsHeld signals;
  ETSTREAM_ASSIGN(const ::pid_t child, start(command, signals));
  std::optional<CommandEnd> end;
  while (!(end = end_of(child))) {
    shared.look(use);
    const auto signal = signals.wait();
    // Those of the terminal's reach the command by themselves.
    if (signal && signal->si_signo != SIGCHLD && signal->si_code <= 0) ::kill(child, signal->si_signo);
  }
  use.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  shared.add_counts(use);
  return *end;
}

}  // namespace etstream
