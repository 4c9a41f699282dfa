// SPDX-License-Identifier: BSD-3-Clause
//
// The bytes of a piece, arranged so that they take few bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/packed/packed_format.h"

namespace etstream::packed {

// Splitting a piece into planes, and merging these again. The highest bytes of a trained model's floats are
// alike, and take few bits if they stand together.

/// Arranges the bytes of `piece` in `out`, which is as long and does not overlap it.
void split(const Arrangement& arrangement, std::span<const std::byte> piece,
           std::span<std::byte> out) noexcept;

/// Restores in `out` the piece whose arranged bytes are `planes`, which are as many and do not overlap it.
void merge(const Arrangement& arrangement, std::span<const std::byte> planes,
           std::span<std::byte> out) noexcept;

// The differences by which the bytes of a run become those of an update, and sparse planes. A trained
// model's floats move by small steps, so the differences of their places in the order of all floats are
// small, and many are zero.

/// Puts in `out` the differences of elements of 1, 2 or 4 bytes in `now` from those in `base`, which are as
/// many. Elements of 2 or 4 bytes are floats: each is replaced by its place in their order. A difference is a
/// number whose lowest bit is its sign. Bytes after the last whole element are elements of 1 byte. `out` may
/// be anywhere from the end of `base` down to its start, or before it.
void subtract(std::uint32_t element_size, std::span<const std::byte> now, std::span<const std::byte> base,
              std::byte* out) noexcept;

/// Adds the differences to the elements in `bytes`, which are the base's, and become those of the update.
void add(std::uint32_t element_size, std::span<const std::byte> differences,
         std::span<std::byte> bytes) noexcept;

/// Divides runs, whose method is kNew, or 1 where they have a place in the base, so that ranges of the same
/// bytes have runs of their own. `base` has the bytes of the base in these places. Puts the runs in `out`,
/// which has room for kMostRuns, and returns how many they are. `runs` are not empty and at most kMostRuns.
[[nodiscard]] std::size_t find_same(std::span<const std::byte> piece, std::span<const std::byte> base,
                                    std::span<const Run> runs, std::span<Run> out) noexcept;

/// Returns the bytes of runs that the update has itself: of all but those that are the same.
[[nodiscard]] std::uint32_t content_size(std::span<const Run> runs) noexcept;

/// Returns the bytes that the mask of a plane takes: a bit for each byte.
[[nodiscard]] constexpr std::size_t mask_size(std::size_t plane) noexcept { return (plane + 7) / 8; }

/// Returns the bytes that the mask of a plane and the mask of that take at most.
[[nodiscard]] constexpr std::size_t masks_size(std::size_t plane) noexcept {
  return mask_size(plane) + mask_size(mask_size(plane));
}

/// The bytes of a sparse plane, which follow one another.
struct SparseSizes {
  std::size_t upper = 0;   // the mask of the mask
  std::size_t mask = 0;    // the bytes of the mask that are not zero
  std::size_t values = 0;  // the bytes of the plane that are not zero

  [[nodiscard]] std::size_t all() const noexcept { return upper + mask + values; }
};

/// Splits a plane into the bytes that are not zero, in order, and a mask, of which bit i of byte j is set if
/// byte 8 * j + i is not zero; and the mask in the same way. `masks` has room for masks_size(), and `values`
/// for all values; these may be the plane itself.
[[nodiscard]] SparseSizes split_sparse(std::span<const std::byte> plane, std::span<std::byte> masks,
                                       std::byte* values) noexcept;

/// Restores a plane from what split_sparse() makes of it at the start of `coded`, which may go on. `mask` has
/// room for its mask. Returns how many bytes of `coded` these are; nothing if there are fewer.
[[nodiscard]] std::optional<std::size_t> merge_sparse(std::span<const std::byte> coded,
                                                      std::span<std::byte> mask,
                                                      std::span<std::byte> plane) noexcept;

}  // namespace etstream::packed
