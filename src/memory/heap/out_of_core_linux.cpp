// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/profile.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>

#include "core/base/text.h"
#include "core/base/try.h"
#include "memory/heap/heap_posix.h"
#include "memory/heap/shared_heap_linux.h"
#include "memory/heap/statistics_posix.h"
#include "memory/process/command.h"
#include "memory/process/process_figures.h"
#include "memory/process/process_watch.h"

namespace etstream {
namespace {

constexpr const char* kPreloadVariable = "LD_PRELOAD";

Result<std::string> usable_folder(const OutOfCoreOptions& options) {
  ETSTREAM_ASSIGN(std::string folder, heap::spill_folder(options.spill_folder));
  if (const heap::SpillError failed = heap::Heap::try_open(folder.c_str())) {
    return heap::cannot_spill_to(folder, failed);
  }
  return folder;
}

Result<void> check_sizes(const OutOfCoreOptions& options) {
  if (options.limit != 0 && options.limit < kLeastOutOfCoreLimit) {
    return make_error(ErrorCode::kInvalidArgument, "a limit of {}: expected {} or more, or 0 for none",
                      counted(options.limit, "byte"), readable_size(kLeastOutOfCoreLimit));
  }
  if (options.from < kLeastOutOfCoreBlock) {
    return make_error(ErrorCode::kInvalidArgument, "blocks from {} on: expected {} or more",
                      counted(options.from, "byte"), readable_size(kLeastOutOfCoreBlock));
  }
  return {};
}

/// Sets the variables by which commands load the library, and those that the library reads. Error:
/// kInvalidArgument.
Result<void> set_environment(const OutOfCoreOptions& options) {
  Result<std::string> folder = usable_folder(options);
  if (!folder) {
    // Other codes are for errors of the command.
    folder.error().code = ErrorCode::kInvalidArgument;
    return std::move(folder).error();
  }
  if (::access(options.library.c_str(), R_OK) != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 text("there is no {}, which serves the blocks", quote(options.library)), errno};
  }
  if (options.library.find_first_of(" :") != std::string::npos) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the path of {} has a space or a colon, which {} can't have", quote(options.library),
                      kPreloadVariable);
  }
  const char* const before = std::getenv(kPreloadVariable);
  const std::string preloaded =
      before != nullptr && *before != '\0' ? text("{}:{}", options.library, before) : options.library;
  ::setenv(kPreloadVariable, preloaded.c_str(), 1);
  ::setenv(heap::kFolderVariable, folder->c_str(), 1);
  ::setenv(heap::kLimitVariable, std::to_string(options.limit).c_str(), 1);
  ::setenv(heap::kFromVariable, std::to_string(options.from).c_str(), 1);
  return {};
}

/// Makes the command load the library. If there can be no heap, calls options.without_heap unless it is
/// empty. Errors: kInvalidArgument.
Result<void> prepare(const std::vector<std::string>& command, const OutOfCoreOptions& options) {
  if (command.empty()) return make_error(ErrorCode::kInvalidArgument, "there is no command to run");
  ETSTREAM_TRY(check_sizes(options));
  auto set = set_environment(options);
  if (set || !options.without_heap) return set;
  options.without_heap(set.error());
  return {};
}

/// Watches the heaps of a command's processes.
class HeapWatch {
 public:
  HeapWatch(const heap::SharedTreeUse& shared, OutOfCoreUse& use) : shared_(shared), use_(use) {}

  /// Looks at the processes as they are now.
  void look() {
    watch_.look(::getpid(), nanoseconds_of(CLOCK_MONOTONIC), shared_.spilled());
    for (const WatchedProcess& each : watch_.processes()) {
      if (each.runs) use_.mappings = std::max(use_.mappings, mappings_of(each.process));
    }
  }

  /// Adds the peaks, and what the processes counted themselves.
  void add_counts() {
    for (const MemorySample& sample : watch_.total().samples()) {
      use_.anonymous = std::max(use_.anonymous, sample.anonymous);
      use_.resident = std::max(use_.resident, sample.resident);
      use_.spilled = std::max(use_.spilled, sample.spilled);
    }
    if (!shared_.is_joined()) use_.processes = shared_.processes();
    for_each_process([&](const heap::ProcessUse& process) {
      if (shared_.is_joined()) ++use_.processes;
      use_.blocks += process.blocks.load();
      use_.paged_out += process.paged_out.load();
      use_.refused += process.refused.load();
      use_.spilled = std::max(use_.spilled, process.peak.load());
    });
  }

 private:
  /// Calls `look` with the counts of each process of the command: others have counts in the memory that a
  /// process above shares.
  template <class Look>
  void for_each_process(Look look) const {
    shared_.for_each_process([&](const heap::ProcessUse& process) {
      if (!shared_.is_joined() || watch_.has_seen(process.process.load())) look(process);
    });
  }

  const heap::SharedTreeUse& shared_;
  OutOfCoreUse& use_;
  ProcessWatch watch_;
};

}  // namespace

Error become_out_of_core(const std::vector<std::string>& command, const OutOfCoreOptions& options) {
  if (auto prepared = prepare(command, options); !prepared) return std::move(prepared).error();
  return become(command);
}

Result<CommandEnd> run_out_of_core(const std::vector<std::string>& command, const OutOfCoreOptions& options,
                                   OutOfCoreUse& use) {
  ETSTREAM_TRY(prepare(command, options));
  ETSTREAM_ASSIGN(const heap::SharedTreeUse shared, heap::SharedTreeUse::open());
  // A process whose parent ends becomes a child of this one.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  HeapWatch watch(shared, use);
  const auto began = std::chrono::steady_clock::now();
  ETSTREAM_ASSIGN(const CommandEnd end, run_watched(command, [&] { watch.look(); }));
  use.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  watch.add_counts();
  return end;
}

}  // namespace etstream
