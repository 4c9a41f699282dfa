// SPDX-License-Identifier: BSD-3-Clause
//
// RenameRules: under which names a checkpoint's tensors go into a tensor data file, as JSON; with ready-made
// rules that turn Hugging Face's names into those of ExecuTorch's own Transformer (examples/models/llama).
//
//   auto weights = etstream::open_checkpoint("model.safetensors.index.json");
//   if (!weights) return weights.error();
//   const auto rules = etstream::RenameRules::ready_made("llama");
//   if (!rules) return rules.error();
//   const auto report = etstream::apply(*rules, *weights);
//   if (!report) return report.error();
//
// The JSON is one object. A key of it is a tensor's name, or a pattern of names in which each '*' stands for
// one or more characters other than '.'; of the rules that match a tensor the first one is taken. The value
// says what becomes of the tensor:
//
// - "layers.*.wv.weight": its new name, whose '*' are those of the pattern in order
// - null: it is left out
// - ["a", "b"]: it gets several names, which share its bytes
// - {"key": "a"}: its name, and with it any of
//   "unless": "b", where it does not get the name if the checkpoint has a tensor b
//   "interleave_rope": true, where in each head rows of the first half take turns with those of the
//   second: from Hugging Face's order to Meta's
// - {"split": [NAME or OBJECT, ...]}: it is cut along its first dimension, and each part gets a name.
//   An object may give the "rows" of its part: a number, or "columns" for as many as the tensor has; other
//   parts share the rest
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

struct RenameRuleSet;

/// A value, cheap to copy. Const use from several threads is safe. Without rules by default.
class ETSTREAM_EXPORT RenameRules {
 public:
  /// Errors: kCorrupt for what is not JSON, kInvalidArgument for what is not such an object, both with the
  /// line; kTooLarge over 64 MiB; those of reading.
  [[nodiscard]] static Result<RenameRules> read(const ByteSource& json);

  /// For the models that ExecuTorch's examples/models/`name` makes from Hugging Face's. Error: kNotFound,
  /// which names those there are.
  [[nodiscard]] static Result<RenameRules> ready_made(std::string_view name);
  [[nodiscard]] static std::vector<std::string> ready_made_names();

  /// The library's own form of them; null for none.
  [[nodiscard]] const std::shared_ptr<const RenameRuleSet>& set() const noexcept { return set_; }

 private:
  std::shared_ptr<const RenameRuleSet> set_;
};

struct RenameOptions {
  /// How many rows of a query or key projection make up a head. Where none is given it is told by config.json
  /// beside the checkpoint's first file: "head_dim", or "hidden_size" over "num_attention_heads".
  std::optional<std::uint32_t> head_dim;
};

struct RenameReport {
  /// The patterns of rules that no tensor matched first; of ready-made rules, which are for a whole family of
  /// models, none.
  std::vector<std::string> unmatched_rules;
  std::vector<std::string> left_over_keys;  // of tensors without a rule, which keep their names
};

/// Gives the checkpoint's tensors their new names; their order stays. Reads no tensor: rows in another order
/// are read when their source is, in at most 256 KiB of memory. After an error the checkpoint is as it was.
/// Errors: kInvalidArgument for two tensors that would have one name, naming both, unless they had one
/// before, which merge() settles; for rows that can't be cut or ordered as a rule says; where a rule needs
/// the size of a head and none is known. kUnsupported for such a rule and a tensor whose rows don't lie one
/// after another, or that has no layout. Those of reading config.json.
[[nodiscard]] ETSTREAM_EXPORT Result<RenameReport> apply(const RenameRules& rules, Checkpoint& checkpoint,
                                                         const RenameOptions& options = {});

}  // namespace etstream
