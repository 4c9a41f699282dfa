// SPDX-License-Identifier: BSD-3-Clause
//
// The file that a plan makes, and checks of its extents, for tests.
#pragma once

#include <bit>
#include <cstddef>
#include <string>
#include <vector>

#include "etstream/sink.h"

namespace etstream::testing {

/// Returns whether an extent has the alignment that it states, a power of two.
inline bool is_aligned(const Extent& extent) {
  return std::has_single_bit(extent.alignment) && extent.offset % extent.alignment == 0;
}

/// Returns the file, written through a memory sink; a failed check and nothing if writing fails.
std::vector<std::byte> bytes_of(const FilePlan& plan);

/// Returns `size` bytes of the file from `offset` on, read from the extents: for files too large to write.
std::vector<std::byte> bytes_of(const FilePlan& plan, std::uint64_t offset, std::size_t size);

/// Returns the flaw of the extents, or "" if they follow one another without gaps, are not empty, have the
/// alignment that they state, carry a label, and add up to the plan's sizes.
std::string flaw_in(const FilePlan& plan);

/// Describes the first difference of two files and their sizes; "" if they are equal.
std::string difference(const std::vector<std::byte>& ours, const std::vector<std::byte>& expected);

}  // namespace etstream::testing
