// SPDX-License-Identifier: BSD-3-Clause
#include "memory/profile/jump_watch.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <ctime>
#include <string>
#include <thread>

#include "core/base/text.h"
#include "core/io/descriptor_posix.h"

namespace etstream::caller_watch_test {
namespace {

volatile std::sig_atomic_t asked_for_stack = 0;
volatile std::sig_atomic_t asked_for_outermost = 0;
volatile std::sig_atomic_t asked_thread = 0;

/// Keeps this thread running until it has run for so many milliseconds in all.
void run_for(std::int64_t milliseconds) {
  ::timespec ran{};
  do {
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
  } while (ran.tv_sec * 1000 + ran.tv_nsec / 1'000'000 < milliseconds);
}

TEST_CASE("callers are read from what faulthandler wrote, whatever their names are") {
  const auto callers = read_stack(
      "Stack (most recent call first):\n"
      "  File \"/a \"b\", line 7 in x.py\", line 12 in <lambda>\n"
      "  File \"<frozen importlib._bootstrap>\", line 241 in _call_with_frames_removed\n"
      "  File \"/usr/lib/etstream/python/sitecustomize.py\", line 96 in exec_module\n"
      "  File \"<string>\", line ??? in f\n"
      "  File \n"
      "  ...\n"
      "  File \"cut");
  REQUIRE(callers.size() == 2);
  CHECK(callers[0].file == "/a \"b\", line 7 in x.py");
  CHECK(callers[0].line == 12);
  CHECK(callers[0].function == "<lambda>");
  CHECK(callers[1].file == "<string>");
  CHECK(callers[1].line == 0);
  CHECK(read_stack("").empty());
}

TEST_CASE("without one that can tell of its callers there is a note, and no jump") {
  Profile profile;
  CallerWatch watch;
  WatchedProcess seen;
  seen.process = 7;
  watch.take("B 7 7 1 0 0 0 0 0 0 0 1 export\nC 1 2\nC x 3 45\nC 999999999 3 45\nC 1 2 9\nC 1");
  watch.look({seen}, 1'000'000'000);
  watch.add_jumps(0, profile);
  CHECK(profile.jumps.empty());
  CHECK(profile.notes.size() == 1);
}

TEST_CASE("a process is asked for its stack when it has grown by 64 MiB, and for the rest of a cut one") {
  constexpr std::uint64_t kTenth = 100'000'000;
  const auto before = std::signal(SIGRTMIN, [](int) { asked_for_stack = asked_for_stack + 1; });
  const auto before_too =
      std::signal(SIGRTMIN + 1, [](int) { asked_for_outermost = asked_for_outermost + 1; });
  const Descriptor file(::memfd_create("stacks", MFD_CLOEXEC));
  const auto tell = [&](const std::string& words) {
    REQUIRE(::write(file.get(), words.data(), words.size()) == static_cast<::ssize_t>(words.size()));
  };
  CallerWatch watch;
  watch.take("B 7 7 1 0 0 0 0 0 0 0 1 export\n");
  watch.take(text("C {} {} {}\n", ::getpid(), file.get(), SIGRTMIN));
  WatchedProcess seen;
  seen.process = ::getpid();
  /// Looks at a time in tenths of a second. Returns how often it was asked for a stack so far.
  const auto look = [&](std::uint64_t time, std::uint64_t mebibytes) {
    seen.anonymous = mebibytes << 20;
    watch.look({seen}, time * kTenth);
    return static_cast<int>(asked_for_stack);
  };
  CHECK(look(10, 100) == 0);  // from before it could tell
  CHECK(look(20, 163) == 0);
  CHECK(look(30, 164) == 1);
  tell("  File \"a.py\", line 1 in f\n  ...\n");
  CHECK(look(40, 164) == 1);
  CHECK(asked_for_outermost == 1);
  CHECK(look(45, 300) == 1);  // as the rest has still to come
  tell("  File \"b.py\", line 2 in g\n");
  CHECK(look(46, 300) == 2);
  tell("  File \"c.py\", line 3 in h\n");
  CHECK(look(60, 400) == 3);
  tell("  File \"d.py\", line 4 in i\n");
  CHECK(asked_for_outermost == 1);
  std::signal(SIGRTMIN, before);
  std::signal(SIGRTMIN + 1, before_too);

  Profile profile;
  watch.add_jumps(10 * kTenth, profile);
  CHECK(profile.notes.empty());
  REQUIRE(profile.jumps.size() == 3);
  std::string jumps;
  for (const ProfileJump& jump : profile.jumps) {
    jumps += text("{:.1f} to {:.1f}: {} MiB,", jump.begin, jump.time, jump.by >> 20);
    for (const auto& caller : jump.callers) jumps += " " + caller.file;
    jumps += "\n";
  }
  CHECK(jumps == "0.0 to 2.0: 64 MiB, a.py b.py\n2.0 to 3.6: 136 MiB, c.py\n3.6 to 5.0: 100 MiB, d.py\n");
}

TEST_CASE("the thread is asked that has run most since the process was first seen") {
  const auto before = std::signal(SIGRTMIN, [](int) { asked_thread = ::gettid(); });
  const Descriptor file(::memfd_create("stacks", MFD_CLOEXEC));
  CallerWatch watch;
  watch.take(text("C {} {} {}\n", ::getpid(), file.get(), SIGRTMIN));
  WatchedProcess seen;
  seen.process = ::getpid();
  seen.anonymous = 100 << 20;
  run_for(200);  // the main thread, as it starts
  watch.look({seen}, 1);
  seen.anonymous = 200 << 20;
  int busy = 0;
  std::thread([&] {
    busy = ::gettid();
    run_for(50);
    watch.look({seen}, 2);
  }).join();
  std::signal(SIGRTMIN, before);
  CHECK(busy != ::getpid());
  CHECK(asked_thread == busy);
}

TEST_CASE("a process without a standard input may tell of its callers in a file with its number") {
  const Descriptor file(::memfd_create("stacks", MFD_CLOEXEC));
  const int input = ::dup(0);
  ::dup2(file.get(), 0);
  CallerWatch watch;
  watch.take(text("C {} 0 {}\n", ::getpid(), SIGRTMIN));
  if (input >= 0) {
    ::dup2(input, 0);
    ::close(input);
  } else {
    ::close(0);
  }
  Profile profile;
  watch.add_jumps(0, profile);
  CHECK(profile.notes.empty());
}

}  // namespace
}  // namespace etstream::caller_watch_test
