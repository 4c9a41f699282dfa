// SPDX-License-Identifier: BSD-3-Clause
//
// The packer's work done by FlatBuffers' builder, straight from reflection: object order.
#pragma once

#include <flatbuffers/reflection_generated.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "value_tree.h"

namespace etstream::testing {

/// Alignments of scalar vectors, by object and field id, that replace the schema's.
using Alignments = std::map<std::pair<std::size_t, std::uint16_t>, std::uint32_t>;

/// Returns the file: a table's children first, by field id; then the table, with its fields in that order.
/// Scalars that FlatBuffers counts as their default are left out.
std::vector<std::byte> pack_by_reference(const reflection::Schema& schema, const TableTree& root,
                                         const Alignments& alignments);

}  // namespace etstream::testing
