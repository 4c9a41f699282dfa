// SPDX-License-Identifier: BSD-3-Clause
//
// A layout as people and programs want to see it.
#pragma once

#include "etstream/layout.h"

namespace etstream::cli {

/// On standard output a table of the extents, the longest 40 of them; as JSON all: {"size", "metadata_size",
/// "payload_size", "memory", "extents": [{"offset", "size", "alignment", "label", "source"}]}, sizes in
/// bytes. Of `weights`, a file that is written with it, the same below it, in JSON under "weights".
void print_plan(const Layout& layout, bool as_json, const Layout* weights = nullptr);

}  // namespace etstream::cli
