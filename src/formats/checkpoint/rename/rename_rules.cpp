// SPDX-License-Identifier: BSD-3-Clause
//
// RenameRuleSet: rules for the names of tensors, as they are written in JSON.
#include "formats/checkpoint/rename/rename_rules.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/derived_storage.h"
#include "etstream/checkpoint.h"
#include "flatbuffer/json/json_reader.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/segments/file_kind.h"
#include "ready_made_rules_generated.h"

namespace etstream {

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
  const RenameRule* find(std::string_view name, std::vector<std::string_view>& runs) const {
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

  /// Adds a rule. Error: kInvalidArgument for a pattern that comes twice, a target with more '*' than its
  /// pattern, or more than kMostPatterns.
  Result<void> add(RenameRule rule) {
    const NamePattern pattern(rule.pattern);
    for (const RenameTarget& target : rule.targets) {
      if (target.key.stars() > pattern.stars() ||
          (target.unless && target.unless->stars() > pattern.stars())) {
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

namespace {

constexpr std::uint64_t kMostRowBytes = std::uint64_t{256} << 10;  // bytes of rows

class RopeRows final : public DerivedStorage {
 public:
  RopeRows(ByteSource rows, std::uint64_t head_dim, std::uint64_t row_size)
      : rows_(std::move(rows)), head_dim_(head_dim), row_(row_size), head_(head_dim * row_size) {}

  std::uint64_t size() const noexcept override { return rows_.size(); }
  std::string name() const override { return rows_.name(); }
  void for_each_part(const std::function<void(const ByteSource&)>& see) const override { see(rows_); }

  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t together = std::min<std::uint64_t>(out.size() + 2 * row_, kMostRowBytes);
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(together));
    const std::span scratch(buffer.get(), static_cast<std::size_t>(together));
    while (!out.empty()) {
      const std::uint64_t at = offset % head_;
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), head_ - at));
      for (std::uint64_t half = 0; half < 2; ++half) {
        ETSTREAM_TRY(read_half(offset - at, half, at, out.first(n), scratch));
      }
      out = out.subspan(n);
      offset += n;
    }
    return {};
  }

  /// Drops all heads that end in the range, with what an earlier range had of the first one.
  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept override {
    const std::uint64_t begin = offset - offset % head_;
    const std::uint64_t end = offset + size - (offset + size) % head_;
    if (begin < end) rows_.drop_pages(begin, end - begin);
  }

 private:
  /// Reads the rows of one half of the head at `head` to their places in `out`, which begins at `at` in the
  /// result's head.
  Result<void> read_half(std::uint64_t head, std::uint64_t half, std::uint64_t at, std::span<std::byte> out,
                         std::span<std::byte> scratch) const {
    // Row j of the half is row 2 * j + half of the result. Read the rows of which `out` has a part.
    const std::uint64_t first = at / row_;
    const std::uint64_t last = (at + out.size() - 1) / row_;
    const std::uint64_t end = (last + 2 - half) / 2;
    const std::uint64_t most = std::max<std::uint64_t>(scratch.size() / row_, 1);
    for (std::uint64_t j = (first + 1 - half) / 2; j < end;) {
      const std::uint64_t n = std::min(most, end - j);
      const std::uint64_t source = head + (half * (head_dim_ / 2) + j) * row_;
      if (row_ > scratch.size()) {
        const Part part = part_of(2 * j + half, at, out.size());
        ETSTREAM_TRY(rows_.read_at(source + part.in_row, out.subspan(part.in_out, part.size)));
      } else {
        ETSTREAM_TRY(rows_.read_at(source, scratch.first(static_cast<std::size_t>(n * row_))));
        for (std::uint64_t k = 0; k < n; ++k) {
          const Part part = part_of(2 * (j + k) + half, at, out.size());
          std::memcpy(out.data() + part.in_out, scratch.data() + k * row_ + part.in_row, part.size);
        }
      }
      j += n;
    }
    return {};
  }

  struct Part {
    std::uint64_t in_row = 0;  // where it begins
    std::size_t in_out = 0;
    std::size_t size = 0;
  };
  /// Returns the part of a row that lies in `size` bytes from `at` on in a head.
  Part part_of(std::uint64_t row, std::uint64_t at, std::uint64_t size) const {
    const std::uint64_t begin = std::max(row * row_, at);
    const std::uint64_t end = std::min((row + 1) * row_, at + size);
    return {begin - row * row_, static_cast<std::size_t>(begin - at), static_cast<std::size_t>(end - begin)};
  }

  const ByteSource rows_;
  const std::uint64_t head_dim_;
  const std::uint64_t row_;   // in bytes
  const std::uint64_t head_;  // the same
};

}  // namespace

ByteSource interleave_rope(ByteSource rows, std::uint64_t head_dim, std::uint64_t row_size) {
  return ByteSource(std::make_shared<RopeRows>(std::move(rows), head_dim, row_size));
}

namespace {

/// Reads the rules in a JSON object. Errors: see RenameRules::read.
Result<RenameRuleSet> read_rename_rules(const ByteSource& json) {
  RenameRuleSet out;
  ETSTREAM_TRY(unless_other(json, {"rules as JSON", {}, JsonContent::kOther},
                            read_json(json, ErrorCode::kInvalidArgument,
                                      [&](JsonReader& reader) { return RulesReader(reader, out).run(); })));
  return out;
}

/// Reads the ready-made rules in the member `name` of an object of such objects; returns nothing without a
/// member of that name. A member's "like" names another member, whose rules apply too, except for patterns
/// that the member has itself. Its "model_types" are those that config.json beside such a checkpoint may
/// have.
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

/// Beginnings of names that say how a model is kept and nothing of the tensor: by trainers, compilers and
/// adapters, and in a model that also sees or hears.
constexpr std::string_view kWrappers[] = {"state_dict.", "model_state_dict.", "module.",    "_orig_mod.",
                                          "base_model.", "language_model.",   "text_model."};

/// Returns the name that a tensor has in a language model alone: "model.layers.0.w" for
/// "model.language_model.layers.0.w", "lm_head.weight" for "module.model.lm_head.weight".
std::string name_without_wrappers(std::string_view name) {
  constexpr std::string_view kModel = "model.";
  bool is_inside = false;
  const auto is_first = [&](std::string_view wrapper) { return name.starts_with(wrapper); };
  for (;;) {
    const auto* const wrapper = std::ranges::find_if(kWrappers, is_first);
    const bool is_model = wrapper == std::end(kWrappers) && is_first(kModel);
    if (wrapper == std::end(kWrappers) && !is_model) break;
    is_inside = is_inside || is_model;
    name.remove_prefix(is_model ? kModel.size() : wrapper->size());
  }
  return text("{}{}", is_inside && !is_first("lm_head.") ? kModel : "", name);
}

/// Names the tensors of a checkpoint anew, in a list beside it.
class Renaming {
 public:
  Renaming(const RenameRuleSet& rules, const Checkpoint& checkpoint, const RenameOptions& options)
      : rules_(rules), checkpoint_(checkpoint), head_dim_(options.head_dim), used_(rules.rules.size()) {}

  Result<RenameReport> run() {
    ETSTREAM_TRY(check_models());
    RenameReport report;
    for (const CheckpointTensor& tensor : checkpoint_.tensors) {
      known_ = known_name(tensor);
      rule_ = rules_.find(known_, runs_);
      if (rule_) {
        used_[static_cast<std::size_t>(rule_ - rules_.rules.data())] = true;
        ETSTREAM_TRY(rename(tensor));
      } else {
        report.left_over_keys.push_back(tensor.name);
        add(tensor, tensor);
      }
    }
    ETSTREAM_TRY(check_applied(report));
    ETSTREAM_TRY(check_names());
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const RenameRule& rule = rules_.rules[i];
      if (!used_[i] && !may_meet_nothing(rule)) report.unmatched_rules.push_back(rule.pattern);
    }
    return report;
  }

  std::vector<CheckpointTensor> take_tensors() { return std::move(out_); }

  /// Returns whether a rule moves rows, which may then be apart from their scales.
  static bool cuts(const RenameRule& rule) {
    return rule.splits || std::ranges::any_of(rule.targets, &RenameTarget::interleave_rope);
  }

 private:
  /// Returns the name that rules are for.
  std::string known_name(const CheckpointTensor& tensor) const {
    return rules_.is_ready_made ? name_without_wrappers(tensor.name) : tensor.name;
  }

  /// Refuses rules that apply to nothing. Ready-made ones have to apply to a tensor of a layer, unless they
  /// apply to all that is there.
  Result<void> check_applied(const RenameReport& report) const {
    if (rules_.rules.empty() || report.left_over_keys.empty()) return {};
    const RenameRule* expected = nullptr;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const RenameRule& rule = rules_.rules[i];
      if (rules_.is_ready_made && (rule.targets.empty() || rule.pattern.find('*') == std::string::npos))
        continue;
      if (used_[i]) return {};
      if (!expected) expected = &rule;
    }
    return error_in(ErrorCode::kInvalidArgument, checkpoint_.tensors.front().data.name(),
                    "the rules are for other names: expected some such as {}, found {}",
                    quote(expected->pattern), quote(report.left_over_keys.front()));
  }

  Result<void> rename(const CheckpointTensor& tensor) {
    std::vector<CheckpointTensor> parts;
    if (rule_->splits) {
      ETSTREAM_ASSIGN(parts, split(tensor));
    }
    for (std::size_t i = 0; i < rule_->targets.size(); ++i) {
      const RenameTarget& target = rule_->targets[i];
      if (target.unless && is_in_checkpoint(target.unless->filled(runs_))) continue;
      CheckpointTensor renamed = rule_->splits ? parts[i] : tensor;
      renamed.name = target.key.filled(runs_);
      ETSTREAM_TRY(count(renamed.name));
      if (target.interleave_rope) ETSTREAM_TRY(interleave(tensor, renamed));
      add(tensor, std::move(renamed));
    }
    return {};
  }

  /// Refuses new tensors whose descriptions would be much longer than those of the old ones: a rule may make
  /// as many of each tensor as it has targets.
  Result<void> count(const std::string& name) {
    constexpr std::uint64_t kMostOfOld = 16;
    constexpr std::uint64_t kFree = std::uint64_t{8} << 20;
    if (new_bytes_ == 0) {
      for (const CheckpointTensor& tensor : checkpoint_.tensors) old_bytes_ += bytes_for(tensor.name);
    }
    new_bytes_ += bytes_for(name);
    if (new_bytes_ <= kFree + kMostOfOld * old_bytes_) return {};
    return make_error(ErrorCode::kTooLarge,
                      "rule {}: expected new names of at most {} times the size of the old ones, found more",
                      quote(rule_->pattern), kMostOfOld);
  }
  static std::uint64_t bytes_for(const std::string& name) {
    constexpr std::uint64_t kOfTensor = 256;
    return kOfTensor + name.size();
  }

  void add(const CheckpointTensor& original, CheckpointTensor renamed) {
    out_.push_back(std::move(renamed));
    originals_.push_back(&original);
  }

  /// Refuses two tensors of one new name, unless both had one name before, in several files. Sorts the names,
  /// which takes n log n for any names.
  Result<void> check_names() const {
    std::vector<std::pair<std::string_view, std::size_t>> names;
    names.reserve(out_.size());
    for (const CheckpointTensor& tensor : out_) names.emplace_back(tensor.name, names.size());
    std::sort(names.begin(), names.end());
    const auto same = std::adjacent_find(names.begin(), names.end(), [this](const auto& a, const auto& b) {
      return a.first == b.first && (originals_[a.second] == originals_[b.second] ||
                                    originals_[a.second]->name != originals_[b.second]->name);
    });
    if (same == names.end()) return {};
    const CheckpointTensor& one = *originals_[same->second];
    const CheckpointTensor& other = *originals_[(same + 1)->second];
    return make_error(ErrorCode::kInvalidArgument, "tensors {} of {} and {} of {} would both be named {}",
                      quote(one.name), one.data.name(), quote(other.name), other.data.name(),
                      quote(same->first));
  }

  bool is_in_checkpoint(std::string_view name) {
    if (names_.empty()) {
      for (const CheckpointTensor& tensor : checkpoint_.tensors) names_.push_back(known_name(tensor));
      std::sort(names_.begin(), names_.end());
    }
    return std::binary_search(names_.begin(), names_.end(), name);
  }

  /// Makes the error about a tensor that the rule does not fit.
  template <class... Arguments>
  Error misfit(ErrorCode code, const CheckpointTensor& tensor, Template<Arguments...> words,
               const Arguments&... arguments) const {
    return error_in(code, tensor.data.name(), "tensor {}, rule {}: {}", quote(tensor.name),
                    quote(rule_->pattern), text(words, arguments...));
  }

  /// Returns the number of a tensor's rows, which lie one after another.
  Result<std::uint64_t> rows_of(const CheckpointTensor& tensor) const {
    if (!tensor.layout) {
      return misfit(ErrorCode::kUnsupported, tensor, "expected rows, found data of type {}",
                    quote(tensor.type));
    }
    const auto& [type, sizes, dim_order] = *tensor.layout;
    if (sizes.empty() || sizes.front() < 0) {
      return misfit(ErrorCode::kInvalidArgument, tensor, "expected rows, found {}", describe(*tensor.layout));
    }
    if (dim_order.empty() || dim_order.front() != 0) {
      return misfit(ErrorCode::kUnsupported, tensor,
                    "expected rows that lie one after another, found them in another order");
    }
    return static_cast<std::uint64_t>(sizes.front());
  }

  Result<std::vector<CheckpointTensor>> split(const CheckpointTensor& tensor) const {
    ETSTREAM_ASSIGN(const std::uint64_t rows, rows_of(tensor));
    ETSTREAM_ASSIGN(const auto counts, rows_of_parts(tensor, rows));
    const std::uint64_t row_size = rows == 0 ? 0 : tensor.data.size() / rows;
    std::vector<CheckpointTensor> parts;
    std::uint64_t at = 0;
    for (const std::uint64_t count : counts) {
      CheckpointTensor& part = parts.emplace_back(tensor);
      part.layout->sizes.front() = static_cast<std::int32_t>(count);
      ETSTREAM_ASSIGN(part.data, tensor.data.slice(at * row_size, count * row_size));
      at += count;
    }
    return parts;
  }

  Result<std::vector<std::uint64_t>> rows_of_parts(const CheckpointTensor& tensor, std::uint64_t rows) const {
    const auto does_not_divide = [&] {
      return misfit(ErrorCode::kInvalidArgument, tensor, "its {} can't be divided into the parts of the rule",
                    counted(rows, "row"));
    };
    std::vector<std::uint64_t> counts;
    std::uint64_t left = rows;
    std::uint64_t sharing = 0;
    for (const RenameTarget& target : rule_->targets) {
      ETSTREAM_ASSIGN(const auto given, given_rows(tensor, target));
      if (!given) ++sharing;
      if (given > left) return does_not_divide();
      left -= given.value_or(0);
      counts.push_back(given.value_or(0));
    }
    if (sharing == 0 ? left != 0 : left % sharing != 0) return does_not_divide();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (rule_->targets[i].rows == RenameTarget::Rows::kShare) counts[i] = left / sharing;
    }
    return counts;
  }

  /// Returns the number of rows that a part is given; nothing for a part that shares the remaining rows.
  Result<std::optional<std::uint64_t>> given_rows(const CheckpointTensor& tensor,
                                                  const RenameTarget& target) const {
    if (target.rows == RenameTarget::Rows::kShare) return std::optional<std::uint64_t>();
    if (target.rows == RenameTarget::Rows::kNumber) return std::optional(target.number);
    const auto& sizes = tensor.layout->sizes;
    if (sizes.size() > 1 && sizes[1] >= 0) return std::optional(static_cast<std::uint64_t>(sizes[1]));
    return misfit(ErrorCode::kInvalidArgument, tensor, "expected rows and columns, found {}",
                  describe(*tensor.layout));
  }

  Result<void> interleave(const CheckpointTensor& tensor, CheckpointTensor& renamed) {
    ETSTREAM_ASSIGN(const std::uint64_t rows, rows_of(renamed));
    if (!head_dim_) ETSTREAM_TRY(find_head_dim(tensor));
    if (*head_dim_ == 0 || *head_dim_ % 2 != 0 || rows % *head_dim_ != 0) {
      return misfit(ErrorCode::kInvalidArgument, tensor,
                    "its {} are not whole heads of {} rows, an even number", counted(rows, "row"),
                    *head_dim_);
    }
    if (renamed.data.size() == 0) return {};
    const std::uint64_t row_size = renamed.data.size() / rows;
    // Tensors that share their bytes share the interleaved ones too.
    ByteSource& interleaved = interleaved_[{renamed.data.place(), row_size}];
    if (interleaved.size() == 0) interleaved = interleave_rope(renamed.data, *head_dim_, row_size);
    renamed.data = interleaved;
    return {};
  }

  Result<void> find_head_dim(const CheckpointTensor& tensor) {
    ModelConfig config;
    if (checkpoint_.files.empty()) {
      config.path = "config.json";
    } else {
      ETSTREAM_ASSIGN(config, read_model_config(folder_of(checkpoint_.files.front())));
    }
    head_dim_ = config.head_dim;
    if (head_dim_) return {};
    return with_advice(
        misfit(ErrorCode::kInvalidArgument, tensor, "how many rows make up a head is not known: {}{}",
               config.path,
               config.is_there ? " has neither head_dim nor hidden_size and num_attention_heads"
                               : " is not there"),
        {"give it with ", AdviceTerm::kHeadDim});
  }

  /// Refuses ready-made rules if config.json beside a file names a model that they are not for.
  Result<void> check_models() const {
    if (rules_.model_types.empty()) return {};
    std::set<std::string> folders;
    for (const std::string& file : checkpoint_.files) folders.insert(folder_of(file));
    for (const std::string& folder : folders) {
      ETSTREAM_ASSIGN(const ModelConfig config, read_model_config(folder));
      const auto& types = rules_.model_types;
      if (config.model_type.empty() || std::ranges::find(types, config.model_type) != types.end()) continue;
      std::string known;
      for (const std::string& type : types) known += (known.empty() ? "" : " or ") + quote(type);
      return with_advice(error_in(ErrorCode::kInvalidArgument, config.path,
                                  "expected model_type {}, which the ready-made rules are for, found {}",
                                  known, quote(config.model_type)),
                         {advice_for(config.model_type)});
    }
    return {};
  }

  /// Names the ready-made rules for a type of model, if there are any.
  static std::string advice_for(const std::string& model_type) {
    std::string names;
    for (const std::string_view name : kReadyMadeNames) {
      const auto rules = RenameRules::ready_made(name);
      if (!rules) continue;
      const auto& types = rules->set()->model_types;
      if (std::ranges::find(types, model_type) == types.end()) continue;
      names += text("{}{}", names.empty() ? "" : " or ", name);
    }
    return names.empty() ? "give a file of rules for it" : text("give the rules {}", names);
  }

  /// Returns whether a checkpoint may lack the tensors of a rule: tensors that are left out, and tensors
  /// whose names another rule has given.
  bool may_meet_nothing(const RenameRule& rule) const {
    if (!rules_.is_ready_made) return false;
    const auto is_given = [&](const RenameTarget& target) {
      for (std::size_t i = 0; i < used_.size(); ++i) {
        const auto& given = rules_.rules[i].targets;
        if (used_[i] && std::ranges::find(given, target.key, &RenameTarget::key) != given.end()) return true;
      }
      return false;
    };
    return std::ranges::all_of(rule.targets, is_given);
  }

  const RenameRuleSet& rules_;
  const Checkpoint& checkpoint_;
  const RenameRule* rule_ = nullptr;  // of the tensor that is being renamed
  std::optional<std::uint32_t> head_dim_;
  std::vector<bool> used_;              // the rules
  std::vector<std::string> names_;      // that are known, sorted; at the first `unless`
  std::string known_;                   // the name of the tensor that is being renamed
  std::vector<std::string_view> runs_;  // what the '*' of the rule stand for in it
  std::map<std::pair<SourcePlace, std::uint64_t>, ByteSource> interleaved_;  // by rows and a row's size
  std::vector<CheckpointTensor> out_;
  std::uint64_t old_bytes_ = 0;  // of the descriptions of tensors
  std::uint64_t new_bytes_ = 0;
  std::vector<const CheckpointTensor*> originals_;  // of those in `out_`
};

constexpr std::uint64_t kMostRuleBytes = std::uint64_t{64} << 20;

}  // namespace

Result<RenameRules> RenameRules::read(const ByteSource& json) {
  return without_exceptions([&]() -> Result<RenameRules> {
    if (json.size() > kMostRuleBytes) {
      return error_in(ErrorCode::kTooLarge, json.name(), "expected rules of at most {}, found {}",
                      readable_size(kMostRuleBytes), readable_size(json.size()));
    }
    ETSTREAM_ASSIGN(RenameRuleSet set, read_rename_rules(json));
    RenameRules out;
    out.set_ = std::make_shared<const RenameRuleSet>(std::move(set));
    return out;
  });
}

Result<RenameRules> RenameRules::ready_made(std::string_view name) {
  return without_exceptions([&]() -> Result<RenameRules> {
    ETSTREAM_ASSIGN(
        auto set, read_ready_made_rules(ByteSource::memory(std::as_bytes(std::span(kReadyMadeRules))), name));
    if (!set) {
      return make_error(ErrorCode::kNotFound, "there are no ready-made rules {}, only {}", quote(name),
                        names_text(kReadyMadeNames));
    }
    RenameRules out;
    out.set_ = std::make_shared<const RenameRuleSet>(std::move(*set));
    return out;
  });
}

std::vector<std::string> RenameRules::ready_made_names() {
  return {kReadyMadeNames.begin(), kReadyMadeNames.end()};
}

Result<RenameRules> RenameRules::open(const std::string& name_or_path) {
  return without_exceptions([&]() -> Result<RenameRules> {
    auto rules = ready_made(name_or_path);
    if (rules || rules.error().code != ErrorCode::kNotFound) return rules;
    const auto file = ByteSource::file(name_or_path);
    if (file) return read(*file);
    return make_error(file.error().code, "{}; {}", file.error().message, rules.error().message);
  });
}

Result<RenameReport> apply(const RenameRules& rules, Checkpoint& checkpoint, const RenameOptions& options) {
  return without_exceptions([&]() -> Result<RenameReport> {
    const RenameRuleSet none;
    const RenameRuleSet& set = rules.set() ? *rules.set() : none;
    std::optional<Checkpoint> scaled;
    if (set.is_ready_made || std::ranges::any_of(set.rules, Renaming::cuts)) {
      ETSTREAM_ASSIGN(scaled, apply_scales(checkpoint, [](const auto&) { return true; }));
    }
    Renaming renaming(set, scaled ? *scaled : checkpoint, options);
    ETSTREAM_ASSIGN(RenameReport report, renaming.run());
    checkpoint.tensors = renaming.take_tensors();
    return report;
  });
}

}  // namespace etstream
