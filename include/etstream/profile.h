// SPDX-License-Identifier: BSD-3-Clause
//
// What a command takes of memory: by phase, by process, and over time. For Linux; on
// macOS run_profiled() is refused (kUnsupported), and profiles are read.
//
//   etstream::Profile profile;
//   auto ended = etstream::run_profiled({"python3", "export.py"}, profile);
//   if (ended) std::printf("%llu bytes\n", static_cast<unsigned long long>(profile.peak.anonymous));
//
// The command says itself where its phases begin and end: with ProfiledPhase (profiled_phase.h), or in Python
// with etstream.profile.phase().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/command_end.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// The most there was at a time, in bytes. Of a process, `resident` is the kernel's own high-water mark. The
/// other two are sampled every 10 ms, or up to 100 ms where that would take more than 1 % of a processor;
/// what the mark shows over the samples is taken for anonymous memory, so that no spike is missed.
struct PeakMemory {
  std::uint64_t resident = 0;
  std::uint64_t anonymous = 0;  // what no file backs
  std::uint64_t file =
      0;  // pages of files that are mapped or shared, those of `etstream run`'s heap among them
};

/// Of the whole process that is in it, not only what the phase adds.
struct PhaseProfile {
  std::string name;
  std::int32_t process = 0;
  std::uint32_t depth = 0;  // how many phases of its thread it lies in
  double start = 0;         // seconds since the command began
  double seconds = 0;
  double cpu_seconds = 0;
  std::uint64_t anonymous_before = 0;  // what there was as it began, in bytes
  PeakMemory peak;
  std::uint64_t read = 0;     // bytes
  std::uint64_t written = 0;  // bytes
  bool ended = true;          // or the process ended in it
};

struct ProcessProfile {
  std::int32_t process = 0;
  std::int32_t parent = 0;
  std::string command;
  double start = 0;  // seconds since the command began
  double seconds = 0;
  double cpu_seconds = 0;
  PeakMemory peak;
  std::uint64_t read = 0;     // bytes
  std::uint64_t written = 0;  // bytes
};

/// All processes together, in bytes.
struct ProfileSample {
  double time = 0;  // seconds since the command began
  std::uint64_t anonymous = 0;
  std::uint64_t file = 0;
  std::uint64_t spilled = 0;  // in blocks of `etstream run`'s heap, in memory or not
};

/// A moment at which a Python process was seen with more anonymous memory than ever before, and what a thread
/// of it that ran was doing.
struct ProfileJump {
  struct Caller {
    std::string file;
    std::int32_t line = 0;
    std::string function;
  };
  std::int32_t process = 0;
  double time = 0;              // seconds since the command began
  std::uint64_t anonymous = 0;  // in bytes
  std::uint64_t by = 0;         // over the most that it had at the jump before, in bytes
  std::vector<Caller> callers;  // innermost first; none for a thread that is not Python's
};

struct Profile {
  std::vector<std::string> command;
  CommandEnd end;
  double seconds = 0;
  double cpu_seconds = 0;
  PeakMemory peak;                        // of all processes at a time, and of any one of them
  std::uint64_t spilled = 0;              // at most, in bytes
  std::uint64_t page_cache_growth = 0;    // of the machine, at most, in bytes
  std::vector<PhaseProfile> phases;       // in the order in which they began
  std::vector<ProcessProfile> processes;  // in the order in which they were seen
  std::vector<ProfileSample> samples;     // at most 4096, each the most of its interval
  std::vector<ProfileJump> jumps;         // where they are asked for, in order of time
  std::vector<std::string> notes;         // what could not be measured here, for people
};

struct ProfileOptions {
  /// Ask processes that told how to (ETSTREAM_PROFILE_CALLERS, see docs/profile.md) what they do each time
  /// that they have grown by 64 MiB, or by 2 % where that is more.
  bool callers = false;
};

/// Runs the command and waits for it, passing on the signals that are sent to this process; one thread only.
/// The profile is complete however it ends. Memory: about 400 KiB a process. Errors: kInvalidArgument for no
/// command; kNotFound, kIo, kOutOfMemory, where it can't be started.
[[nodiscard]] ETSTREAM_EXPORT Result<CommandEnd> run_profiled(const std::vector<std::string>& command,
                                                              Profile& profile,
                                                              const ProfileOptions& options = {});

/// What took more than it may.
struct Excess {
  const PhaseProfile* phase = nullptr;  // of the profile; none for the command as a whole
  std::uint64_t anonymous = 0;          // in bytes, at most
};

/// What took most, if that is more than `limit` bytes of anonymous memory. With `name` only phases of that
/// name count. Error: kNotFound where no phase has the name.
[[nodiscard]] ETSTREAM_EXPORT Result<std::optional<Excess>> find_excess(const Profile& profile,
                                                                        std::uint64_t limit,
                                                                        const std::string& name = {});

/// What `etstream profile --json` wrote: the whole's figures, and of each phase its name, its time and its
/// peak. Errors: kInvalidArgument for other JSON, with its place; those of the source.
[[nodiscard]] ETSTREAM_EXPORT Result<Profile> read_profile(const ByteSource& json);

}  // namespace etstream
