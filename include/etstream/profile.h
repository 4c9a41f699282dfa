// SPDX-License-Identifier: BSD-3-Clause
//
// The end of a command: its exit code, or the signal that ended it.
//
//   const etstream::CommandEnd end{.exit_code = 3};
//   if (end.exit_code != 0 || end.signal != 0) std::printf("it failed\n");
//
// Measures the memory that a command uses: by phase, by process, and over time. For Linux; other
// systems can only read and compare profiles.
//
//   etstream::Profile profile;
//   auto ended = etstream::run_profiled({"python3", "export.py"}, profile);
//   if (ended) std::printf("%llu bytes\n", static_cast<unsigned long long>(profile.peak.anonymous));
//
// The command itself marks where its phases begin and end: with ProfiledPhase, or in
// Python with etstream.profile.phase().
//
// Marks a phase of a program that `etstream profile` or run_profiled() runs. For Linux.
//
//   const etstream::ProfiledPhase phase("lower");  // up to the end of its block
//
// Runs a command with its large blocks of memory in a file, such as the export of a model that is larger than
// the machine's memory. The command needs no change: a preloaded library serves malloc and related functions
// in the command and in all processes that it starts. For Linux.
//
//   etstream::OutOfCoreOptions options{.library = "/usr/lib/etstream/libetstream_heap.so"};
//   etstream::OutOfCoreUse use;
//   auto ended = etstream::run_out_of_core({"python3", "export.py"}, options, use);
//
// docs/exporting.md describes how the heap handles full disks, forks and its limit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

/// Either the command exited with `exit_code`, or `signal` ended it; the other one is 0.
struct CommandEnd {
  int exit_code = 0;
  int signal = 0;
};

/// Peaks, in bytes. For a process, `resident` is the kernel's own high-water mark. The other two are sampled
/// every 10 ms, or up to 100 ms if that would use more than 1 % of a processor. If the mark is above the
/// samples, the difference counts as anonymous memory, so that no spike is missed.
struct PeakMemory {
  std::uint64_t resident = 0;
  std::uint64_t anonymous = 0;  // memory that no file on a disk backs: shared memory and tmpfs too
  std::uint64_t file = 0;       // pages of mapped files on a disk, and of `etstream run`'s heap
};

/// A phase. Time is that of the whole process during it, not only what the phase adds; so is memory, and
/// `with_descendants` is that of the processes below it too.
struct PhaseProfile {
  std::string name;
  std::int32_t process = 0;
  std::uint32_t depth = 0;  // how many phases of its thread enclose it
  double start = 0;         // seconds since the command began
  double seconds = 0;
  double cpu_seconds = 0;
  std::uint64_t anonymous_before = 0;  // at its start, in bytes
  PeakMemory peak;                     // of the process alone
  PeakMemory with_descendants;  // of it and the processes below it at a time, or of one of these if higher
  std::uint64_t read = 0;       // bytes
  std::uint64_t written = 0;    // bytes
  bool ended = true;            // false if the process ended in it
};

/// A process that the command started, or the command's own.
struct ProcessProfile {
  std::int32_t process = 0;
  std::int32_t parent = 0;
  std::string command;
  double start = 0;  // seconds since the command began
  double seconds = 0;
  double cpu_seconds = 0;
  PeakMemory peak;
  std::uint64_t last_anonymous = 0;  // as it was seen last, in bytes
  std::uint64_t read = 0;            // bytes
  std::uint64_t written = 0;         // bytes
};

/// The totals of all processes, in bytes. Anonymous pages that several processes have count once.
struct ProfileSample {
  double time = 0;  // seconds since the command began
  std::uint64_t anonymous = 0;
  std::uint64_t file = 0;
  std::uint64_t spilled = 0;  // in blocks of `etstream run`'s heap, resident or not
};

/// The growth of a process's anonymous memory: a time in which it did not fall, of the largest of these; or
/// with ProfileOptions::callers, a moment at which a Python process was seen with more than ever before, and
/// the call stack of one of its running threads.
struct ProfileJump {
  /// A line of Python that was running.
  struct Caller {
    std::string file;
    std::int32_t line = 0;
    std::string function;

    bool operator==(const Caller&) const = default;
  };
  std::int32_t process = 0;
  std::string phase;            // the innermost of the process, or of one above it; empty if it was in none
  double begin = 0;             // seconds since the command began; with callers, that of the jump before
  double time = 0;              // the end
  std::uint64_t anonymous = 0;  // at the end, in bytes; with callers, with the blocks in its heap
  std::uint64_t by = 0;         // the growth; with callers, over its peak at the jump before; in bytes
  std::vector<Caller> callers;  // innermost first; empty for a thread that is not Python's
};

/// The growth that jumps had at one line of the user's own code: the innermost of their callers that is not
/// of an installed package or of Python itself.
struct ProfileLine {
  ProfileJump::Caller caller;
  std::uint64_t by = 0;  // the sum, in bytes
  std::uint32_t jumps = 0;
};

/// Blocks of 1 MiB and more in the heap of `etstream run` that were in use when all processes had most, by
/// the jump in which they came: its callers made them, or called what did.
struct ProfileBlocks {
  std::int32_t process = 0;
  std::vector<ProfileJump::Caller> callers;  // as of the jump; empty if none came within 0.2 s
  std::uint64_t size = 0;                    // of all, in bytes
  std::uint32_t blocks = 0;                  // their number
  std::uint64_t repeated = 0;                // of those that look like another block of all these, in bytes
};

/// The result of profiling a command.
struct Profile {
  std::vector<std::string> command;
  CommandEnd end;
  double seconds = 0;
  double cpu_seconds = 0;
  PeakMemory peak;                        // of all processes at a time, or of one process if higher
  std::uint64_t spilled = 0;              // peak, in bytes
  std::uint64_t page_cache_growth = 0;    // of the machine, peak, in bytes
  std::uint64_t cgroup_growth = 0;        // of its anonymous and shared memory, peak, in bytes
  std::uint64_t cgroup_limit = 0;         // of the command's control group, in bytes; 0 if there is none
  std::uint64_t cgroup_kills = 0;         // processes of the group that its limit has ended meanwhile
  std::vector<PhaseProfile> phases;       // in the order in which they began
  std::vector<ProcessProfile> processes;  // in the order in which they were seen
  std::vector<ProfileSample> samples;     // at most 4096, each with the peaks of its interval
  std::vector<ProfileJump> jumps;         // in order of time; without callers at most 20
  std::vector<ProfileLine> lines;         // with callers, the largest first
  std::vector<ProfileBlocks> blocks;      // with callers and a heap, the largest first
  std::vector<std::string> notes;         // what could not be measured, for people
};

/// Options of run_profiled().
struct ProfileOptions {
  /// Asks processes that support it (ETSTREAM_PROFILE_CALLERS, see docs/profile.md) for their call stack each
  /// time they have grown by 64 MiB, or by 2 % if that is more.
  bool callers = false;
};

/// Runs the command and waits for it; forwards the signals that are sent to this process. Only one thread may
/// call it. The profile is complete however the command ends. Memory: about 400 KiB per process, and as much
/// for one with children. Errors: kInvalidArgument for no command; kNotFound, kIo, kOutOfMemory if it can't
/// be started.
[[nodiscard]] ETSTREAM_EXPORT Result<CommandEnd> run_profiled(const std::vector<std::string>& command,
                                                              Profile& profile,
                                                              const ProfileOptions& options = {});

/// Runs the command in a phase of this name, if this process is being profiled; else just runs it. Waits for
/// it, and forwards signals. Only one thread may call it. Errors: as of run_profiled().
[[nodiscard]] ETSTREAM_EXPORT Result<CommandEnd> run_in_phase(const std::vector<std::string>& command,
                                                              const std::string& name);

/// A phase, or the whole command, that used more memory than the limit.
struct Excess {
  const PhaseProfile* phase = nullptr;  // of the profile; null if there was none at the peak
  std::uint64_t anonymous = 0;          // peak, in bytes
};

/// Returns the most anonymous memory that the command used, and the phase with the largest part of it, if
/// that is more than `limit` bytes. With `name`, only phases of that name count, with the processes below.
/// Error: kNotFound, which lists the phases, if none has the name.
[[nodiscard]] ETSTREAM_EXPORT Result<std::optional<Excess>> find_excess(const Profile& profile,
                                                                        std::uint64_t limit,
                                                                        const std::string& name = {});

/// Phases of two profiles, of one name and at one place among the phases around them; null where one has
/// none.
struct ComparedPhase {
  std::string name;
  std::uint32_t depth = 0;
  const PhaseProfile* before = nullptr;
  const PhaseProfile* after = nullptr;
};

/// Compares the phases of two profiles, which outlive the result: those of `after` in their order, and each
/// that only `before` has where it would be. Phases of one name are compared in the order in which they
/// began.
[[nodiscard]] ETSTREAM_EXPORT std::vector<ComparedPhase> compare_phases(const Profile& before,
                                                                        const Profile& after);

/// Reads the output of `etstream profile --json`: the figures of the whole command, how it ended, and each
/// phase's name, process, depth, times and peaks, and the samples of anonymous memory. Errors: kCorrupt for
/// invalid JSON; kInvalidArgument for other JSON, with its line; errors reading the source.
[[nodiscard]] ETSTREAM_EXPORT Result<Profile> read_profile(const ByteSource& json);

/// While it exists, its thread is in the phase; phases of a thread are nested. Does nothing if the program is
/// not profiled. Otherwise it resets the process's high-water mark of resident memory (VmHWM) and takes about
/// 50 us. Never fails.
class ETSTREAM_EXPORT ProfiledPhase {
 public:
  /// `name` is any text; line breaks in it become spaces.
  explicit ProfiledPhase(std::string_view name) noexcept;
  ProfiledPhase(const ProfiledPhase&) = delete;
  ProfiledPhase& operator=(const ProfiledPhase&) = delete;
  ~ProfiledPhase();
};

/// The smallest limit. A lower one is a slip: a process that runs at all has more than that in blocks.
inline constexpr std::uint64_t kLeastOutOfCoreLimit = 1 << 20;
/// The smallest block that can be in the file.
inline constexpr std::uint64_t kLeastOutOfCoreBlock = 16 << 10;

/// Sizes are in bytes.
struct OutOfCoreOptions {
  /// The path of libetstream_heap.so, which is installed in the folder etstream next to the library.
  std::string library = {};
  /// The folder for the blocks, on a disk: a folder in memory (tmpfs) is refused. If empty, $TMPDIR, or
  /// /var/tmp if that is not set.
  std::string spill_folder = {};
  /// The most bytes of its blocks that each process keeps resident, at least kLeastOutOfCoreLimit; the rest
  /// is written to the disk. With 0, the system decides.
  std::uint64_t limit = 0;
  /// Blocks of at least this size are in the file; at least kLeastOutOfCoreBlock.
  std::uint64_t from = kLeastOutOfCoreBlock;
  /// A function that is called with the reason if there can be no heap: because of the folder, the library,
  /// or a limit of the process's (ulimit -v, -d, -f). The command then runs without it. If the function is
  /// empty, that is an error.
  std::function<void(const Error&)> without_heap = {};
};

/// The resources that a command and all its processes used. Sizes are in bytes. Memory is sampled every 10 to
/// 100 ms.
struct OutOfCoreUse {
  double seconds = 0;
  std::uint32_t processes = 0;
  /// Peaks of the totals over all processes: memory that no file backs; resident memory, pages of files
  /// included; and memory in blocks. Pages that no file backs count once where processes share them.
  std::uint64_t anonymous = 0;
  std::uint64_t resident = 0;
  std::uint64_t spilled = 0;
  /// The most mappings that a process had at a time. Linux allows vm.max_map_count, 65,530 by default.
  std::uint64_t mappings = 0;
  /// Totals: the number of blocks, and the bytes written to the disk.
  std::uint64_t blocks = 0;
  std::uint64_t paged_out = 0;
  /// The number of blocks refused for lack of room.
  std::uint64_t refused = 0;
};

/// Replaces the calling process with the command. Returns only if that fails: kInvalidArgument (the
/// sizes, the folder, the library, a limit of the process's), kNotFound (the command), kIo (it can't be run),
/// kOutOfMemory.
[[nodiscard]] ETSTREAM_EXPORT Error become_out_of_core(const std::vector<std::string>& command,
                                                       const OutOfCoreOptions& options);

/// Runs the command and waits for it; forwards the signals that are sent to this process. Only one thread may
/// call it. Fills `use` however the command ends.
[[nodiscard]] ETSTREAM_EXPORT Result<CommandEnd> run_out_of_core(const std::vector<std::string>& command,
                                                                 const OutOfCoreOptions& options,
                                                                 OutOfCoreUse& use);

}  // namespace etstream
