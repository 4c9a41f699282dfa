// SPDX-License-Identifier: BSD-3-Clause
//
// What a file consists of, as a page for a browser.
#pragma once

#include <string>

#include "etstream/byte_source.h"
#include "etstream/file_plan.h"
#include "etstream/result.h"

namespace etstream {

/// The plan of a page: one file that needs no other, nor a network. `name` is what it calls the file, of any
/// format that etstream knows. Reads the metadata, payloads of which several have one size, samples of the
/// others, and what verify() reads. Errors: those of inspect(), verify() and estimate_coded_sizes().
[[nodiscard]] Result<FilePlan> plan_inspect_page(const ByteSource& file, const std::string& name);

}  // namespace etstream
