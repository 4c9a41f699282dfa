// SPDX-License-Identifier: BSD-3-Clause
//
// A layout as people and programs want to see it.
#pragma once

#include "etstream/layout.h"

namespace etstream::cli {

/// On standard output a table of the extents, the longest 40 of them; as JSON all: {"size", "metadata_size",
/// "payload_size", "memory", "extents": [{"offset", "size", "alignment", "label", "source"}]}, sizes in
/// bytes.
void print_plan(const Layout& layout, bool as_json);

}  // namespace etstream::cli
