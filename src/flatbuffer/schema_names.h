// SPDX-License-Identifier: BSD-3-Clause
//
// The names in a binary schema.
#pragma once

#include "etstream/result.h"

namespace reflection {
struct Schema;
}  // namespace reflection

namespace etstream {

/// Checks that no two tables, structs, enums or unions have one name, nor two services, two members of one of
/// these, or two attributes of one thing. FlatBuffers' parser would free one of the two, and go on using it.
/// The schema is one that FlatBuffers' verifier accepts. Error: kCorrupt with the name.
[[nodiscard]] Result<void> check_names(const reflection::Schema& schema);

}  // namespace etstream
