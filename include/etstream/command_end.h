// SPDX-License-Identifier: BSD-3-Clause
//
// The end of a command: its exit code, or the signal that ended it.
//
//   const etstream::CommandEnd end{.exit_code = 3};
//   if (end.exit_code != 0 || end.signal != 0) std::printf("it failed\n");
#pragma once

namespace etstream {

/// Either the command exited with `exit_code`, or `signal` ended it; the other one is 0.
struct CommandEnd {
  int exit_code = 0;
  int signal = 0;
};

}  // namespace etstream
