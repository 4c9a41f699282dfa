// SPDX-License-Identifier: BSD-3-Clause
//
// The resources that a process uses, from /proc; a process that is gone, or another user's, has no figures.
// The memory that the control group of this process has, and that the kernel lets it have, as containers and
// CI runners set it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace etstream {

/// The memory of a process in bytes.
struct ProcessMemory {
  std::uint64_t high_water = 0;  // of `resident`, since the process began or had it reset
  std::uint64_t resident = 0;    // all that follows
  std::uint64_t anonymous = 0;   // what no file on a disk backs
  std::uint64_t file = 0;        // pages of mapped files on a disk
  std::uint64_t shared = 0;      // of `anonymous`: shared memory, and mapped files in tmpfs

  /// Takes away what counts for other processes.
  void leave_out(const ProcessMemory& others) noexcept {
    resident -= std::min(others.anonymous, anonymous);
    anonymous -= std::min(others.anonymous, anonymous);
    shared -= std::min(others.shared, shared);
  }
  /// Adds the figures of another process, but its mark: the two need not have been reached at one time.
  void add(const ProcessMemory& other) noexcept {
    resident += other.resident;
    anonymous += other.anonymous;
    file += other.file;
    shared += other.shared;
  }
  /// Raises each figure to that of `other`, if it is larger.
  void raise_to(const ProcessMemory& other) noexcept {
    high_water = std::max(high_water, other.high_water);
    resident = std::max(resident, other.resident);
    anonymous = std::max(anonymous, other.anonymous);
    file = std::max(file, other.file);
    shared = std::max(shared, other.shared);
  }
};

[[nodiscard]] std::optional<ProcessMemory> memory_of(int process);

/// Returns `anonymous` and `shared` with each page divided by the number of processes that map it. The kernel
/// walks all its pages, which takes 5 to 50 ms for 1 GiB. Returns nothing if it doesn't tell.
[[nodiscard]] std::optional<ProcessMemory> share_of(int process);

/// Returns whether the process has not called exec since it was forked.
[[nodiscard]] bool is_copy(int process);

/// Returns how many mappings it has, up to the most that Linux allows by default.
[[nodiscard]] std::uint64_t mappings_of(int process);

/// The work of a process since it began.
struct ProcessWork {
  double cpu_seconds = 0;     // of all its threads
  std::uint64_t read = 0;     // bytes that it asked for, from wherever they came; mapped files are not in it
  std::uint64_t written = 0;  // bytes
};

/// Returns the work of a process. `read` and `written` are 0 if the system doesn't tell them.
[[nodiscard]] std::optional<ProcessWork> work_of(int process);

/// Returns whether the process has a handler for the signal.
[[nodiscard]] bool catches(int process, int signal);

/// Returns how long each of its threads has run, by their numbers, in nanoseconds; 0 if the kernel does not
/// tell.
[[nodiscard]] std::map<int, std::uint64_t> thread_times_of(int process);

/// Returns the program and its arguments, with spaces between; empty for a process that is gone.
[[nodiscard]] std::string command_line_of(int process);

/// Returns the processes that its threads have started, and that run or have not been waited for yet.
[[nodiscard]] std::vector<int> children_of(int process);

/// Returns whether children_of() can tell.
[[nodiscard]] bool can_tell_children();

/// Returns the page cache of the machine, in bytes; 0 if the system does not tell.
[[nodiscard]] std::uint64_t page_cache();

/// Returns what a clock shows, in nanoseconds.
[[nodiscard]] std::uint64_t nanoseconds_of(clockid_t clock);

struct CgroupMemory {
  std::uint64_t limit = 0;  // in bytes, the lowest of the group and those around it; 0 if there is none
  std::uint64_t kills = 0;  // processes of the group that were killed because a limit was reached, so far
  std::string use = {};     // the file that cgroup_use() reads
};

/// The memory that is charged to a group and those in it, in bytes.
struct CgroupUse {
  std::uint64_t anonymous = 0;  // of processes alone
  std::uint64_t shared = 0;     // shared memory and files in tmpfs, whether a process maps them or not
};

/// Reads a group's use: a thirtieth of a millisecond. Returns nothing where there is no such file.
[[nodiscard]] std::optional<CgroupUse> cgroup_use(const std::string& file);

/// Reads the figures of this process's group, of either version of control groups; nothing if there are none.
/// `root` is the folder with proc and sys.
[[nodiscard]] std::optional<CgroupMemory> cgroup_memory(const std::string& root = "/");

/// A control group for a command, below that of this process, so that its limits apply too. Where the system
/// lets none be made, the command stays in the group of this process. Signals are to be held while it lives.
class CommandGroup {
 public:
  /// Makes the group, if it should, and moves this process into it: a command that it starts is in it.
  explicit CommandGroup(bool makes_one);
  CommandGroup(const CommandGroup&) = delete;
  CommandGroup& operator=(const CommandGroup&) = delete;
  /// Removes the group. Moves the processes that are left in it to the one above.
  ~CommandGroup();

  /// Moves this process back, once the command was started.
  void leave() const;
  /// Returns the figures of the group that the command is in.
  [[nodiscard]] CgroupMemory memory() const;

 private:
  std::filesystem::path own_;
  std::filesystem::path made_;  // empty if there is none
};

}  // namespace etstream
