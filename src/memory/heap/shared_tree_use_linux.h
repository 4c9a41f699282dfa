// SPDX-License-Identifier: BSD-3-Clause
//
// Memory into which all processes of a command write the counts of their heaps.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "core/base/try.h"
#include "core/io/descriptor_posix.h"
#include "etstream/result.h"
#include "memory/heap/environment.h"
#include "memory/heap/statistics.h"
#include "memory/heap/tree_use_file_posix.h"
#include "memory/process/command.h"

namespace etstream::heap {

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
