// SPDX-License-Identifier: BSD-3-Clause
//
// A limit on how much of the disk writing takes. Names in a file may share their bytes, and an output that
// has them once for each name may be any number of times larger than the file.
//
//   const auto weights = etstream::open_checkpoint("model.ptd");
//   if (!weights) return weights.error();
//   const auto plan = etstream::plan_safetensors(*weights);
//   if (!plan) return plan.error();
//   const etstream::FilePlan* const plans[] = {&*plan};
//   const auto small_enough = etstream::check_disk(plans);
//   if (!small_enough) return small_enough.error();
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "etstream/export.h"
#include "etstream/file_plan.h"
#include "etstream/result.h"

namespace etstream {

/// Checks that the files of `plans` take no more of the disk together than they may: `max_disk` bytes or,
/// without it, 1 MiB more than 4 times the size of their sources. Counts each file and each piece of memory
/// among the sources once, and no zeros. Reads nothing. Error: kTooLarge, with the size of the files.
[[nodiscard]] ETSTREAM_EXPORT Result<void> check_disk(std::span<const FilePlan* const> plans,
                                                      std::optional<std::uint64_t> max_disk = {});

}  // namespace etstream
