// SPDX-License-Identifier: BSD-3-Clause
//
// The structures of a packed file, as schema/packed_file.md specifies them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

#include "etstream/result.h"

namespace etstream::packed {

static_assert(std::endian::native == std::endian::little, "structures lie in a file as they do in memory");

/// The original bytes of each piece but the last, which has what is left.
inline constexpr std::uint32_t kPieceSize = std::uint32_t{1} << 20;
/// The most bytes by which the coded piece may exceed the original one: a stored frame's headers.
inline constexpr std::uint32_t kMostOverhead = 256;
/// The most bytes of the file's header after the start of its frame, with those that a later version adds.
inline constexpr std::uint32_t kMostHeader = kPieceSize;
/// One of the 16 numbers by which decoders of zstd know that they are to skip a frame.
inline constexpr std::uint32_t kSkippable = 0x184D2A5C;
inline constexpr std::uint32_t kVersion = 1;

/// Returns the number that four characters of an identifier are in a file.
[[nodiscard]] constexpr std::uint32_t identifier(const char (&text)[5]) noexcept {
  std::uint32_t out = 0;
  for (int i = 3; i >= 0; --i) out = out << 8 | static_cast<unsigned char>(text[i]);
  return out;
}

/// The first bytes of a skippable frame. `size` is that of what follows these 8 bytes.
struct FrameStart {
  std::uint32_t magic = kSkippable;
  std::uint32_t size = 0;
};

/// The kinds of packed files.
inline constexpr std::uint32_t kWhole = 0;
inline constexpr std::uint32_t kUpdate = 1;
inline constexpr std::uint32_t kDerived = 2;  // an update whose base a recipe makes

/// The start of the file.
struct FileHeader {
  FrameStart frame{.size = 24};
  std::uint32_t identifier = packed::identifier("ETZ1");
  std::uint32_t version = kVersion;
  std::uint32_t piece_size = kPieceSize;
  std::uint32_t kind = kWhole;
  std::uint64_t unused = 0;  // written as zero, and ignored
};
static_assert(sizeof(FileHeader) == 32);

/// Follows the FileHeader of an update, in its frame: what the update was made from.
struct BaseHeader {
  std::uint64_t size = 0;  // in bytes
  ContentHash hash{};      // of the base, or of the recipe that makes it
};
static_assert(sizeof(BaseHeader) == 24);

/// The most bytes of a recipe.
inline constexpr std::uint32_t kMostRecipe = std::uint32_t{1} << 20;

/// Follows the BaseHeader of a derived update. The recipe is the rest of its frame.
struct RecipeHeader {
  FrameStart frame;
  std::uint32_t identifier = packed::identifier("ETZr");
};
static_assert(sizeof(RecipeHeader) == 12);

/// Describes how the bytes of a piece are arranged before they are coded. Each element is rotated to the left
/// by `rotation` bits. Then come the highest bytes of all elements, those next to them, and so on down to the
/// lowest; after these the bytes that are before the first element, and those after the last whole one.
struct Arrangement {
  std::uint32_t element_size = 1;   // in bytes: 1, 2 or 4
  std::uint32_t rotation = 0;       // 0 or 1: then the highest byte of a float of 8 exponent bits is these
  std::uint32_t first_element = 0;  // the bytes before it, fewer than element_size

  friend bool operator==(const Arrangement&, const Arrangement&) = default;
};

/// The ways in which a run of bytes is restored. Differences are of elements of 1, 2 or 4 bytes, see
/// differences.h.
inline constexpr std::uint32_t kNew = 0;
inline constexpr std::uint32_t kSame = 8;

/// A range of a piece of an update.
struct Run {
  std::uint32_t size = 0;         // in bytes
  std::uint32_t method = kNew;    // or the element size of differences, or kSame
  std::uint64_t base_offset = 0;  // of the bytes in the base that it is restored from; 0 of new ones

  friend bool operator==(const Run&, const Run&) = default;
};
static_assert(sizeof(Run) == 16);

/// The most runs of a piece.
inline constexpr std::uint32_t kMostRuns = 4096;

/// Follows the PieceHeader of an update, in its frame, with the runs behind it.
struct RunsHeader {
  std::uint32_t sparse_planes = 0;  // bit i is set if plane i of the arrangement is sparse
  std::uint32_t window_size = 0;    // bytes of the base that the frames match, at most kPieceSize
  std::uint64_t window_offset = 0;  // in the base
  std::uint64_t coded_hash = 0;     // XXH3 of all of the piece in the update, with zeros here
};
static_assert(sizeof(RunsHeader) == 24);

/// Stands before the coded bytes of each piece. Of an update, what is arranged and coded is its content: the
/// bytes of all runs that are not the same, in order, with differences in the place of bytes.
struct PieceHeader {
  FrameStart frame{.size = 32};
  std::uint32_t identifier = packed::identifier("ETZp");
  std::uint32_t original_size = 0;
  std::uint32_t coded_size = 0;  // of the zstd frames that follow
  Arrangement arrangement;
  std::uint64_t hash = 0;  // XXH3 of the original bytes
};
static_assert(sizeof(PieceHeader) == 40);

/// The end of the file, after the offsets of all pieces.
struct Footer {
  ContentHash content_hash{};  // of the original bytes
  ContentHash table_hash{};    // of the offsets, and of this structure with zeros here
  std::uint64_t original_size = 0;
  std::uint64_t table_offset = 0;  // of the skippable frame that holds the offsets and this structure
  std::uint32_t piece_count = 0;
  std::uint32_t reserved = 0;
  std::uint32_t version = kVersion;
  std::uint32_t identifier = packed::identifier("ETZe");
};
static_assert(sizeof(Footer) == 64);

/// The most bytes of a piece with its header.
inline constexpr std::size_t kMostCoded = sizeof(PieceHeader) + kPieceSize + kMostOverhead;
/// The most bytes of these headers and runs that a piece of an update has in addition.
inline constexpr std::size_t kMostRunBytes = sizeof(RunsHeader) + kMostRuns * sizeof(Run);

/// The most pieces whose offsets, and the footer, fit in a skippable frame: 512 TiB.
inline constexpr std::uint64_t kMostPieces =
    (std::numeric_limits<std::uint32_t>::max() - sizeof(Footer)) / sizeof(std::uint64_t);

/// Returns the bytes of a structure.
template <class T>
[[nodiscard]] std::span<const std::byte> bytes_of(const T& structure) noexcept {
  return std::as_bytes(std::span(&structure, 1));
}

/// Returns the size of the frame that holds the offsets of `pieces` and the footer, without its first 8
/// bytes.
[[nodiscard]] constexpr std::uint64_t table_size(std::uint64_t pieces) noexcept {
  return pieces * sizeof(std::uint64_t) + sizeof(Footer);
}

/// Returns the number of pieces of a file of `size` original bytes.
[[nodiscard]] constexpr std::uint64_t pieces_of(std::uint64_t size) noexcept {
  return size / kPieceSize + (size % kPieceSize != 0 ? 1 : 0);
}

/// Returns the size of piece `index` in a file of `size` original bytes.
[[nodiscard]] constexpr std::uint32_t piece_size(std::uint64_t index, std::uint64_t size) noexcept {
  const std::uint64_t left = size - index * kPieceSize;
  return left < kPieceSize ? static_cast<std::uint32_t>(left) : kPieceSize;
}

}  // namespace etstream::packed
