// SPDX-License-Identifier: BSD-3-Clause
//
// BackwardBuilder: a FlatBuffers builder that never holds the payloads.
//
// A flatbuffer is built from its end towards its front: children first, then the tables that point at
// them, the root and the header last. So every offset in it is a distance to something that is already
// placed, and only *how far* the builder has come matters, not the bytes in between. A payload of N
// bytes is therefore a *hole*: it moves the position by N and takes no memory. All else (alignment
// padding, vtables and their sharing, lengths) is what a builder that held everything would write.
//
// The bytes are those of FlatBuffers' Python builder, which ExecuTorch writes with, or of the C++ one. They
// differ in a vector of no elements, which Python's aligns for its elements all the same, and in which tables
// share a vtable, which releases of Python's do not agree on either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream {

/// The largest flatbuffer in bytes: offsets are 32 bits, and some of them signed.
inline constexpr std::uint64_t kLargestFlatbuffer = (std::uint64_t{1} << 31) - 1;

class BackwardBuilder {
 public:
  /// A finished object, by its distance from the end of the file. The default refers to nothing.
  struct Ref {
    std::uint64_t from_end = 0;
  };

  enum class EmptyVectors { kAligned, kAsTheyCome };
  explicit BackwardBuilder(EmptyVectors empty_vectors = EmptyVectors::kAligned,
                           VtableSharing vtables = VtableSharing::kOfEqualSize);
  ~BackwardBuilder();
  BackwardBuilder(const BackwardBuilder&) = delete;
  BackwardBuilder& operator=(const BackwardBuilder&) = delete;

  /// Returns the bytes placed so far, holes included.
  [[nodiscard]] std::uint64_t size() const noexcept { return plan_.size; }

  /// Adds a string with its length and its terminating zero. Equal strings are not shared.
  Ref add_string(std::string_view string);
  /// Adds a vector of scalars whose bytes are at hand. `elements` holds a whole number of elements of
  /// `element_size` bytes, little-endian; `alignment` is a power of two, at least `element_size`.
  Ref add_vector(std::span<const std::byte> elements, std::uint32_t element_size, std::uint32_t alignment);
  /// Adds the same, for elements that are read from `elements` when the file is written.
  Ref add_vector(ByteSource elements, std::uint32_t element_size, std::uint32_t alignment,
                 std::string_view label);
  /// Adds a vector of tables, strings or structs that are not inline.
  Ref add_vector(std::span<const Ref> elements);
  /// Adds a struct as an object of its own, as a union holds it. Its size is a multiple of `alignment`.
  Ref add_struct(std::span<const std::byte> bytes, std::uint32_t alignment);

  /// Brings size() to a multiple of `alignment`, a power of two.
  void pad(std::uint32_t alignment) { align(alignment, 0); }

  /// Begins a table. It gets its fields, and is ended; in between nothing else is added. A field's `id` is
  /// its place in the vtable, and each is added at most once.
  void begin_table();
  /// `bits` holds the scalar's `width` (1, 2, 4 or 8) bytes, the lowest first.
  void add_scalar(std::uint16_t id, std::uint64_t bits, unsigned width);
  void add_struct(std::uint16_t id, std::span<const std::byte> bytes, std::uint32_t alignment);
  void add_ref(std::uint16_t id, Ref object);
  Ref end_table();

  /// Adds the header (root offset, `identifier`, of 4 bytes or none, and room for `header_size` bytes of the
  /// format's own: see PackerOptions) and gives the file. The builder is used up. Error: kTooLarge if the
  /// file is larger than `limit` or kLargestFlatbuffer bytes, or a table or its vtable than the 65535 bytes
  /// that a vtable can say.
  [[nodiscard]] Result<FilePlan> finish(Ref root, std::string_view identifier, std::uint64_t limit,
                                        std::uint32_t header_size = 0);

 private:
  class Block;
  struct Field {
    std::uint16_t id;
    std::uint64_t from_end;
  };

  void align(std::uint64_t alignment, std::uint64_t upcoming);
  void begin_vector(std::uint64_t bytes, std::uint32_t alignment);
  Ref end_vector(std::uint64_t count);
  std::string vtable(std::uint64_t table_from_end);

  void place(std::span<const std::byte> bytes);
  void place_bits(std::uint64_t bits, unsigned width);
  void place_distance_to(std::uint64_t from_end);
  void place_zeros(std::uint64_t n);
  void place_hole(ByteSource source, std::uint32_t alignment, std::string_view label);
  void advance(std::uint64_t n);
  void close_chunk();
  void add_extent(std::uint32_t alignment, std::string_view label, ByteSource source);

  EmptyVectors empty_vectors_;
  VtableSharing vtable_sharing_;
  FilePlan plan_;  // of what is placed so far, from the first extent to the end of the file; offsets unset
  std::map<std::string, std::uint32_t> label_numbers_;
  std::shared_ptr<Block> block_;  // that the open chunk is in
  std::uint64_t largest_alignment_ = 1;
  bool overflow_ = false;         // of the size: over 2^64
  bool table_too_large_ = false;  // for 16-bit field offsets
  std::uint64_t table_end_ = 0;
  std::vector<Field> fields_;  // of the table that is open
  /// The vtables' distances from the end, by their content: without the table's size where tables of any size
  /// share one.
  std::map<std::string, std::uint64_t> vtables_;
};

}  // namespace etstream
