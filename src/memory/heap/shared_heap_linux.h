// SPDX-License-Identifier: BSD-3-Clause
//
// The folder that holds the heap's file, and the memory into which all processes of a command write the
// counts of their heaps. These functions may allocate: they run before the heap does.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/descriptor_posix.h"
#include "etstream/result.h"
#include "memory/heap/spill_file.h"
#include "memory/heap/statistics_posix.h"
#include "memory/process/command.h"

namespace etstream::heap {

/// Returns the error about a folder that can't hold the heap: kNotFound, kIo, or kInvalidArgument if folders
/// of its kind can't, or if a limit of the process's is too low.
[[nodiscard]] inline Error cannot_spill_to(const std::string& folder, const SpillError& failed) {
  if (failed.reason == nullptr) return system_error(failed.code, "large blocks can't lie in", folder);
  const LowLimit& limit = failed.limit;
  Error error{ErrorCode::kInvalidArgument,
              text("large blocks can't lie in {}: {}", quote(folder), failed.reason), failed.code};
  if (limit.name != nullptr) {
    error.message += text(": {} is {}, and the heap needs {} besides what the program does", limit.name,
                          readable_size(limit.set), readable_size(limit.needed));
    error.advice = {AdviceTerm::kRaiseLimit};
  }
  return error;
}

/// Returns the absolute path of `folder`. If it is empty: $TMPDIR, or /var/tmp, as /tmp is often in memory.
[[nodiscard]] inline Result<std::string> spill_folder(const std::string& folder) {
  const char* chosen = folder.c_str();
  if (folder.empty()) {
    const char* const temporary = std::getenv("TMPDIR");
    chosen = temporary != nullptr && *temporary != '\0' ? temporary : "/var/tmp";
  }
  const std::unique_ptr<char, decltype(&std::free)> whole(::realpath(chosen, nullptr), std::free);
  if (whole == nullptr) return cannot_spill_to(chosen, {errno, nullptr});
  return std::string(whole.get());
}

class SharedTreeUse {
 public:
  /// Opens the memory that a process above shares already, so that both see the same counts; else makes it.
  /// Processes that are started from now on find it by their environment.
  [[nodiscard]] static Result<SharedTreeUse> open() {
    SharedTreeUse out;
    out.file_ = Descriptor(open_tree_use());
    out.is_joined_ = static_cast<bool>(out.file_);
    if (!out.is_joined_) {
      ETSTREAM_ASSIGN(out.file_, share_memory("etstream-heap", sizeof(TreeUse), kReportVariable));
    }
    void* const mapped =
        ::mmap(nullptr, sizeof(TreeUse), PROT_READ | PROT_WRITE, MAP_SHARED, out.file_.get(), 0);
    if (mapped == MAP_FAILED) return out_of_resources("share memory with the command", errno);
    out.tree_.reset(static_cast<TreeUse*>(mapped));
    return out;
  }

  /// Returns whether processes that this one has not started may have counts in it too.
  [[nodiscard]] bool is_joined() const noexcept { return is_joined_; }
  /// Returns how many processes have a heap, or had one.
  [[nodiscard]] std::uint32_t processes() const noexcept { return tree_->processes.load(); }
  /// Calls `look` with the ProcessUse of each.
  template <class Look>
  void for_each_process(Look look) const {
    const std::size_t known = std::min<std::size_t>(processes(), TreeUse::kPlaces);
    std::for_each_n(tree_->places.begin(), known, look);
  }
  /// Returns the bytes in the heap of each process that has, or had, one.
  [[nodiscard]] std::map<int, std::uint64_t> spilled() const {
    std::map<int, std::uint64_t> out;
    for_each_process([&](const ProcessUse& process) { out[process.process] = process.live; });
    return out;
  }
  [[nodiscard]] const LargeBlocks& large_blocks() const noexcept { return tree_->large; }

 private:
  struct Unmap {
    void operator()(TreeUse* tree) const noexcept { ::munmap(tree, sizeof(TreeUse)); }
  };

  SharedTreeUse() = default;

  Descriptor file_;
  bool is_joined_ = false;
  std::unique_ptr<TreeUse, Unmap> tree_;
};

}  // namespace etstream::heap
