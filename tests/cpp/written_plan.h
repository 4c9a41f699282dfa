// SPDX-License-Identifier: BSD-3-Clause
//
// What a test wants to know of a plan: the file that it makes, and whether its extents are sound.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "etstream/file_plan.h"

namespace etstream::testing {

/// The file, written through a memory sink; a failed check and nothing if writing fails.
std::vector<std::byte> bytes_of(const FilePlan& plan);

/// `size` bytes of the file from `offset` on, read from the extents: for files too large to write.
std::vector<std::byte> bytes_of(const FilePlan& plan, std::uint64_t offset, std::size_t size);

/// What is wrong with the extents, or "": they follow one another without gaps, are not empty, have the
/// alignment that they state, carry a label, and add up to the plan's sizes.
std::string flaw_in(const FilePlan& plan);

/// Where two files differ first and how long they are, or "" if they are equal.
std::string difference(const std::vector<std::byte>& ours, const std::vector<std::byte>& expected);

}  // namespace etstream::testing
