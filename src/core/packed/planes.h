// SPDX-License-Identifier: BSD-3-Clause
//
// Splitting a piece into planes, and merging these again. The highest bytes of a trained model's floats are
// alike, and take few bits if they stand together.
#pragma once

#include <cstddef>
#include <span>

#include "core/packed/packed_format.h"

namespace etstream::packed {

/// Arranges the bytes of `piece` in `out`, which is as long and does not overlap it.
void split(const Arrangement& arrangement, std::span<const std::byte> piece,
           std::span<std::byte> out) noexcept;

/// Restores in `out` the piece whose arranged bytes are `planes`, which are as many and do not overlap it.
void merge(const Arrangement& arrangement, std::span<const std::byte> planes,
           std::span<std::byte> out) noexcept;

}  // namespace etstream::packed
