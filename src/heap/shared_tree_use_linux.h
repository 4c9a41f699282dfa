// SPDX-License-Identifier: BSD-3-Clause
//
// Memory in which all processes of a command tell of their heaps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "etstream/result.h"
#include "heap/statistics.h"

namespace etstream::heap {

class SharedTreeUse {
 public:
  /// Processes that are started from now on find it by their environment.
  [[nodiscard]] static Result<SharedTreeUse> make();
  SharedTreeUse(SharedTreeUse&& other) noexcept;
  SharedTreeUse& operator=(SharedTreeUse&&) = delete;
  SharedTreeUse(const SharedTreeUse&) = delete;
  SharedTreeUse& operator=(const SharedTreeUse&) = delete;
  ~SharedTreeUse();

  /// How many have a heap, or had one.
  [[nodiscard]] std::uint32_t processes() const noexcept { return tree_->processes.load(); }
  /// Calls `look` with the ProcessUse of each.
  template <class Look>
  void for_each_process(Look look) const {
    const std::size_t known = std::min<std::size_t>(processes(), TreeUse::kPlaces);
    std::for_each_n(tree_->places.begin(), known, look);
  }

 private:
  SharedTreeUse() = default;

  int file_ = -1;
  TreeUse* tree_ = nullptr;
};

}  // namespace etstream::heap
