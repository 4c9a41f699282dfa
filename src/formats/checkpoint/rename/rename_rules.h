// SPDX-License-Identifier: BSD-3-Clause
//
// The patterns in rules for the names of tensors; and the rows of query and key projections in the order that
// interleaved rotary embeddings take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"

namespace etstream {

/// Names of tensors with '*' for any one or more characters other than '.', and at most one "**" for any one
/// or more characters.
class NamePattern {
 public:
  explicit NamePattern(std::string_view pattern);

  /// Returns the number of '*' in it; "**" is one.
  [[nodiscard]] std::size_t stars() const noexcept { return pieces_.size() - 1; }
  [[nodiscard]] std::size_t crossings() const noexcept { return crossings_; }  // the number of "**"
  /// Returns whether `key` matches. If so, `runs` gets the part of `key` that each '*' stands for: each as
  /// short as possible, except the last. Time: that of searching `key` for each piece once.
  [[nodiscard]] bool matches(std::string_view key, std::vector<std::string_view>& runs) const;
  /// Returns the pattern with a run in place of each '*'. There are at least as many runs as '*'.
  [[nodiscard]] std::string filled(const std::vector<std::string_view>& runs) const;

  friend bool operator==(const NamePattern&, const NamePattern&) = default;

 private:
  std::vector<std::string> pieces_;  // what is between the '*'; one more than those
  std::size_t crossing_ = 0;         // the piece behind "**"
  std::size_t crossings_ = 0;
};

/// Reorders `rows`, which are heads of `head_dim` rows of `row_size` bytes each: row j + s * head_dim / 2 of
/// each head (s is 0 or 1) becomes its row 2 * j + s. `rows` is read when the result is, in at most 256 KiB
/// of memory. `head_dim` is even; neither it nor `row_size` is 0, and `rows` is whole heads.
[[nodiscard]] ByteSource interleave_rope(ByteSource rows, std::uint64_t head_dim, std::uint64_t row_size);

}  // namespace etstream
