// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/io/descriptor_posix.h"
#include "memory/process/command.h"
#include "memory/process/process_figures.h"
#include "test_errors.h"

namespace etstream::process_test {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;

/// Memory of its own, or that processes share, in use while it lives.
class Pages {
 public:
  Pages(std::size_t size, int kind)
      : size_(size), at_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(at_ != MAP_FAILED);
    std::memset(at_, 1, size_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { ::munmap(at_, size_); }

 private:
  std::size_t size_;
  void* at_;
};

/// Starts a process that ends at once, and waits until it has; it is there until waitpid() is called.
::pid_t ended_child() {
  const ::pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::siginfo_t ended{};
  REQUIRE(::waitid(P_PID, static_cast<::id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  return child;
}

TEST_CASE("the memory of a process is its own and what it shares") {
  const ProcessMemory before = memory_of(::getpid()).value();
  const Pages own(64 * kMebibyte, MAP_PRIVATE);
  const Pages shared(32 * kMebibyte, MAP_SHARED);
  const ProcessMemory after = memory_of(::getpid()).value();
  // The kernel adds pages up by the dozen, for each processor.
  const auto grew = [](std::uint64_t from, std::uint64_t to, std::uint64_t by) {
    return to + kMebibyte >= from + by * kMebibyte && to <= from + (by + 1) * kMebibyte;
  };
  CHECK(grew(before.anonymous, after.anonymous, 96));
  CHECK(grew(before.shared, after.shared, 32));
  CHECK(grew(before.file, after.file, 0));
  CHECK(grew(before.resident, after.resident, 96));
  CHECK(after.high_water + kMebibyte >= after.resident);
}

TEST_CASE("each figure of memory is raised to a larger one, and no other") {
  ProcessMemory most{1, 20, 3, 40};
  most.raise_to({10, 2, 30, 4});
  CHECK(most.high_water == 10);
  CHECK(most.resident == 20);
  CHECK(most.anonymous == 30);
  CHECK(most.file == 40);
}

TEST_CASE("the work of a process is the time that it took, in the kernel too, and what it read") {
  const Descriptor zeros(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  std::string block(kMebibyte, 'x');
  ::tms before{};
  std::uint64_t read = 0;
  do {
    REQUIRE(::read(zeros.get(), block.data(), block.size()) == static_cast<::ssize_t>(block.size()));
    read += block.size();
    CHECK(std::count(block.begin(), block.begin() + 32768, 'x') == 0);
    ::times(&before);
  } while (before.tms_utime < 5 || before.tms_stime < 5);
  const ProcessWork work = work_of(::getpid()).value();
  ::tms after{};
  ::times(&after);
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  CHECK(work.cpu_seconds >= static_cast<double>(before.tms_utime + before.tms_stime) / ticks);
  CHECK(work.cpu_seconds <= static_cast<double>(after.tms_utime + after.tms_stime) / ticks);
  CHECK(work.read >= read);
}

TEST_CASE("where the kernel does not tell what a process reads and writes, it is nothing") {
  const ::pid_t child = ::fork();
  if (child == 0) {
    // The kernel tells these figures of a process that may not be dumped to root alone.
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(errno == EINVAL ? 3 : 2);
    ::prctl(PR_SET_DUMPABLE, 0);
    const std::optional<ProcessWork> work = work_of(::getpid());
    ::_exit(work && work->read == 0 && work->written == 0 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WEXITSTATUS(status) == 3) MESSAGE("SKIPPED: this container has no user but root");
  CHECK((status == 0 || WEXITSTATUS(status) == 3));
}

TEST_CASE("a process catches the signals that it has a handler for") {
  const auto before = std::signal(SIGUSR1, [](int) {});
  for (int signal = 1; signal < 32; ++signal) {
    CAPTURE(signal);
    struct ::sigaction set {};
    ::sigaction(signal, nullptr, &set);
    CHECK(catches(::getpid(), signal) == (set.sa_handler != SIG_DFL && set.sa_handler != SIG_IGN));
  }
  std::signal(SIGUSR1, before);
}

TEST_CASE("a process that has ended is a child without memory until it is waited for") {
  const std::vector<::pid_t> children = {ended_child(), ended_child(), ended_child()};
  CHECK(children_of(::getpid()) == children);
  for (const ::pid_t child : children) {
    CHECK(!memory_of(child).has_value());
    CHECK(work_of(child).has_value());
    CHECK(command_line_of(child).empty());
    ::waitpid(child, nullptr, 0);
    CHECK(!work_of(child).has_value());
    CHECK(!catches(child, 1));
  }
  CHECK(children_of(::getpid()).empty());
}

TEST_CASE("a clock shows nanoseconds") {
  const auto now = [] {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  };
  const std::uint64_t before = now();
  const std::uint64_t shown = nanoseconds_of(CLOCK_MONOTONIC);
  CHECK(before <= shown);
  CHECK(shown <= now());
}

TEST_CASE("a command is looked at until it ends, every 10 ms at most") {
  int looks = 0;
  const auto end = run_watched({"sh", "-c", "sleep 0.2; exit 7"}, [&] { ++looks; });
  REQUIRE(end.has_value());
  CHECK(end->exit_code == 7);
  CHECK(end->signal == 0);
  CHECK(looks >= 2);
  CHECK(looks <= 200);
}

TEST_CASE("a command that a signal ends has no exit code") {
  const auto end = run_watched({"sh", "-c", "kill -9 $$"}, [] {});
  REQUIRE(end.has_value());
  CHECK(end->signal == SIGKILL);
  CHECK(end->exit_code == 0);
}

TEST_CASE("a command that can't be run leaves no process") {
  CHECK(code_of(run_watched({"/no/such/program"}, [] {})) == "kNotFound");
  CHECK(code_of(run_watched({"/"}, [] {})) == "kIo");
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("memory is shared whatever the limit of files is, which stays as it was") {
  constexpr const char* kVariable = "ETSTREAM_TEST_SHARED";
  ::setenv(kVariable, "other", 1);
  ::rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  for (const ::rlim_t limit : {::rlim_t{4999}, ::rlim_t{5000}, ::rlim_t{5001}}) {
    const ::rlimit low{.rlim_cur = limit, .rlim_max = before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &low);
    errno = ENOENT;
    const auto file = share_memory("test", 5000, kVariable);
    ::rlimit now{};
    ::getrlimit(RLIMIT_FSIZE, &now);
    ::setrlimit(RLIMIT_FSIZE, &before);
    REQUIRE(file.has_value());
    CHECK(now.rlim_cur == limit);
    struct ::stat status {};
    CHECK(::fstat(file->get(), &status) == 0);
    CHECK(status.st_size == 5000);
    const std::string path = std::getenv(kVariable);
    CHECK(path == "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file->get()));
  }
  ::unsetenv(kVariable);
}

}  // namespace
}  // namespace etstream::process_test
