// SPDX-License-Identifier: BSD-3-Clause
//
// How a command ended that was run.
//
//   const etstream::CommandEnd end{.exit_code = 3};
//   if (end.exit_code != 0 || end.signal != 0) std::printf("it failed\n");
#pragma once

namespace etstream {

/// By itself, with an exit code, or by a signal.
struct CommandEnd {
  int exit_code = 0;
  int signal = 0;
};

}  // namespace etstream
