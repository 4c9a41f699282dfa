// SPDX-License-Identifier: BSD-3-Clause
//
// Random schemas, as text that FlatBuffers' own parser compiles.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "seeded_random.h"

namespace etstream::testing {

/// Returns a schema with up to 9 tables T0, T1, ... of all kinds of fields, with enums, structs and unions,
/// defaults, `= null`, force_align, required, deprecated, ids in an order of their own. A table may hold
/// itself; a *required* table or union always leads to a table of a higher number, so that values can end.
std::string random_schema(SeededRandom& random);

/// Returns the binary schema (.bfbs) of `text`; a failed check and nothing if it has an error.
std::vector<std::byte> compile_schema(const std::string& text);

}  // namespace etstream::testing
