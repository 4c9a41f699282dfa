// SPDX-License-Identifier: BSD-3-Clause
//
// The large blocks in the heaps of processes at the moment when all processes had most, and the call stacks
// of Python processes at the moments when they grew. A process that can report its stack writes a line to the
// log of phases:
//
//   C PID FILE SIGNAL
//
// On SIGNAL it writes the stack of the thread that gets the signal to its descriptor FILE, as faulthandler
// does: at most the innermost 100 frames. If it has more, and the thread is the main one, SIGNAL + 1 makes it
// write the outermost ones too, once Python can. The first signal goes to the thread that ran most since the
// last time, or since the process was first seen; or to the main thread if that ran half as long or more, as
// worker threads of a computation run beside the thread that asked for it.
// src/memory/profile/sitecustomize.py writes the line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/descriptor_posix.h"
#include "etstream/profile.h"
#include "memory/heap/statistics_posix.h"
#include "memory/process/process_watch.h"

namespace etstream {

/// A watch of the large blocks, which keeps those of the moment with most memory.
class BlockWatch {
 public:
  /// Keeps the blocks that are in use, with samples of their bytes, if memory and blocks together are at
  /// least what they were when it did so last, and have grown by 1 %, or 100 ms have passed.
  void look(const ProcessWatch& watch, const heap::LargeBlocks& blocks, std::uint64_t now);
  /// Adds the blocks that were kept last to the profile of a command that began at `begin`, whose jumps are
  /// known.
  void add_blocks(std::uint64_t begin, Profile& profile) const;

 private:
  struct Block {
    std::int32_t process = 0;
    std::uint64_t size = 0;
    std::uint64_t born = 0;
    std::uint64_t samples = 0;  // a hash; 0 if the bytes can't be read
  };

  std::uint64_t most_ = 0;
  std::uint64_t looked_ = 0;  // when blocks were kept last
  std::vector<Block> blocks_;
};

/// Returns the frames in the output of faulthandler, innermost first. Skips other lines, and frames that only
/// import: those of importlib and of etstream.
[[nodiscard]] std::vector<ProfileJump::Caller> read_stack(std::string_view dump);

/// A watch of how processes grow, which asks for the stacks of those that do.
class CallerWatch {
 public:
  /// Takes the new lines of the log.
  void take(std::string_view lines);
  /// Signals the processes that can report their stack and have grown by 64 MiB, or by 2 % if that is more,
  /// over their largest size.
  void look(const std::vector<WatchedProcess>& processes, std::uint64_t now);
  /// Adds the stacks to the profile of a command that began at `begin`, or a note if no process could report
  /// one.
  void add_jumps(std::uint64_t begin, Profile& profile) const;

 private:
  struct Moment {
    std::uint64_t time = 0;
    std::uint64_t anonymous = 0;
    std::uint64_t by = 0;
    std::uint64_t begin = 0;  // where its stack begins in the file
    bool is_of_main = false;  // of the main thread
    std::uint64_t asked = 0;  // when its outermost frames were asked for; 0 if they were not
    std::uint64_t end = 0;    // of the file, as it was looked at last for this stack
  };
  struct Told {
    int process = 0;
    int signal = 0;
    Descriptor file;
    std::uint64_t most = 0;
    bool is_halfway = false;              // whether it has grown by half a step
    std::map<int, std::uint64_t> before;  // how long its threads had run by then
    std::vector<Moment> moments;
  };

  void add(std::string_view line);
  static void look(Told& told, std::uint64_t anonymous, std::uint64_t now);
  /// Asks for the outermost frames of the last stack if it was cut. Returns whether it still has to come.
  [[nodiscard]] static bool awaits_outermost(Told& told, std::uint64_t now);

  std::vector<Told> told_;
};

}  // namespace etstream
