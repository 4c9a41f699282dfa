// SPDX-License-Identifier: BSD-3-Clause
//
// params.json, by which ExecuTorch's export_llama knows the shape of a checkpoint in Meta's format, from the
// config.json that Hugging Face's checkpoints have.
//
//   auto weights = etstream::open_checkpoint("Llama-3.2-1B");
//   const auto rules = etstream::RenameRules::ready_made("llama");
//   if (!weights) return weights.error();
//   if (!rules) return rules.error();
//   if (const auto renamed = etstream::apply(*rules, *weights); !renamed) return renamed.error();
//   const auto parameters = etstream::llama_parameters(*weights);
//   if (parameters && *parameters) std::puts((*parameters)->c_str());
#pragma once

#include <optional>
#include <string>

#include "etstream/checkpoint.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// Returns the JSON text for a checkpoint whose tensors have Meta's names (tok_embeddings.weight), from
/// config.json beside its first file. None for tensors of other names, where there is no config.json, and for
/// one whose model_type is not "llama" or "mistral". Errors: kCorrupt for a config.json that is not JSON or
/// lacks what is needed; kUnsupported for a model that ExecuTorch's Transformer computes otherwise: another
/// activation, other scaling of RoPE than Llama 3's, biases; those of reading.
[[nodiscard]] ETSTREAM_EXPORT Result<std::optional<std::string>> llama_parameters(
    const Checkpoint& checkpoint);

}  // namespace etstream
