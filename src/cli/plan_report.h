// SPDX-License-Identifier: BSD-3-Clause
//
// A plan as people and programs want to see it.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "etstream/file_plan.h"
#include "etstream/result.h"

namespace etstream::cli {

/// On standard output a table of the extents, the longest 40 of them; as JSON all: {"size", "metadata_size",
/// "payload_size", "memory", "extents": [{"offset", "size", "alignment", "label", "source"}]}, sizes in
/// bytes. Of `tensor_data`, the files that are written with it, the same below it, in JSON under
/// "tensor_data", a list where there are several. Of `params`, a params.json that is written with it unless
/// null, a line, in JSON its path under "params". Errors: those of check_outputs(), once all is shown.
[[nodiscard]] Result<void> show_plan(const FilePlan& plan, const OutputOptions& options,
                                     const std::vector<Output>& tensor_data = {},
                                     const Output* params = nullptr);
/// Says where a params.json is written, and what it has.
void say_params(const Output& params);

/// Shows the plan, or writes it and says so: with --json prints `report`, otherwise where it went and
/// `words`. Errors: those of write_output().
[[nodiscard]] Result<void> show_or_write(const FilePlan& plan, const OutputOptions& options,
                                         const nlohmann::ordered_json& report, const std::string& words);
/// The same for a file with `count` of what `noun` names ("tensor"): says how large it is and how many these
/// are, as JSON {"output", "size", "tensors"}.
[[nodiscard]] Result<void> show_or_write(const FilePlan& plan, const OutputOptions& options,
                                         const std::string& noun, std::size_t count);

}  // namespace etstream::cli
