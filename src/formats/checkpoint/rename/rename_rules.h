// SPDX-License-Identifier: BSD-3-Clause
//
// RenameRuleSet: rules for the names of tensors, as they are written in JSON, and the patterns in them; and
// the rows of query and key projections in the order that interleaved rotary embeddings take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"

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

/// A name that a tensor, or a part of one, gets.
struct RenameTarget {
  enum class Rows { kShare, kNumber, kColumns };

  NamePattern key{""};
  std::optional<NamePattern> unless;
  bool interleave_rope = false;
  Rows rows = Rows::kShare;  // of a part
  std::uint64_t number = 0;  // of rows, for kNumber
};

struct RenameRule {
  std::string pattern;
  std::vector<RenameTarget> targets;  // none for a tensor that is left out
  bool splits = false;                // each target is a part
};

struct RenameRuleSet {
  /// The most rules whose pattern has '*', as each name is compared with all of them.
  static constexpr std::size_t kMostPatterns = 1024;

  /// Returns the first rule that matches `name`, or null. `runs` gets the parts that its '*' stand for, if it
  /// has any.
  [[nodiscard]] const RenameRule* find(std::string_view name, std::vector<std::string_view>& runs) const;
  /// Adds a rule. Error: kInvalidArgument for a pattern that comes twice, a target with more '*' than its
  /// pattern, or more than kMostPatterns.
  [[nodiscard]] Result<void> add(RenameRule rule);
  [[nodiscard]] bool has(std::string_view pattern) const { return rules_by_pattern_.contains(pattern); }

  std::vector<RenameRule> rules;
  bool is_ready_made = false;
  std::vector<std::string> model_types;  // of the config.json of models that ready-made rules are for

 private:
  struct Pattern {
    NamePattern pattern;
    std::size_t rule = 0;
  };
  std::vector<Pattern> patterns_;  // with '*', in order
  std::map<std::string, std::size_t, std::less<>> rules_by_pattern_;
};

/// Reorders `rows`, which are heads of `head_dim` rows of `row_size` bytes each: row j + s * head_dim / 2 of
/// each head (s is 0 or 1) becomes its row 2 * j + s. `rows` is read when the result is, in at most 256 KiB
/// of memory. `head_dim` is even; neither it nor `row_size` is 0, and `rows` is whole heads.
[[nodiscard]] ByteSource interleave_rope(ByteSource rows, std::uint64_t head_dim, std::uint64_t row_size);

}  // namespace etstream
