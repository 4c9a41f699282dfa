// SPDX-License-Identifier: BSD-3-Clause
//
// WalkBudget: bounds the work of walking through all of a flatbuffer, whose objects may be shared over and
// over.
#pragma once

#include <cstdint>

#include "base/text.h"
#include "etstream/result.h"
#include "flatbuffer/flatbuffer_view.h"

namespace etstream {

/// Counts what is reached against the file's size, so that no walk takes longer than the file is large.
class WalkBudget {
 public:
  /// `view` outlives the budget.
  explicit WalkBudget(const FlatbufferView& view) : view_(view), left_(kMostSharing * view.file().size()) {}

  /// `bytes` at `position` are walked through. Error: kCorrupt once they are too many.
  Result<void> spend(std::uint64_t position, std::uint64_t bytes) {
    if (bytes > left_) {
      return view_.corrupt(position,
                           text("objects that are shared at most {} times on average", kMostSharing),
                           "more sharing");
    }
    left_ -= bytes;
    return {};
  }

 private:
  /// How often each byte may be reached on average. ExecuTorch's writers share nothing but vtables.
  static constexpr std::uint64_t kMostSharing = 4;

  const FlatbufferView& view_;
  std::uint64_t left_;
};

}  // namespace etstream
