// SPDX-License-Identifier: BSD-3-Clause
//
// A plan as people and programs want to see it.
#pragma once

#include <vector>

#include "etstream/file_plan.h"

namespace etstream::cli {

/// On standard output a table of the extents, the longest 40 of them; as JSON all: {"size", "metadata_size",
/// "payload_size", "memory", "extents": [{"offset", "size", "alignment", "label", "source"}]}, sizes in
/// bytes. Of `tensor_data`, the files that are written with it, the same below it, in JSON under
/// "tensor_data", a list where there are several.
void print_plan(const FilePlan& plan, bool as_json, const std::vector<const FilePlan*>& tensor_data = {});

}  // namespace etstream::cli
