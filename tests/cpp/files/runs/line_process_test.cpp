// SPDX-License-Identifier: BSD-3-Clause
#include "files/runs/line_process_posix.h"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "etstream/byte_source.h"
#include "test_errors.h"
#include "test_files.h"

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

TEST_CASE("a process has the files that it is given, and its lines are read one by one, however long") {
  const TemporaryFolder folder;
  const std::string line = std::string(200'000, 'x') + "y";
  put_file(folder / "one", "first\nsecond\n");
  put_file(folder / "two", line + "\n");
  const auto opened = [&](std::string_view name) {
    return Descriptor(ByteSource::file(folder / name)->open_range()->descriptor);
  };
  const Descriptor one = opened("one");
  const Descriptor two = opened("two");
  const int files[] = {one.get(), two.get()};
  auto process = LineProcess::start({"sh", "-c", "cat <&3; cat <&4; cat"}, files);
  REQUIRE_MESSAGE(process, process.error().message);
  CHECK(process->receive({}).value() == "first");
  CHECK(process->receive({}).value() == "second");
  CHECK(process->receive({}).value() == line);
  CHECK(process->ask("third", {}).value() == "third");
  // The process says nothing more, and each wait for it is a short one.
  int calls = 0;
  CHECK(code_of(process->receive([&] { return ++calls < 3; })) == "kInterrupted");
  const int none[] = {-1};
  CHECK(error_of(LineProcess::start({"cat"}, none)) ==
        exactly("kIo: cannot pass a file to 'the process that runs the program': Bad file descriptor"));
}

TEST_CASE("a process that ends before it answers is an error, and one that is not there") {
  auto process = LineProcess::start({"true"}, {});
  REQUIRE_MESSAGE(process, process.error().message);
  CHECK(error_of(process->receive(go_on)) ==
        exactly("kIo: the process that runs the program has ended before its time"));
  CHECK(error_of(process->ask("one", go_on)) ==
        exactly("kIo: cannot write to 'the process that runs the program': Broken pipe"));
  CHECK(code_of(LineProcess::start({"/nowhere/to/be/found"}, {})) == "kNotFound");
}

}  // namespace
}  // namespace etstream::line_process_test
