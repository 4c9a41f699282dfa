// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/key_rules.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "key_maps_generated.h"
#include "weights/rename/head_dim.h"
#include "weights/rename/key_rule_set.h"
#include "weights/rename/rope_rows.h"

namespace etstream {
namespace {

/// Names the tensors of a checkpoint anew, in a list beside it.
class KeyRenaming {
 public:
  KeyRenaming(const KeyRuleSet& rules, const Checkpoint& checkpoint, const KeyRuleOptions& options)
      : rules_(rules), checkpoint_(checkpoint), head_dim_(options.head_dim), used_(rules.rules.size()) {}

  Result<KeyRuleReport> run() {
    KeyRuleReport report;
    for (const CheckpointTensor& tensor : checkpoint_.tensors) {
      const KeyRule* rule = rules_.find(tensor.name, runs_);
      if (rule) {
        used_[static_cast<std::size_t>(rule - rules_.rules.data())] = true;
        ETSTREAM_TRY(rename(tensor, *rule));
      } else {
        report.left_over_keys.push_back(tensor.name);
        add(tensor, tensor);
      }
    }
    ETSTREAM_TRY(check_names());
    for (std::size_t i = 0; i < used_.size() && !rules_.is_ready_made; ++i) {
      if (!used_[i]) report.unmatched_rules.push_back(rules_.rules[i].pattern);
    }
    return report;
  }

  std::vector<CheckpointTensor> take_tensors() { return std::move(out_); }

 private:
  Result<void> rename(const CheckpointTensor& tensor, const KeyRule& rule) {
    std::vector<CheckpointTensor> parts;
    if (rule.splits) {
      ETSTREAM_ASSIGN(parts, split(tensor, rule));
    }
    for (std::size_t i = 0; i < rule.targets.size(); ++i) {
      const KeyTarget& target = rule.targets[i];
      if (target.unless && is_in_checkpoint(target.unless->filled(runs_))) continue;
      CheckpointTensor renamed = rule.splits ? parts[i] : tensor;
      renamed.name = target.key.filled(runs_);
      if (target.interleave_rope) ETSTREAM_TRY(interleave(tensor, rule, renamed));
      add(tensor, std::move(renamed));
    }
    return {};
  }

  void add(const CheckpointTensor& original, CheckpointTensor renamed) {
    out_.push_back(std::move(renamed));
    originals_.push_back(&original);
  }

  /// By sorting, which takes n log n whatever the names are. Tensors of one name from several files may keep
  /// having one.
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
    return make_error(ErrorCode::kInvalidArgument, "tensors ", quote(one.name), " of ", one.data.name(),
                      " and ", quote(other.name), " of ", other.data.name(), " would both be named ",
                      quote(same->first));
  }

  bool is_in_checkpoint(std::string_view name) {
    if (names_.empty()) {
      for (const CheckpointTensor& tensor : checkpoint_.tensors) names_.push_back(tensor.name);
      std::sort(names_.begin(), names_.end());
    }
    return std::binary_search(names_.begin(), names_.end(), name);
  }

  /// What is wrong with a tensor that a rule is for.
  template <class... Pieces>
  static Error misfit(ErrorCode code, const CheckpointTensor& tensor, const KeyRule& rule,
                      const Pieces&... pieces) {
    return make_error(code, tensor.data.name(), ": tensor ", quote(tensor.name), ", rule ",
                      quote(rule.pattern), ": ", pieces...);
  }

  /// How many rows a tensor has, that lie one after another.
  static Result<std::uint64_t> rows_of(const CheckpointTensor& tensor, const KeyRule& rule) {
    if (!tensor.layout) {
      return misfit(ErrorCode::kUnsupported, tensor, rule, "expected rows, found data of type ",
                    quote(tensor.type));
    }
    const auto& sizes = tensor.layout->sizes;
    if (sizes.empty() || sizes.front() < 0) {
      return misfit(ErrorCode::kInvalidArgument, tensor, rule, "expected rows, found ",
                    describe(*tensor.layout));
    }
    if (tensor.layout->dim_order.empty() || tensor.layout->dim_order.front() != 0) {
      return misfit(ErrorCode::kUnsupported, tensor, rule,
                    "expected rows that lie one after another, found them in another order");
    }
    return static_cast<std::uint64_t>(sizes.front());
  }

  static Result<std::vector<CheckpointTensor>> split(const CheckpointTensor& tensor, const KeyRule& rule) {
    ETSTREAM_ASSIGN(const std::uint64_t rows, rows_of(tensor, rule));
    ETSTREAM_ASSIGN(const auto counts, rows_of_parts(tensor, rule, rows));
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

  static Result<std::vector<std::uint64_t>> rows_of_parts(const CheckpointTensor& tensor, const KeyRule& rule,
                                                          std::uint64_t rows) {
    std::vector<std::uint64_t> counts;
    std::uint64_t left = rows;
    std::uint64_t sharing = 0;
    for (const KeyTarget& target : rule.targets) {
      std::uint64_t count = 0;
      if (target.rows == KeyTarget::Rows::kShare) {
        ++sharing;
      } else {
        ETSTREAM_ASSIGN(count, given_rows(tensor, rule, target));
      }
      if (count > left) return does_not_divide(tensor, rule, rows);
      left -= count;
      counts.push_back(count);
    }
    if (sharing == 0 ? left != 0 : left % sharing != 0) return does_not_divide(tensor, rule, rows);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (rule.targets[i].rows == KeyTarget::Rows::kShare) counts[i] = left / sharing;
    }
    return counts;
  }

  static Result<std::uint64_t> given_rows(const CheckpointTensor& tensor, const KeyRule& rule,
                                          const KeyTarget& target) {
    if (target.rows == KeyTarget::Rows::kNumber) return target.number;
    const auto& sizes = tensor.layout->sizes;
    if (sizes.size() > 1 && sizes[1] >= 0) return static_cast<std::uint64_t>(sizes[1]);
    return misfit(ErrorCode::kInvalidArgument, tensor, rule, "expected rows and columns, found ",
                  describe(*tensor.layout));
  }

  static Error does_not_divide(const CheckpointTensor& tensor, const KeyRule& rule, std::uint64_t rows) {
    return misfit(ErrorCode::kInvalidArgument, tensor, rule, "its ", counted(rows, "row"),
                  " can't be divided into the parts of the rule");
  }

  Result<void> interleave(const CheckpointTensor& tensor, const KeyRule& rule, CheckpointTensor& renamed) {
    ETSTREAM_ASSIGN(const std::uint64_t rows, rows_of(renamed, rule));
    if (!head_dim_) ETSTREAM_TRY(find_head_dim(tensor, rule));
    if (*head_dim_ == 0 || *head_dim_ % 2 != 0 || rows % *head_dim_ != 0) {
      return misfit(ErrorCode::kInvalidArgument, tensor, rule, "its ", counted(rows, "row"),
                    " are not whole heads of ", *head_dim_, " rows, an even number");
    }
    if (renamed.data.size() == 0) return {};
    renamed.data = interleave_rope(renamed.data, *head_dim_, renamed.data.size() / rows);
    return {};
  }

  Result<void> find_head_dim(const CheckpointTensor& tensor, const KeyRule& rule) {
    const std::string first = checkpoint_.files.empty() ? "" : checkpoint_.files.front();
    const std::string path = first.substr(0, first.rfind('/') + 1) + "config.json";
    const auto config = ByteSource::file(path);
    if (config) {
      ETSTREAM_ASSIGN(head_dim_, read_head_dim(*config));
    } else if (config.error().code != ErrorCode::kNotFound) {
      return config.error();
    }
    if (head_dim_) return {};
    return misfit(ErrorCode::kInvalidArgument, tensor, rule,
                  "how many rows make up a head is not known: ", path,
                  config ? " has neither head_dim nor hidden_size and num_attention_heads" : " is not there",
                  "; give it with head_dim");
  }

  const KeyRuleSet& rules_;
  const Checkpoint& checkpoint_;
  std::optional<std::uint32_t> head_dim_;
  std::vector<bool> used_;               // the rules
  std::vector<std::string_view> names_;  // of the checkpoint's tensors, sorted; at the first `unless`
  std::vector<std::string_view> runs_;   // what the '*' of the rule stand for
  std::vector<CheckpointTensor> out_;
  std::vector<const CheckpointTensor*> originals_;  // of those in `out_`
};

constexpr std::uint64_t kMostRuleBytes = std::uint64_t{64} << 20;

}  // namespace

Result<KeyRules> KeyRules::read(const ByteSource& json) {
  return without_exceptions([&]() -> Result<KeyRules> {
    if (json.size() > kMostRuleBytes) {
      return make_error(ErrorCode::kTooLarge, json.name(), ": expected rules of at most ",
                        readable_size(kMostRuleBytes), ", found ", readable_size(json.size()));
    }
    ETSTREAM_ASSIGN(KeyRuleSet set, read_key_rules(json));
    KeyRules out;
    out.set_ = std::make_shared<const KeyRuleSet>(std::move(set));
    return out;
  });
}

Result<KeyRules> KeyRules::ready_made(std::string_view name) {
  return without_exceptions([&]() -> Result<KeyRules> {
    ETSTREAM_ASSIGN(auto set, read_key_rules(ByteSource::memory(std::as_bytes(std::span(kKeyMaps))), name));
    if (!set) {
      std::string names;
      for (const std::string_view known : kKeyMapNames) names += text(names.empty() ? "" : ", ", known);
      return make_error(ErrorCode::kNotFound, "there are no ready-made rules ", quote(name), ", only ",
                        names);
    }
    set->is_ready_made = true;
    KeyRules out;
    out.set_ = std::make_shared<const KeyRuleSet>(std::move(*set));
    return out;
  });
}

std::vector<std::string> KeyRules::ready_made_names() { return {kKeyMapNames.begin(), kKeyMapNames.end()}; }

Result<KeyRuleReport> apply(const KeyRules& rules, Checkpoint& checkpoint, const KeyRuleOptions& options) {
  return without_exceptions([&]() -> Result<KeyRuleReport> {
    const KeyRuleSet none;
    KeyRenaming renaming(rules.set() ? *rules.set() : none, checkpoint, options);
    ETSTREAM_ASSIGN(KeyRuleReport report, renaming.run());
    checkpoint.tensors = renaming.take_tensors();
    return report;
  });
}

}  // namespace etstream
