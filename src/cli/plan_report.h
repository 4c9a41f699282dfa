// SPDX-License-Identifier: BSD-3-Clause
//
// A plan as people and programs want to see it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/output_options.h"
#include "etstream/file_plan.h"
#include "etstream/result.h"

namespace etstream::cli {

/// On standard output a table of the extents, the longest 40 of them; as JSON all: {"size", "metadata_size",
/// "payload_size", "memory", "extents": [{"offset", "size", "alignment", "label", "source"}]}, sizes in
/// bytes. Of `tensor_data`, the files that are written with it, the same below it, in JSON under
/// "tensor_data", a list where there are several. Errors: those of check_limits(), once all is shown.
[[nodiscard]] Result<void> show_plan(const FilePlan& plan, const OutputOptions& options,
                                     const std::vector<Output>& tensor_data = {});

/// Shows the plan, or writes it and says so: where to, how large, and how many of what `noun` names
/// ("tensor") are in it; in JSON {"output", "size", "tensors"}. Errors: those of write_output().
[[nodiscard]] Result<void> show_or_write(const FilePlan& plan, const OutputOptions& options,
                                         const std::string& noun, std::size_t count);

}  // namespace etstream::cli
