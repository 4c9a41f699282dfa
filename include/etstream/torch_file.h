// SPDX-License-Identifier: BSD-3-Clause
//
// Writes tensors as torch.save does: a zip archive with a pickle, which torch.load reads (.pth, .pt, .bin).
//
//   const auto weights = etstream::open_checkpoint("model.safetensors");
//   if (!weights) return weights.error();
//   const auto plan = etstream::plan_torch_file(*weights);
//   if (!plan) return plan.error();
#pragma once

#include "etstream/checkpoint_tensor.h"
#include "etstream/export.h"
#include "etstream/file_plan.h"
#include "etstream/result.h"

namespace etstream {

/// Plans the file of a dict of tensors by name, in their order, for torch.load with weights_only and mmap or
/// without. Its pickle is the one that torch 2.13 writes. Tensors begin at multiples of 64 bytes of the file;
/// those that are the same bytes of the same source share a storage. The checksums of the archive, which
/// torch does not check, are computed as the tensors are written. Errors: kUnsupported for data without a
/// layout, a type that torch has no tensors of or quantised ones, and a name that is not UTF-8;
/// kInvalidArgument for a name that is repeated; kTooLarge over 65,533 storages.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan_torch_file(const Checkpoint& checkpoint);

}  // namespace etstream
