// SPDX-License-Identifier: BSD-3-Clause
//
// A program with phases: phases WHAT, which is one of
//
//   spike   a phase that has 256 MiB for no longer than it takes to touch them, between two that have none
//   nested  the same in a phase that lies in another
//   end     256 MiB as the process ends, in no phase
//   child   256 MiB in a process that it starts, in a phase of its own
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "etstream/profile.h"

namespace {

constexpr std::size_t kSpike = std::size_t{256} << 20;

std::byte* take() {
  void* const taken =
      ::mmap(nullptr, kSpike, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (taken == MAP_FAILED) std::abort();
  return static_cast<std::byte*>(taken);
}

void spike() { ::munmap(take(), kSpike); }

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "spike") {
    { const etstream::ProfiledPhase phase("before"); }
    {
      const etstream::ProfiledPhase phase("spike");
      spike();
    }
    { const etstream::ProfiledPhase phase("after"); }
  } else if (what == "nested") {
    const etstream::ProfiledPhase outer("outer");
    {
      const etstream::ProfiledPhase inner("inner <b>\n");
      spike();
    }
    const etstream::ProfiledPhase quiet("quiet");
  } else if (what == "end") {
    take();
  } else if (what == "child") {
    const etstream::ProfiledPhase phase("parent");
    const ::pid_t child = ::fork();
    if (child == 0) {
      {
        const etstream::ProfiledPhase own("child");
        spike();
        ::usleep(100'000);
      }
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
  } else {
    return 2;
  }
  return 0;
}
