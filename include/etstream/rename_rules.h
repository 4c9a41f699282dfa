// SPDX-License-Identifier: BSD-3-Clause
//
// RenameRules: rules in JSON for the names that a checkpoint's tensors get in a tensor data file; with
// ready-made rules from Hugging Face's names to those of ExecuTorch's own Transformer
// (examples/models/llama).
//
//   auto weights = etstream::open_checkpoint("model.safetensors.index.json");
//   if (!weights) return weights.error();
//   const auto rules = etstream::RenameRules::ready_made("llama");
//   if (!rules) return rules.error();
//   const auto report = etstream::apply(*rules, *weights);
//   if (!report) return report.error();
//
// The JSON is one object. Each key is a tensor's name, or a pattern of names in which each '*' matches one or
// more characters other than '.', and one "**" one or more characters; the first rule that matches a tensor
// applies. At most 1024 keys have a '*'.
// The value says what becomes of the tensor:
//
// - "layers.*.wv.weight": its new name, whose '*' stand for what those of the pattern matched, in order
// - null: it is left out
// - ["a", "b"]: it gets several names, which share its bytes
// - {"key": "a"}: its name, and optionally any of
//   "unless": "b", so that it does not get the name if the checkpoint has a tensor b
//   "interleave_rope": true, so that in each head, rows of the first half alternate with those of the
//   second: from Hugging Face's order to Meta's
// - {"split": [NAME or OBJECT, ...]}: it is cut along its first dimension, and each part gets a name.
//   An object may give the "rows" of its part: a number, or "columns" for the tensor's number of columns;
//   other parts share the rest equally
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

/// A value, cheap to copy. Const use from several threads is safe. By default, it has no rules.
class ETSTREAM_EXPORT RenameRules {
 public:
  /// Reads rules from JSON. Errors: kCorrupt for invalid JSON, kInvalidArgument for any other JSON than such
  /// an object, both with the line; kTooLarge over 64 MiB; read errors.
  [[nodiscard]] static Result<RenameRules> read(const ByteSource& json);

  /// Rules for the models that ExecuTorch's examples/models/`name` makes from Hugging Face's. Error:
  /// kNotFound, which lists the names that exist.
  [[nodiscard]] static Result<RenameRules> ready_made(std::string_view name);
  [[nodiscard]] static std::vector<std::string> ready_made_names();

  /// Returns the ready-made rules of this name, or else reads those in the file at this path. Errors: those
  /// of read() and of opening the file; kNotFound if there are neither.
  [[nodiscard]] static Result<RenameRules> open(const std::string& name_or_path);

  /// Returns the library's internal representation; null for no rules.
  [[nodiscard]] const std::shared_ptr<const RenameRuleSet>& set() const noexcept { return set_; }

 private:
  std::shared_ptr<const RenameRuleSet> set_;
};

/// Options of apply(RenameRules).
struct RenameOptions {
  /// The number of rows of a query or key projection that make up a head. If it is not given, it is read from
  /// config.json next to the checkpoint's first file: "head_dim", or "hidden_size" over
  /// "num_attention_heads".
  std::optional<std::uint32_t> head_dim;
};

/// The rules and the tensors that apply() found no counterpart for.
struct RenameReport {
  /// The patterns of rules that apply to no tensor. Of ready-made rules, this leaves out those for tensors
  /// that models of the family may lack: tensors that are left out, and tensors whose name another one gets.
  std::vector<std::string> unmatched_rules;
  std::vector<std::string> left_over_keys;  // of tensors without a rule, which keep their names
};

/// Gives the checkpoint's tensors their new names; their order stays. Reads no tensor: reordered rows are
/// read when their source is, in at most 256 KiB of memory. After an error the checkpoint is unchanged.
/// Errors: kInvalidArgument, naming both, for two tensors that would have one name, unless they had one
/// before, which merge() resolves; for rules that apply to no tensor, and ready-made ones that apply to no
/// layer and leave tensors over; for rows that can't be cut or ordered as a rule says; where a rule needs
/// the size of a head and it is unknown; for ready-made rules where config.json beside a file has a
/// model_type that they are not for. kUnsupported for such a rule on a tensor whose rows are not stored
/// one after another, or that has no layout. Rules that are ready-made, or cut or order rows, apply scales as
/// convert() does, with its errors. Errors reading config.json.
[[nodiscard]] ETSTREAM_EXPORT Result<RenameReport> apply(const RenameRules& rules, Checkpoint& checkpoint,
                                                         const RenameOptions& options = {});

}  // namespace etstream
