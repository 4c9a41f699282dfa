// SPDX-License-Identifier: BSD-3-Clause
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
#include <string>
#include <vector>

#include "etstream/command_end.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

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
