// SPDX-License-Identifier: BSD-3-Clause
//
// A plan as people and programs read it.
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

/// Prints a table of the extents on standard output, the longest 40 of them; as JSON all: {"size",
/// "metadata_size", "payload_size", "memory", "extents": [{"offset", "size", "alignment", "label",
/// "source"}]}, sizes in bytes. `tensor_data` are the files that are written with it. They follow in the same
/// form, in JSON under "tensor_data", a list if there are several. `params` is a params.json that is written
/// with it, unless null; it gets a line, in JSON its path under "params". Errors: those of check_outputs(),
/// once all is shown.
[[nodiscard]] Result<void> show_plan(const FilePlan& plan, const OutputOptions& options,
                                     const std::vector<Output>& tensor_data = {},
                                     const Output* params = nullptr);
/// Says where a params.json is written, and what it holds.
void say_params(const Output& params);

/// Shows the plan, or writes it and says so: with --json prints `report`, otherwise the path and `words`.
/// Errors: those of write_output().
[[nodiscard]] Result<void> show_or_write(const FilePlan& plan, const OutputOptions& options,
                                         const nlohmann::ordered_json& report, const std::string& words);
/// Does the same for a file with `count` of what `noun` names ("tensor"): says how large it is and how many
/// there are, as JSON {"output", "size", "tensors"}.
[[nodiscard]] Result<void> show_or_write(const FilePlan& plan, const OutputOptions& options,
                                         const std::string& noun, std::size_t count);

}  // namespace etstream::cli
