// SPDX-License-Identifier: BSD-3-Clause
//
// ReferenceBuilder: FlatBuffers' C++ builder, made to write what its Python builder (25.x) writes.
//
// The two differ in one thing that shows in the bytes, read from both sources and seen in random files: a
// vector of no elements. C++ skips its alignment, except for that of its length. Python aligns it as if
// elements came, and counts that alignment in the file's largest. Two more Align calls make up for it.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace etstream::testing {

/// Its functions have the names and the meaning of BackwardBuilder's.
class ReferenceBuilder {
 public:
  using Ref = flatbuffers::Offset<void>;

  Ref add_string(std::string_view string);
  Ref add_vector(std::span<const std::byte> elements, std::uint32_t element_size, std::uint32_t alignment);
  Ref add_vector(std::span<const Ref> elements);
  Ref add_struct(std::span<const std::byte> bytes, std::uint32_t alignment);

  void begin_table() { table_ = builder_.StartTable(); }
  void add_scalar(std::uint16_t id, std::uint64_t bits, unsigned width);
  /// Leaves out a scalar that FlatBuffers counts as its default.
  template <class T>
  void add_scalar_unless_default(std::uint16_t id, T value, T default_value) {
    builder_.AddElement(flatbuffers::FieldIndexToOffset(id), value, default_value);
  }
  void add_ref(std::uint16_t id, Ref object) {
    builder_.AddOffset(flatbuffers::FieldIndexToOffset(id), object);
  }
  void add_struct(std::uint16_t id, std::span<const std::byte> bytes, std::uint32_t alignment) {
    builder_.AddStructOffset(flatbuffers::FieldIndexToOffset(id), add_struct(bytes, alignment).o);
  }
  Ref end_table() { return builder_.EndTable(table_); }

  /// Returns the file. `identifier` has 4 bytes, or none.
  std::vector<std::byte> finish(Ref root, std::string_view identifier);

 private:
  void push(std::span<const std::byte> bytes);

  flatbuffers::FlatBufferBuilder builder_;
  flatbuffers::uoffset_t table_ = 0;  // where the open one begins
};

}  // namespace etstream::testing
