// SPDX-License-Identifier: BSD-3-Clause
#include "files/runs/line_process_posix.h"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cerrno>
#include <string>

#include "test_errors.h"

namespace etstream::line_process_test {
namespace {

bool go_on() { return true; }

/// Returns whether this process has no child, not even one that has ended.
bool has_no_child() { return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

TEST_CASE("a process answers lines, and is gone when it is let go of") {
  REQUIRE(has_no_child());
  {
    auto process = LineProcess::start({"cat"}, {});
    REQUIRE_MESSAGE(process, process.error().message);
    CHECK(process->ask("one", go_on).value() == "one");
    CHECK(process->ask("", go_on).value() == "");
    CHECK(code_of(process->ask("two", [] { return false; })) == "kInterrupted");
    CHECK_FALSE(has_no_child());
  }
  CHECK(has_no_child());
}

TEST_CASE("a process that ends before it answers is an error, and one that is not there") {
  auto process = LineProcess::start({"true"}, {});
  REQUIRE_MESSAGE(process, process.error().message);
  CHECK(code_of(process->receive(go_on)) == "kIo");
  CHECK(code_of(LineProcess::start({"/nowhere/to/be/found"}, {})) == "kNotFound");
}

}  // namespace
}  // namespace etstream::line_process_test
