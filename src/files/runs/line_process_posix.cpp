// SPDX-License-Identifier: BSD-3-Clause
#include "files/runs/line_process_posix.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "memory/process/command.h"

#ifdef __APPLE__
#include <crt_externs.h>
#endif

namespace etstream {
namespace {

constexpr int kFirstFile = 3;
/// The lowest number for our descriptors. It is above all that the child gets, so that no file replaces one
/// that is still to be passed.
constexpr int kOutOfTheWay = 64;
constexpr int kPollPause = 100;  // milliseconds
constexpr std::string_view kChild = "the process that runs the program";

char** environment() {
#ifdef __APPLE__
  return *::_NSGetEnviron();
#else
  return environ;
#endif
}

/// Makes the two ends of a connection.
Result<std::array<Descriptor, 2>> connect() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) {
    return system_error(errno, "cannot connect to", kChild);
  }
  std::array<Descriptor, 2> out = {Descriptor(ends[0]), Descriptor(ends[1])};
  for (const Descriptor& end : out) ::fcntl(end.get(), F_SETFD, FD_CLOEXEC);
#ifdef SO_NOSIGPIPE
  const int on = 1;
  ::setsockopt(ends[0], SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
#endif
  return out;
}

/// The actions of posix_spawn() in the child, which gets a process group of its own.
class SpawnPlan {
 public:
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  /// Gives the child `descriptor` as its descriptor `as`.
  [[nodiscard]] Result<void> pass(int descriptor, int as) {
    const Descriptor& moved = moved_.emplace_back(::fcntl(descriptor, F_DUPFD_CLOEXEC, kOutOfTheWay));
    if (!moved) return system_error(errno, "cannot pass a file to", kChild);
    ::posix_spawn_file_actions_adddup2(&actions_, moved.get(), as);
    return {};
  }
  [[nodiscard]] Result<::pid_t> spawn(const std::vector<std::string>& command) {
    ::posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    ::pid_t process = 0;
    const int failed =
        ::posix_spawnp(&process, arguments.front(), &actions_, &attributes_, arguments.data(), environment());
    if (failed != 0) return cannot_run(command, failed);
    return process;
  }

 private:
  ::posix_spawn_file_actions_t actions_{};
  ::posix_spawnattr_t attributes_{};
  std::vector<Descriptor> moved_;
};

}  // namespace

Result<LineProcess> LineProcess::start(const std::vector<std::string>& command, std::span<const int> files) {
  ETSTREAM_ASSIGN(auto ends, connect());
  SpawnPlan plan;
  ETSTREAM_TRY(plan.pass(ends[1].get(), STDIN_FILENO));
  ETSTREAM_TRY(plan.pass(ends[1].get(), STDOUT_FILENO));
  for (std::size_t i = 0; i < files.size(); ++i) {
    ETSTREAM_TRY(plan.pass(files[i], kFirstFile + static_cast<int>(i)));
  }
  ETSTREAM_ASSIGN(const ::pid_t process, plan.spawn(command));
  return LineProcess(process, std::move(ends[0]));
}

LineProcess::LineProcess(LineProcess&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      socket_(std::move(other.socket_)),
      received_(std::move(other.received_)) {}

LineProcess::~LineProcess() {
  if (process_ < 0) return;
  ::kill(-process_, SIGKILL);
  static_cast<void>(retried([&] { return ::waitpid(process_, nullptr, 0); }));
}

Result<std::string> LineProcess::ask(std::string_view line, const GoOn& go_on) {
  std::string out(line);
  out += '\n';
#ifdef MSG_NOSIGNAL
  constexpr int kFlags = MSG_NOSIGNAL;
#else
  constexpr int kFlags = 0;
#endif
  for (std::string_view left = out; !left.empty();) {
    const ssize_t n = retried([&] { return ::send(socket_.get(), left.data(), left.size(), kFlags); });
    if (n < 0) return system_error(errno, "cannot write to", kChild);
    left.remove_prefix(static_cast<std::size_t>(n));
  }
  return receive(go_on);
}

Result<std::string> LineProcess::receive(const GoOn& go_on) {
  while (true) {
    if (const std::size_t end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    if (go_on && !go_on()) return make_error(ErrorCode::kInterrupted, "interrupted");
    ::pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kPollPause) <= 0) continue;
    std::array<char, 65536> piece;
    const ssize_t n = retried([&] { return ::recv(socket_.get(), piece.data(), piece.size(), 0); });
    if (n <= 0) return make_error(ErrorCode::kIo, "{} has ended before its time", kChild);
    received_.append(piece.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace etstream
