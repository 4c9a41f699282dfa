// SPDX-License-Identifier: BSD-3-Clause
//
// The large blocks in the heaps of processes at the moment when all processes had most.
#pragma once

#include <cstdint>
#include <vector>

#include "etstream/profile.h"
#include "memory/heap/statistics_posix.h"
#include "memory/process/process_watch.h"

namespace etstream {

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

}  // namespace etstream
