// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a command whose large blocks of memory lie in a file instead of in memory: an export of a model that
// is larger than the machine's memory. Nothing in the command changes: a library that is loaded before all
// others serves malloc and its kin, in the command and in all that it starts. For Linux; on macOS it was
// never run, and run_out_of_core() is refused (kUnsupported).
//
//   etstream::OutOfCoreOptions options{.library = "/usr/lib/etstream/libetstream_heap.so"};
//   etstream::OutOfCoreUse use;
//   auto ended = etstream::run_out_of_core({"python3", "export.py"}, options, use);
//
// What the heap does about full disks, forks and its limit stands in docs/exporting.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etstream/command_end.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// Sizes are in bytes.
struct OutOfCoreOptions {
  /// The path of libetstream_heap.so, which is installed in the folder etstream beside the library.
  std::string library = {};
  /// Where the blocks go, on a disk: a folder in memory (tmpfs) is refused. Empty: as $TMPDIR says, /var/tmp
  /// otherwise.
  std::string spill_folder = {};
  /// How much of the blocks each process keeps mapped in; what is over it is written to the disk. 0: as much
  /// as the system likes.
  std::uint64_t limit = 0;
  /// Blocks of this size or more lie in the file; 16 KiB at least.
  std::uint64_t from = 16 << 10;
};

/// What a command and all its processes took at most, in bytes where nothing else is said. Of processes each
/// of which was sampled every 10 ms.
struct OutOfCoreUse {
  double seconds = 0;
  std::uint32_t processes = 0;
  /// Together, at a time: memory that no file backs, what is resident with files' pages, and what lay in
  /// blocks.
  std::uint64_t anonymous = 0;
  std::uint64_t resident = 0;
  std::uint64_t spilled = 0;
  /// In all.
  std::uint64_t blocks = 0;
  std::uint64_t paged_out = 0;
  /// Blocks that there was no room for.
  std::uint64_t refused = 0;
};

/// The calling process becomes the command. Returns only the reason why it can't: kInvalidArgument (the
/// folder, the library), kNotFound (the command), kIo (it can't be run), kOutOfMemory.
[[nodiscard]] ETSTREAM_EXPORT Error become_out_of_core(const std::vector<std::string>& command,
                                                       const OutOfCoreOptions& options);

/// Runs the command and waits for it, passing on the signals that are sent to this process; one thread only.
/// Its use is known however it ends.
[[nodiscard]] ETSTREAM_EXPORT Result<CommandEnd> run_out_of_core(const std::vector<std::string>& command,
                                                                 const OutOfCoreOptions& options,
                                                                 OutOfCoreUse& use);

}  // namespace etstream
