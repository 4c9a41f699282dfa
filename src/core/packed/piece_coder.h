// SPDX-License-Identifier: BSD-3-Clause
//
// Codes a piece of a packed file, and decodes it. The coder looks at a sample of each piece and takes what
// makes it smallest: zstd, zstd's entropy coder alone, or one of these for some planes of its elements. It
// knows no format, and pieces don't depend on one another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/packed/packed_format.h"
#include "etstream/result.h"

namespace etstream::packed {

/// A range of the base that may have bytes of a piece, in other places than the runs say.
struct BaseWindow {
  std::span<const std::byte> bytes;  // at most kPieceSize
  std::uint64_t offset = 0;          // in the base
};

/// The memory that a PieceEncoder takes, at most, in bytes; for updates 1 MiB more.
inline constexpr std::uint64_t kEncoderMemory = std::uint64_t{3} << 20;

/// Codes pieces. For one thread at a time.
class PieceEncoder {
 public:
  explicit PieceEncoder(bool for_updates = false);
  PieceEncoder(const PieceEncoder&) = delete;
  PieceEncoder& operator=(const PieceEncoder&) = delete;
  ~PieceEncoder();

  /// Puts in `out`, which has kMostCoded bytes, the header and the frames of a piece, which is not empty and
  /// at most kPieceSize long. Returns their size. Allocates nothing. Error: kOutOfMemory.
  [[nodiscard]] Result<std::size_t> encode(std::span<const std::byte> piece, std::span<std::byte> out);

  /// Does the same for a piece of an update, with kMostRunBytes more in `out`. `runs` are those of all of its
  /// bytes, as find_same() takes them. `base` has the bytes of the base in their places, and is overwritten.
  /// `window` is empty where elements are known.
  [[nodiscard]] Result<std::size_t> encode_update(std::span<const std::byte> piece, std::span<const Run> runs,
                                                  std::span<std::byte> base, const BaseWindow& window,
                                                  std::span<std::byte> out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the hash of a piece of an update as it lies there, from its header on. Puts zeros in its place.
[[nodiscard]] std::uint64_t hash_coded(std::span<std::byte> piece) noexcept;

/// Decodes pieces. Memory: at most 2 MiB. For one thread at a time.
class PieceDecoder {
 public:
  PieceDecoder();
  PieceDecoder(const PieceDecoder&) = delete;
  PieceDecoder& operator=(const PieceDecoder&) = delete;
  ~PieceDecoder();

  /// Fills `out`, which has as many bytes as the header says, at most kPieceSize, from the frames in `coded`.
  /// Allocates nothing but an error. Error: kCorrupt for anything but frames of exactly the bytes whose hash
  /// the header has, with a message that can follow "expected ".
  [[nodiscard]] Result<void> decode(const PieceHeader& header, std::span<const std::byte> coded,
                                    std::span<std::byte> out);

  /// Does the same for a piece of an update, whose runs were checked. `out` has the bytes of the base in
  /// their places, and `window` those of the window that the runs header names. `coded`, which is followed by
  /// room up to kPieceSize, is overwritten.
  [[nodiscard]] Result<void> decode_update(const PieceHeader& header, std::uint32_t sparse_planes,
                                           std::span<const Run> runs, std::span<const std::byte> window,
                                           std::span<std::byte> coded, std::span<std::byte> out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace etstream::packed
