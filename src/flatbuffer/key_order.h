// SPDX-License-Identifier: BSD-3-Clause
//
// The order of vectors whose elements have a key. flatc sorts them in time that grows with the square of
// equal keys.
#pragma once

#include <cstddef>
#include <span>

namespace flatbuffers {
class Parser;
}  // namespace flatbuffers

namespace etstream {

/// Makes `parser` leave vectors in the order of the JSON, for sort_by_keys(). Returns whether it sorted any.
[[nodiscard]] bool leave_unsorted(flatbuffers::Parser& parser);

/// Sorts the vectors of `flatbuffer`, which `parser` has built, as flatc does. Equal keys come in flatc's
/// order too, unless flatc takes over 64 comparisons for each element of a vector: then they stay in the
/// order of the JSON.
void sort_by_keys(const flatbuffers::Parser& parser, std::span<std::byte> flatbuffer);

}  // namespace etstream
