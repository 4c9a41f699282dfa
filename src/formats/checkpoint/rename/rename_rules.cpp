// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/rename_rules.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/checkpoint/rename/rename_rule_set.h"
#include "formats/checkpoint/rename/rope_rows.h"
#include "ready_made_rules_generated.h"

namespace etstream {
namespace {

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
