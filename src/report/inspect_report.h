// SPDX-License-Identifier: BSD-3-Clause
//
// What a file consists of, as the JSON that inspect reports, and as a page for a browser.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/file_plan.h"
#include "etstream/inspect.h"
#include "etstream/result.h"

namespace etstream {

/// As people read them: "float32 [1, 3]".
[[nodiscard]] std::vector<std::string> described(const std::vector<ValueInfo>& values);

/// `file` is what the report calls it. `duplicates` are in it where they were asked for.
[[nodiscard]] nlohmann::ordered_json inspection_to_json(const std::string& file, const FileInspection& found,
                                                        bool duplicates);

/// The plan of a page: one file that needs no other, nor a network. `name` is what it calls the file, of any
/// format that etstream knows. Reads the metadata, payloads of which several have one size, samples of the
/// others, and what verify() reads. Errors: those of inspect(), verify() and estimate_coded_sizes().
[[nodiscard]] Result<FilePlan> plan_inspect_page(const ByteSource& file, const std::string& name);

}  // namespace etstream
