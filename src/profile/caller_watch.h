// SPDX-License-Identifier: BSD-3-Clause
//
// What Python was at when its process grew. A process that can tell says so with a line in the log of phases:
//
//   C PID FILE SIGNAL
//
// On SIGNAL it writes the stack of the thread that takes it to its descriptor FILE, as faulthandler does.
// Sent it is to the thread that ran most meanwhile, or to the first, if that ran half as long or more:
// helpers of a computation run beside the one that asked for it. src/profile/callers.py writes that line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/profile.h"
#include "profile/process_watch.h"

namespace etstream {

/// The frames in what faulthandler wrote, innermost first; what is none is passed over.
[[nodiscard]] std::vector<ProfileJump::Caller> read_stack(std::string_view dump);

class CallerWatch {
 public:
  CallerWatch() = default;
  CallerWatch(const CallerWatch&) = delete;
  CallerWatch& operator=(const CallerWatch&) = delete;
  ~CallerWatch();

  /// Takes lines of the log that are new; an unfinished one is kept for the next time.
  void take(std::string_view lines);
  /// Asks those of `processes` that can tell and have grown by 64 MiB, or by 2 % where that is more, over the
  /// most that they had before.
  void look(const std::vector<WatchedProcess>& processes, std::uint64_t now);
  /// Adds what they told to the profile of a command that began at `begin`, or a note where none could.
  void add_jumps(std::uint64_t begin, Profile& profile) const;

 private:
  struct Moment {
    std::uint64_t time = 0;
    std::uint64_t anonymous = 0;
    std::uint64_t by = 0;
    std::uint64_t begin = 0;  // where its stack begins in the file
  };
  struct Told {
    int process = 0;
    int signal = 0;
    int file = -1;
    std::uint64_t most = 0;
    bool is_halfway = false;              // to the next moment
    std::map<int, std::uint64_t> before;  // how long its threads had run then
    std::vector<Moment> moments;
  };

  void add(std::string_view line);
  static void look(Told& told, std::uint64_t anonymous, std::uint64_t now);

  std::string unfinished_;
  std::vector<Told> told_;
};

}  // namespace etstream
