// SPDX-License-Identifier: BSD-3-Clause
//
// Descriptors, and calls on them that signals interrupt.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include "core/base/text.h"
#include "core/io/descriptor_posix.h"
#include "etstream/packed_file.h"
#include "test_errors.h"

namespace etstream::descriptor_test {
namespace {

volatile std::sig_atomic_t signals = 0;
volatile std::sig_atomic_t other_end = -1;

/// A pipe, while signals interrupt calls every 20 ms. The third signal closes the `other` end, so that no
/// call waits for ever.
class InterruptedPipe {
 public:
  explicit InterruptedPipe(int other) {
    REQUIRE(::pipe(ends_.data()) == 0);
    signals = 0;
    other_end = ends_[static_cast<std::size_t>(other)];
    struct sigaction action {};
    action.sa_handler = [](int) {
      if (signals == 2) ::close(other_end);
      signals = signals + 1;
    };
    ::sigaction(SIGALRM, &action, &before_);
    every(20'000);
  }
  InterruptedPipe(const InterruptedPipe&) = delete;
  InterruptedPipe& operator=(const InterruptedPipe&) = delete;
  ~InterruptedPipe() {
    every(0);
    ::sigaction(SIGALRM, &before_, nullptr);
    for (const int end : ends_) {
      if (signals <= 2 || end != other_end) ::close(end);
    }
  }

  [[nodiscard]] int end(int which) const { return ends_[static_cast<std::size_t>(which)]; }

 private:
  static void every(suseconds_t microseconds) {
    const itimerval interval{{0, microseconds}, {0, microseconds}};
    ::setitimer(ITIMER_REAL, &interval, nullptr);
  }

  std::array<int, 2> ends_{};
  struct sigaction before_ {};
};

Result<void> stopped() { return make_error(ErrorCode::kInterrupted, "stopped"); }

TEST_CASE("a signal may end what waits to read, or it goes on") {
  std::array<std::byte, 8> bytes{};
  {
    const InterruptedPipe pipe(1);
    CHECK(error_of(descriptor_reader(pipe.end(0), "pipe", stopped)(bytes)) == "kInterrupted: stopped");
    CHECK(signals == 1);
  }
  const InterruptedPipe pipe(1);
  CHECK(descriptor_reader(pipe.end(0), "pipe")(bytes).value() == 0);
  CHECK(signals == 3);
}

TEST_CASE("a signal may end what waits to write") {
  const std::vector<std::byte> bytes(std::size_t{1} << 20);
  const InterruptedPipe pipe(0);
  CHECK(error_of(write_all(pipe.end(1), bytes, "pipe", stopped)) == "kInterrupted: stopped");
  CHECK(signals == 1);
}

TEST_CASE("an error of reading at an offset says where") {
  const Descriptor folder(::open("/", O_RDONLY | O_CLOEXEC));
  std::array<std::byte, 8> bytes{};
  const auto read = read_all(folder.get(), 5, bytes, "folder");
  CHECK(error_of(read) == "kIo: cannot read 'folder': Is a directory (8 bytes at offset 5)");
  CHECK(read.error().offset == 5);
  CHECK(read.error().file == "folder");
  CHECK(read.error().system_code == EISDIR);
  CHECK(refusal(ErrorCode::kIo, "cannot read", "folder", "no").system_code == 0);
}

}  // namespace
}  // namespace etstream::descriptor_test
