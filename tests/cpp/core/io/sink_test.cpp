// SPDX-License-Identifier: BSD-3-Clause
//
// The sinks to memory, to a function and to a descriptor.
#include "etstream/sink.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <limits>
#include <string>
#include <thread>

#include "test_errors.h"
#include "test_files.h"
#include "test_sources.h"

namespace etstream::sink_test {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMiB = std::size_t{1} << 20;

class Pipe {
 public:
  Pipe() {
    REQUIRE(::pipe(ends_.data()) == 0);
#if defined(F_SETPIPE_SZ)
    ::fcntl(write_end(), F_SETPIPE_SZ, 4096);
#endif
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_read_end();
    close_write_end();
  }

  [[nodiscard]] int read_end() const { return ends_[0]; }
  [[nodiscard]] int write_end() const { return ends_[1]; }
  void close_read_end() { close_end(0); }
  void close_write_end() { close_end(1); }

 private:
  void close_end(std::size_t which) {
    if (ends_[which] >= 0) ::close(ends_[which]);
    ends_[which] = -1;
  }

  std::array<int, 2> ends_{};
};

/// Makes a write to a pipe without a reader fail, rather than end the process.
class BrokenPipesIgnored {
 public:
  BrokenPipesIgnored() : before_(std::signal(SIGPIPE, SIG_IGN)) {}
  BrokenPipesIgnored(const BrokenPipesIgnored&) = delete;
  BrokenPipesIgnored& operator=(const BrokenPipesIgnored&) = delete;
  ~BrokenPipesIgnored() { std::signal(SIGPIPE, before_); }

 private:
  void (*before_)(int);
};

/// Returns all bytes from a pipe, read in small pieces with a rest now and then.
std::string read_slowly(int descriptor) {
  std::string out;
  std::array<char, 3001> buffer{};
  for (int i = 1;; ++i) {
    if (i % 100 == 0) std::this_thread::sleep_for(milliseconds(1));
    const ssize_t n = ::read(descriptor, buffer.data(), buffer.size());
    if (n <= 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

TEST_CASE("a memory sink appends to what is there already") {
  std::vector<std::byte> out = bytes_of("before ");
  const auto sink = open_memory_sink(out);
  REQUIRE(sink->reserve(10));
  REQUIRE(sink->append(source_of("one ")));
  CHECK(text_of(out) == "before one ");
  REQUIRE(sink->append(ByteSource()));
  REQUIRE(sink->append(source_of("two")));
  REQUIRE(sink->commit());
  CHECK(text_of(out) == "before one two");
}

TEST_CASE("a memory sink refuses more than the address space has") {
  std::vector<std::byte> out = bytes_of("x");
  const auto sink = open_memory_sink(out);
  CHECK(code_of(sink->reserve(std::numeric_limits<std::uint64_t>::max())) == "kTooLarge");
  CHECK(code_of(sink->append(ByteSource::zeros(std::numeric_limits<std::uint64_t>::max()))) == "kTooLarge");
  CHECK(error_of(sink->append(failing(10, 5))) == "kIo: the disk is on fire");
  CHECK(text_of(out) == "x");
}

TEST_CASE("a callback sink hands on all bytes in order, in pieces of at most 1 MiB") {
  const std::string bytes = patterned(3 * kMiB + 17);
  std::string taken;
  std::size_t longest = 0;
  const auto sink = open_callback_sink([&](std::span<const std::byte> piece) -> Result<void> {
    longest = std::max(longest, piece.size());
    taken += text_of(piece);
    return {};
  });
  REQUIRE(sink->append(source_of(bytes)));
  REQUIRE(sink->commit());
  CHECK(taken == bytes);
  CHECK(longest == kMiB);
}

TEST_CASE("an error from the callback ends the writing and is passed on") {
  int calls = 0;
  const auto sink = open_callback_sink([&](std::span<const std::byte>) -> Result<void> {
    if (++calls < 3) return {};
    return Error{ErrorCode::kUnsupported, "the socket has closed"};
  });
  CHECK(error_of(sink->append(ByteSource::zeros(100 * kMiB))) == "kUnsupported: the socket has closed");
  CHECK(calls == 3);
}

TEST_CASE("a descriptor is written from its position on and stays open") {
  const TemporaryFolder folder;
  put_file(folder / "file", "0123456789");
  const int descriptor = ::open((folder / "file").c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(descriptor >= 0);
  ::lseek(descriptor, 4, SEEK_SET);
  {
    const auto sink = open_descriptor_sink(descriptor, "the file");
    REQUIRE(sink->append(source_of("abc")));
    REQUIRE(sink->commit());
  }
  CHECK(content_of(folder / "file") == "0123abc789");
  CHECK(::fcntl(descriptor, F_GETFD) >= 0);
  ::close(descriptor);
}

TEST_CASE("a pipe whose reader is slow gets all bytes") {
  const std::string bytes = patterned(2 * kMiB + 77);
  for (const bool blocking : {true, false}) {
    CAPTURE(blocking);
    Pipe pipe;
    if (!blocking) REQUIRE(::fcntl(pipe.write_end(), F_SETFL, O_NONBLOCK) == 0);
    std::string read;
    std::thread reader([&] {
      std::this_thread::sleep_for(milliseconds(20));  // until the pipe is full
      read = read_slowly(pipe.read_end());
    });
    const auto sink = open_descriptor_sink(pipe.write_end(), "the pipe");
    const auto appended = sink->append(source_of(bytes));
    const auto committed = sink->commit();
    pipe.close_write_end();
    reader.join();
    CHECK(appended);
    CHECK(committed);
    CHECK(read.size() == bytes.size());
    CHECK((read == bytes));
  }
}

TEST_CASE("a pipe whose reader goes away in the midst is an error") {
  const BrokenPipesIgnored ignored;
  for (const bool blocking : {true, false}) {
    CAPTURE(blocking);
    Pipe pipe;
    if (!blocking) REQUIRE(::fcntl(pipe.write_end(), F_SETFL, O_NONBLOCK) == 0);
    std::thread reader([&] {
      std::array<char, 100> some{};
      CHECK(::read(pipe.read_end(), some.data(), some.size()) > 0);
      std::this_thread::sleep_for(milliseconds(20));  // until the writer waits for room
      pipe.close_read_end();
    });
    const auto sink = open_descriptor_sink(pipe.write_end(), "the pipe");
    const auto appended = sink->append(ByteSource::zeros(2 * kMiB));
    reader.join();
    CHECK(error_of(appended) == "kIo: cannot write 'the pipe': Broken pipe");
  }
}

TEST_CASE("a descriptor that can't be written is an error") {
  const int descriptor = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const auto sink = open_descriptor_sink(descriptor, "the input");
  REQUIRE(sink->append(source_of("x")));
  CHECK(error_of(sink->commit()) == "kIo: cannot write 'the input': Bad file descriptor");
  ::close(descriptor);
}

}  // namespace
}  // namespace etstream::sink_test
