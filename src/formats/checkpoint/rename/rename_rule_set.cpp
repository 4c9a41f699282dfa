// SPDX-License-Identifier: BSD-3-Clause
#include "formats/checkpoint/rename/rename_rule_set.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/json/json_reader.h"
#include "formats/segments/file_kind.h"

namespace etstream {
namespace {

using Kind = JsonReader::Kind;

class RulesReader {
 public:
  /// `like` gets the name in "like", which only ready-made rules have; it is null for other rules.
  RulesReader(JsonReader& json, RenameRuleSet& out, std::string* like = nullptr)
      : json_(json), out_(out), like_(like) {}

  Result<void> run() {
    return json_.members([&](std::string_view pattern) {
      auto read = read_member(pattern);
      if (!read) read.error().message = text("rule {}: {}", quote(pattern), read.error().message);
      return read;
    });
  }

 private:
  Result<void> read_member(std::string_view pattern) {
    if (!like_) return read_rule(pattern);
    if (pattern == "model_types") return read_model_types();
    if (pattern != "like" && !out_.has(pattern)) return read_rule(pattern);
    const JsonTape::Value value = json_.take();
    if (pattern == "like") *like_ = value.string;
    return {};
  }

  /// Reads the model types of the requested rules, and skips those of the rules that they are like.
  Result<void> read_model_types() {
    if (!out_.model_types.empty()) {
      json_.take();
      return {};
    }
    return json_.elements([&]() -> Result<void> {
      ETSTREAM_ASSIGN(const JsonTape::Value type, json_.take(Kind::kString));
      out_.model_types.emplace_back(type.string);
      return {};
    });
  }

  Result<void> read_rule(std::string_view pattern) {
    RenameRule rule{std::string(pattern), {}, false};
    if (json_.next().kind == Kind::kNull) {
      json_.take();
    } else if (json_.next().kind == Kind::kArray) {
      ETSTREAM_TRY(read_targets(rule));
    } else {
      ETSTREAM_TRY(read_target(rule, false, "a name, null, a list of names or an object"));
    }
    return out_.add(std::move(rule));
  }

  Result<void> read_targets(RenameRule& rule) {
    ETSTREAM_TRY(json_.elements([&] { return read_target(rule, true, "a name or an object"); }));
    return rule.targets.empty() ? json_.error("a list of names has none") : Result<void>();
  }

  Result<void> read_target(RenameRule& rule, bool in_list, std::string_view expected) {
    RenameTarget target;
    const JsonTape::Value value = json_.next();
    if (value.kind == Kind::kString) {
      target.key = NamePattern(json_.take().string);
    } else if (value.kind == Kind::kObject) {
      ETSTREAM_TRY(read_members(rule, in_list, target));
      if (rule.splits && !in_list) return {};
    } else {
      json_.take();
      return json_.unexpected(value, expected);
    }
    rule.targets.push_back(std::move(target));
    return {};
  }

  /// Reads the members of a target, or `split` alone, which has targets of its own.
  Result<void> read_members(RenameRule& rule, bool in_list, RenameTarget& target) {
    bool is_first = true;
    bool has_key = false;
    const auto read = json_.different_members([&](std::string_view name) -> Result<void> {
      if (rule.splits && !in_list) return json_.error("expected the end of the object, found a key");
      if (name == "key" || name == "unless") {
        ETSTREAM_ASSIGN(const auto pattern, json_.take(Kind::kString));
        if (name == "key") target.key = NamePattern(pattern.string);
        if (name == "unless") target.unless = NamePattern(pattern.string);
        has_key = has_key || name == "key";
      } else if (name == "interleave_rope") {
        ETSTREAM_ASSIGN(const auto interleave, json_.take(Kind::kBool));
        target.interleave_rope = interleave.boolean;
      } else if (name == "rows" && rule.splits) {
        ETSTREAM_TRY(read_rows(target));
      } else if (name == "split" && is_first && !in_list) {
        rule.splits = has_key = true;
        ETSTREAM_TRY(read_targets(rule));
      } else {
        return json_.error(text("expected key, unless, interleave_rope{}; found {}",
                                rule.splits ? ", rows" : ", or split alone", quote(name)));
      }
      is_first = false;
      return {};
    });
    return read && !has_key ? json_.error("a target needs a key") : read;
  }

  Result<void> read_rows(RenameTarget& target) {
    const JsonTape::Value rows = json_.take();
    if (rows.kind == Kind::kString && rows.string == "columns") {
      target.rows = RenameTarget::Rows::kColumns;
      return {};
    }
    if (rows.kind != Kind::kInteger || rows.integer < 0) {
      return json_.unexpected(rows, "a number of rows or \"columns\"");
    }
    target.rows = RenameTarget::Rows::kNumber;
    target.number = static_cast<std::uint64_t>(rows.integer);
    return {};
  }

  JsonReader& json_;
  RenameRuleSet& out_;
  std::string* like_;
};

}  // namespace

NamePattern::NamePattern(std::string_view pattern) {
  std::size_t begin = 0;
  for (std::size_t star = pattern.find('*'); star != std::string_view::npos;
       star = pattern.find('*', begin)) {
    pieces_.emplace_back(pattern.substr(begin, star - begin));
    begin = star + 1;
    if (!pattern.substr(begin).starts_with('*')) continue;
    crossing_ = pieces_.size();
    ++crossings_;
    ++begin;
  }
  pieces_.emplace_back(pattern.substr(begin));
}

bool NamePattern::matches(std::string_view key, std::vector<std::string_view>& runs) const {
  runs.clear();
  if (stars() == 0) return key == pieces_.front();
  if (!key.starts_with(pieces_.front()) || !key.ends_with(pieces_.back())) return false;
  const std::size_t last = key.size() - pieces_.back().size();  // where the last piece begins
  std::size_t begin = pieces_.front().size();                   // of the next run
  auto to_cross = std::ranges::count(key, '.');  // the dots in the run of "**": those that no piece has
  for (const std::string& piece : pieces_) to_cross -= std::ranges::count(piece, '.');
  if (to_cross < 0) return false;
  // A run ends at the first place where the piece after it is found, behind the dots that it has to cross.
  // Each other '.' of the key belongs to a piece, and of the other places the first leaves most to the runs
  // that follow.
  for (std::size_t i = 1; i < pieces_.size(); ++i) {
    const auto dots = i == crossing_ ? to_cross : 0;
    std::size_t end = begin;
    for (auto crossed = dots; crossed > 0 && end < key.size(); --crossed) end = key.find('.', end) + 1;
    end = i + 1 < pieces_.size() ? key.find(pieces_[i], std::max(end, begin + 1)) : last;
    if (end == std::string_view::npos || end <= begin) return false;
    const std::string_view run = key.substr(begin, end - begin);
    if (std::ranges::count(run, '.') != dots) return false;
    runs.push_back(run);
    begin = end + pieces_[i].size();
  }
  return true;
}

std::string NamePattern::filled(const std::vector<std::string_view>& runs) const {
  std::string out = pieces_.front();
  for (std::size_t i = 0; i < stars(); ++i) {
    out += runs[i];
    out += pieces_[i + 1];
  }
  return out;
}

const RenameRule* RenameRuleSet::find(std::string_view name, std::vector<std::string_view>& runs) const {
  std::size_t end = rules.size();
  if (name.find('*') == std::string_view::npos) {
    const auto literal = rules_by_pattern_.find(name);
    if (literal != rules_by_pattern_.end()) end = literal->second;
  }
  for (const Pattern& candidate : patterns_) {
    if (candidate.rule >= end) break;
    if (candidate.pattern.matches(name, runs)) return &rules[candidate.rule];
  }
  return end < rules.size() ? &rules[end] : nullptr;
}

Result<void> RenameRuleSet::add(RenameRule rule) {
  const NamePattern pattern(rule.pattern);
  for (const RenameTarget& target : rule.targets) {
    if (target.key.stars() > pattern.stars() || (target.unless && target.unless->stars() > pattern.stars())) {
      return make_error(ErrorCode::kInvalidArgument, "a name has more '*' than the pattern it is for");
    }
  }
  if (pattern.stars() > 0 && patterns_.size() == kMostPatterns) {
    return make_error(ErrorCode::kInvalidArgument, "expected at most {} patterns with '*', found more",
                      kMostPatterns);
  }
  if (pattern.crossings() > 1) {
    return make_error(ErrorCode::kInvalidArgument, "expected at most one '**' in a pattern, found {}",
                      pattern.crossings());
  }
  if (!rules_by_pattern_.emplace(rule.pattern, rules.size()).second) {
    return make_error(ErrorCode::kInvalidArgument, "it comes twice");
  }
  if (pattern.stars() > 0) patterns_.push_back({pattern, rules.size()});
  rules.push_back(std::move(rule));
  return {};
}

Result<RenameRuleSet> read_rename_rules(const ByteSource& json) {
  RenameRuleSet out;
  ETSTREAM_TRY(unless_other(json, {"rules as JSON", {}, JsonContent::kOther},
                            read_json(json, ErrorCode::kInvalidArgument,
                                      [&](JsonReader& reader) { return RulesReader(reader, out).run(); })));
  return out;
}

Result<std::optional<RenameRuleSet>> read_ready_made_rules(const ByteSource& json, std::string_view name) {
  std::optional<RenameRuleSet> out;
  for (std::string next(name); !next.empty();) {
    const std::string wanted = std::exchange(next, "");
    ETSTREAM_TRY(read_json(json, ErrorCode::kInvalidArgument, [&](JsonReader& reader) {
      return reader.members([&](std::string_view member) -> Result<void> {
        if (member == wanted) return RulesReader(reader, out ? *out : out.emplace(), &next).run();
        reader.take();
        return {};
      });
    }));
  }
  if (out) out->is_ready_made = true;
  return out;
}

}  // namespace etstream
