// SPDX-License-Identifier: BSD-3-Clause
//
// Random values for a schema.
#pragma once

#include <flatbuffers/reflection_generated.h>

#include "seeded_random.h"
#include "value_tree.h"

namespace etstream::testing {

/// Makes a table of the schema's root type. Scalars are absent, default, extreme, NaN, -0.0 or anything;
/// strings and vectors are absent, empty, short and now and then longer than a block of the builder. `schema`
/// is one of random_schema's: a required table leads to one of a higher number.
TableTree random_tree(const reflection::Schema& schema, SeededRandom& random);

}  // namespace etstream::testing
