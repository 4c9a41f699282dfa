// SPDX-License-Identifier: BSD-3-Clause
//
// KeyRuleSet: rules for the names of tensors, as they are written in JSON.
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
#include "weights/rename/key_pattern.h"

namespace etstream {

/// A name that a tensor, or a part of one, gets.
struct KeyTarget {
  enum class Rows { kShare, kNumber, kColumns };

  KeyPattern key{""};
  std::optional<KeyPattern> unless;
  bool interleave_rope = false;
  Rows rows = Rows::kShare;  // of a part
  std::uint64_t number = 0;  // of rows, for kNumber
};

struct KeyRule {
  std::string pattern;
  std::vector<KeyTarget> targets;  // none for a tensor that is left out
  bool splits = false;             // each target is a part
};

struct KeyRuleSet {
  /// The first rule that matches `name`, or none. `runs` gets what its '*' stand for, if it has any.
  [[nodiscard]] const KeyRule* find(std::string_view name, std::vector<std::string_view>& runs) const;
  /// Error: kInvalidArgument for a pattern that comes twice, or a target with more '*' than its pattern.
  [[nodiscard]] Result<void> add(KeyRule rule);

  std::vector<KeyRule> rules;
  bool is_ready_made = false;

 private:
  struct Pattern {
    KeyPattern pattern;
    std::size_t rule = 0;
  };
  std::vector<Pattern> patterns_;  // with '*', in order
  std::map<std::string, std::size_t, std::less<>> rules_by_pattern_;
};

/// The rules in a JSON object. Errors: see KeyRules::read.
[[nodiscard]] Result<KeyRuleSet> read_key_rules(const ByteSource& json);
/// Those in the member `name` of an object of such objects; none without a member of that name.
[[nodiscard]] Result<std::optional<KeyRuleSet>> read_key_rules(const ByteSource& json, std::string_view name);

}  // namespace etstream
