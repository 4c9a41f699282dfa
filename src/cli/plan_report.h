// SPDX-License-Identifier: BSD-3-Clause
//
// A layout as people and programs want to see it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "etstream/layout.h"

namespace etstream::cli {

/// {"size", "metadata_size", "payload_size", "memory", "extents": [{"offset", "size", "alignment",
/// "label", "source"}]}, all sizes in bytes.
[[nodiscard]] nlohmann::ordered_json to_json(const Layout& layout);

/// A table of the extents on standard output, the longest 40 of them.
void print(const Layout& layout);

}  // namespace etstream::cli
