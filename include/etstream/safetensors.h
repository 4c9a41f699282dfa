// SPDX-License-Identifier: BSD-3-Clause
//
// Writes tensors as a safetensors file, which Python loads weights from.
//
//   const auto weights = etstream::open_checkpoint("model.ptd");
//   if (!weights) return weights.error();
//   const auto plan = etstream::plan_safetensors(*weights);
//   if (!plan) return plan.error();
#pragma once

#include "etstream/checkpoint_tensor.h"
#include "etstream/export.h"
#include "etstream/file_plan.h"
#include "etstream/result.h"

namespace etstream {

/// Plans the file, byte for byte as safetensors 0.8.0 writes it with {"format": "pt"} as metadata, which
/// transformers requires: tensors by type, then by name. Errors: kUnsupported for data without a layout, a
/// type that safetensors lacks, a tensor whose elements are not stored in the order of its dimensions, and a
/// name that is not UTF-8; kInvalidArgument for a name that is repeated, or is "__metadata__"; kTooLarge for
/// a header over 100,000,000 bytes.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan_safetensors(const Checkpoint& checkpoint);

}  // namespace etstream
