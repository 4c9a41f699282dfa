// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace etstream {

/// How a command ended: by itself, with an exit code, or by a signal.
struct CommandEnd {
  int exit_code = 0;
  int signal = 0;
};

}  // namespace etstream
