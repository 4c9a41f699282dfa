// SPDX-License-Identifier: BSD-3-Clause
#include "weights/rename/key_rule_set.h"

#include <set>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "flatbuffer/json_stream.h"

namespace etstream {
namespace {

using JsonKind = JsonEvent::Kind;

/// Builds rules from the events of their object: a state for each place in its grammar.
class KeyRuleHandler final : public JsonHandler {
 public:
  explicit KeyRuleHandler(KeyRuleSet& out) : out_(out) {}

  Result<void> on(const JsonEvent& event) override {
    auto taken = dispatch(event);
    if (!taken && state_ != State::kStart) {
      taken.error().message = text("rule ", quote(pattern_), ": ", taken.error().message);
    }
    return taken;
  }

 private:
  enum class State {
    kStart,
    kRules,
    kValue,       // "PATTERN": here
    kTargets,     // [here
    kTarget,      // {here
    kKey,         // {"key": here
    kUnless,      // {"unless": here
    kInterleave,  // {"interleave_rope": here
    kRows,        // {"rows": here
    kSplit,       // {"split": here
    kEndSplit,    // {"split": [...] here
  };

  Result<void> dispatch(const JsonEvent& event) {
    switch (state_) {
      case State::kStart:
        return step(event, JsonKind::kBeginObject, State::kRules);
      case State::kRules:
        return on_rules(event);
      case State::kValue:
        return on_value(event);
      case State::kTargets:
        return on_targets(event);
      case State::kTarget:
        return on_target(event);
      case State::kKey:
        if (event.kind == JsonKind::kString) target_.key = KeyPattern(event.string);
        return step(event, JsonKind::kString, State::kTarget);
      case State::kUnless:
        if (event.kind == JsonKind::kString) target_.unless = KeyPattern(event.string);
        return step(event, JsonKind::kString, State::kTarget);
      case State::kInterleave:
        target_.interleave_rope = event.boolean;
        return step(event, JsonKind::kBool, State::kTarget);
      case State::kRows:
        return on_rows(event);
      case State::kSplit:
        rule_.splits = true;
        return step(event, JsonKind::kBeginArray, State::kTargets);
      case State::kEndSplit:
        if (event.kind == JsonKind::kEndObject) return finish_rule();
        return unexpected(event, name_of(JsonKind::kEndObject));
    }
    return {};
  }

  Result<void> on_rules(const JsonEvent& event) {
    if (event.kind != JsonKind::kKey) return {};  // the end
    pattern_ = event.string;
    rule_ = KeyRule{pattern_, {}, false};
    in_list_ = false;
    state_ = State::kValue;
    return {};
  }

  Result<void> on_value(const JsonEvent& event) {
    switch (event.kind) {
      case JsonKind::kNull:
        return finish_rule();
      case JsonKind::kBeginArray:
        in_list_ = true;
        state_ = State::kTargets;
        return {};
      default:
        return begin_target(event, "a name, null, a list of names or an object");
    }
  }

  Result<void> on_targets(const JsonEvent& event) {
    in_list_ = true;
    if (event.kind != JsonKind::kEndArray) return begin_target(event, "a name or an object");
    if (rule_.targets.empty()) return make_error(ErrorCode::kInvalidArgument, "a list of names has none");
    if (!rule_.splits) return finish_rule();
    state_ = State::kEndSplit;
    return {};
  }

  Result<void> begin_target(const JsonEvent& event, std::string_view expected) {
    target_ = {};
    members_.clear();
    if (event.kind == JsonKind::kString) {
      target_.key = KeyPattern(event.string);
      return finish_target();
    }
    if (event.kind != JsonKind::kBeginObject) return unexpected(event, expected);
    state_ = State::kTarget;
    return {};
  }

  Result<void> on_target(const JsonEvent& event) {
    if (event.kind == JsonKind::kEndObject) {
      if (!members_.contains("key")) return make_error(ErrorCode::kInvalidArgument, "a target needs a key");
      return finish_target();
    }
    const bool is_first = members_.empty();
    if (!members_.emplace(event.string).second) {
      return make_error(ErrorCode::kInvalidArgument, quote(event.string), " comes twice");
    }
    if (event.string == "key") {
      state_ = State::kKey;
    } else if (event.string == "unless") {
      state_ = State::kUnless;
    } else if (event.string == "interleave_rope") {
      state_ = State::kInterleave;
    } else if (event.string == "rows" && rule_.splits) {
      state_ = State::kRows;
    } else if (event.string == "split" && is_first && !in_list_) {
      state_ = State::kSplit;
    } else {
      return make_error(ErrorCode::kInvalidArgument, "expected key, unless, interleave_rope",
                        rule_.splits ? ", rows" : ", or split alone", "; found ", quote(event.string));
    }
    return {};
  }

  Result<void> on_rows(const JsonEvent& event) {
    state_ = State::kTarget;
    if (event.kind == JsonKind::kString && event.string == "columns") {
      target_.rows = KeyTarget::Rows::kColumns;
      return {};
    }
    if (event.kind != JsonKind::kInteger || event.integer < 0) {
      return unexpected(event, "a number of rows or \"columns\"");
    }
    target_.rows = KeyTarget::Rows::kNumber;
    target_.number = static_cast<std::uint64_t>(event.integer);
    return {};
  }

  Result<void> finish_target() {
    rule_.targets.push_back(std::move(target_));
    if (!in_list_) return finish_rule();
    state_ = State::kTargets;
    return {};
  }

  Result<void> finish_rule() {
    ETSTREAM_TRY(out_.add(std::move(rule_)));
    state_ = State::kRules;
    return {};
  }

  Result<void> step(const JsonEvent& event, JsonKind expected, State next) {
    if (event.kind != expected) return unexpected(event, name_of(expected));
    state_ = next;
    return {};
  }

  static Error unexpected(const JsonEvent& event, std::string_view expected) {
    return make_error(ErrorCode::kInvalidArgument, "expected ", expected, ", found ", name_of(event.kind));
  }

  KeyRuleSet& out_;
  State state_ = State::kStart;
  std::string pattern_;  // of the rule that is being read
  KeyRule rule_;
  KeyTarget target_;
  bool in_list_ = false;
  std::set<std::string, std::less<>> members_;  // that the target has had
};

/// Passes on the member of an object that is called `name`.
class MemberHandler final : public JsonHandler {
 public:
  MemberHandler(std::string_view name, JsonHandler& member) : name_(name), member_(member) {}

  Result<void> on(const JsonEvent& event) override {
    const bool begins = event.kind == JsonKind::kBeginObject || event.kind == JsonKind::kBeginArray;
    const bool ends = event.kind == JsonKind::kEndObject || event.kind == JsonKind::kEndArray;
    if (depth_ == 1 && event.kind == JsonKind::kKey) {
      is_in_member_ = event.string == name_;
      found_ = found_ || is_in_member_;
    } else if (is_in_member_ && depth_ > (ends ? 1 : 0)) {
      ETSTREAM_TRY(member_.on(event));
    }
    depth_ += begins ? 1 : 0;
    depth_ -= ends ? 1 : 0;
    return {};
  }

  [[nodiscard]] bool found() const noexcept { return found_; }

 private:
  const std::string_view name_;
  JsonHandler& member_;
  int depth_ = 0;
  bool is_in_member_ = false;
  bool found_ = false;
};

}  // namespace

const KeyRule* KeyRuleSet::find(std::string_view name, std::vector<std::string_view>& runs) const {
  std::size_t end = rules.size();
  if (patterns_.size() < rules.size() && name.find('*') == std::string_view::npos) {
    const auto literal = rules_by_pattern_.find(name);
    if (literal != rules_by_pattern_.end()) end = literal->second;
  }
  for (const Pattern& candidate : patterns_) {
    if (candidate.rule >= end) break;
    if (candidate.pattern.matches(name, runs)) return &rules[candidate.rule];
  }
  return end < rules.size() ? &rules[end] : nullptr;
}

Result<void> KeyRuleSet::add(KeyRule rule) {
  const KeyPattern pattern(rule.pattern);
  for (const KeyTarget& target : rule.targets) {
    if (target.key.stars() > pattern.stars() || (target.unless && target.unless->stars() > pattern.stars())) {
      return make_error(ErrorCode::kInvalidArgument, "a name has more '*' than the pattern it is for");
    }
  }
  if (!rules_by_pattern_.emplace(rule.pattern, rules.size()).second) {
    return make_error(ErrorCode::kInvalidArgument, "it comes twice");
  }
  if (pattern.stars() > 0) patterns_.push_back({pattern, rules.size()});
  rules.push_back(std::move(rule));
  return {};
}

Result<KeyRuleSet> read_key_rules(const ByteSource& json) {
  KeyRuleSet out;
  KeyRuleHandler handler(out);
  ETSTREAM_TRY(parse_json(json, handler));
  return out;
}

Result<std::optional<KeyRuleSet>> read_key_rules(const ByteSource& json, std::string_view name) {
  KeyRuleSet out;
  KeyRuleHandler rules(out);
  MemberHandler handler(name, rules);
  ETSTREAM_TRY(parse_json(json, handler));
  if (!handler.found()) return std::optional<KeyRuleSet>();
  return std::optional(std::move(out));
}

}  // namespace etstream
