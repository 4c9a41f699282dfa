// SPDX-License-Identifier: BSD-3-Clause
//
// Makes params.json from the config.json of a Hugging Face checkpoint. ExecuTorch's export_llama reads the
// shape of a checkpoint in Meta's format from it.
//
//   auto weights = etstream::open_checkpoint("Llama-3.2-1B");
//   const auto rules = etstream::RenameRules::ready_made("llama");
//   if (!weights) return weights.error();
//   if (!rules) return rules.error();
//   if (const auto renamed = etstream::apply(*rules, *weights); !renamed) return renamed.error();
//   const auto parameters = etstream::llama_parameters(*weights);
//   if (parameters && *parameters) std::puts((*parameters)->json.c_str());
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "etstream/checkpoint.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// The kind of a model, and the file that ExecuTorch's export reads its parameters from.
struct LlamaParameters {
  std::string model_type;  // that config.json says: "llama"
  std::string json;  // the text of params.json; "" for another than "llama", "mistral", "qwen2", "qwen3"
  std::vector<std::string> unknown;  // members of config.json that are not known, and not in `json`
};

/// Returns the content of params.json for a checkpoint whose tensors have Meta's names
/// (tok_embeddings.weight), as the ready-made rules for its model give them. Reads config.json beside its
/// first file. Returns nothing for tensors of other names, and if there is no config.json or it has no
/// model_type. Errors: kCorrupt for a config.json that is not JSON or lacks a value that is needed;
/// kUnsupported for a model that ExecuTorch's Transformer would compute in another way: another activation,
/// other RoPE than Llama 3's, other biases than Qwen2's, windows shorter than a sequence; for quantised
/// weights, whose scales are not applied; those of reading.
[[nodiscard]] ETSTREAM_EXPORT Result<std::optional<LlamaParameters>> llama_parameters(
    const Checkpoint& checkpoint);

}  // namespace etstream
