// SPDX-License-Identifier: BSD-3-Clause
//
// Puts the weights of another checkpoint into a program that is already lowered, without an export: each
// payload is made of the new checkpoint by the steps that gave it of the old one.
//
//   const auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   const auto was = etstream::open_checkpoint("old.safetensors");
//   const auto now = etstream::open_checkpoint("new.safetensors");
//   if (!program || !was || !now) return program ? was ? now.error() : was.error() : program.error();
//   const auto planned = etstream::plan(etstream::Reweighting{&*program, {}, &*was, &*now});
//   if (!planned) return planned.error();
//   const auto sink = etstream::open_file_sink("new.pte").value();
//   if (const auto written = etstream::write(planned->program, *sink); !written) return written.error();
#pragma once

#include <cstddef>
#include <vector>

#include "etstream/checkpoint_tensor.h"
#include "etstream/export.h"
#include "etstream/file_plan.h"
#include "etstream/findings.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/tensor_data_file.h"
#include "etstream/weight_origins.h"

namespace etstream {

/// A program, the checkpoint that it was exported from, and the one whose weights it is to get. All outlive
/// the call of plan().
struct Reweighting {
  const ProgramFile* program = nullptr;
  std::vector<const TensorDataFile*> weights = {};  // that it runs with
  const Checkpoint* was = nullptr;
  const Checkpoint* now = nullptr;
  /// Takes a warning of tensors of `now` that are not as in `was`, and reach no payload.
  Warn warn = {};
};

/// The plans of the files with the new weights.
struct ReweightingPlan {
  FilePlan program;
  std::vector<FilePlan> weights;  // in the order given
  std::size_t replaced = 0;       // how many payloads are made of the new checkpoint
  WeightOrigins origins;          // of the old payloads
};

/// Plans the files with new weights. A file keeps its size and its layout: what changes are payloads, and
/// keys that are their SHA-256, also where delegates ask for them. So the files are those of an export of the
/// network with the new weights, unless that stores constants once that have become equal. A tensor of
/// another floating-point type is cast to that of the payload; it is first cast to that of the old tensor if
/// the payload was made in that, as a bfloat16 model is quantized in bfloat16.
///
/// Reads what explain() reads, then payloads that have hashes as keys, and the new checkpoint's tensors for
/// them; writing reads these once more. For `warn` it reads tensors of both that no payload has. Memory: as
/// of explain(). Errors: those of explain(); kUnsupported for a payload that the old checkpoint does not
/// explain; kInvalidArgument for a tensor that the new checkpoint lacks, or has in another shape; for a
/// payload whose ways give different bytes now; for two payloads that would have the same key, as an
/// export would store them once.
[[nodiscard]] ETSTREAM_EXPORT Result<ReweightingPlan> plan(const Reweighting& description);

}  // namespace etstream
