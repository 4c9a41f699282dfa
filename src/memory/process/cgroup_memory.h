// SPDX-License-Identifier: BSD-3-Clause
//
// The memory that the control group of this process has, and that the kernel lets it have, as containers and
// CI runners set it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace etstream {

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
