// SPDX-License-Identifier: BSD-3-Clause
//
// ValueReader: gives the packer values, one field at a time, from any source. Nothing is copied into a tree
// of values first.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "flatbuffer/schema.h"

namespace etstream {

/// A table, or a vector of tables, strings or unions, in whatever is read. Only the reader knows what the
/// members mean.
struct ValueNode {
  const void* object = nullptr;
  std::uint64_t index = 0;
};

struct AbsentValue {};
/// A scalar's own bytes, the lowest first, in the width of its field; higher bytes are ignored.
struct ScalarValue {
  std::uint64_t bits = 0;
};
struct TableValue {
  ValueNode node;
};
/// Member number `type` of its union. `node` is a table; or, if the member is a string or a struct, a vector
/// whose one element it is.
struct UnionValue {
  std::uint8_t type = 0;
  ValueNode node;
};
/// A vector of `count` tables, strings or unions.
struct VectorValue {
  ValueNode node;
  std::uint64_t count = 0;
};
/// A struct, or the elements of an inline vector that are at hand (small ones): as they lie in the file.
using BytesValue = std::span<const std::byte>;

/// A string and bytes are only valid until the reader's next call. A ByteSource is an inline vector whose
/// bytes stay where they are.
using FieldValue = std::variant<AbsentValue, ScalarValue, std::string_view, BytesValue, ByteSource,
                                TableValue, UnionValue, VectorValue>;

class ValueReader {
 public:
  ValueReader() = default;
  ValueReader(const ValueReader&) = delete;
  ValueReader& operator=(const ValueReader&) = delete;
  virtual ~ValueReader() = default;

  [[nodiscard]] virtual ValueNode root() = 0;
  /// Returns whether the source may have fields that the schema calls deprecated. Otherwise the packer does
  /// not ask for them.
  [[nodiscard]] virtual bool has_deprecated() const { return false; }
  /// Returns the value of field `field` of table type `table` (indices in the schema) in the table at `node`.
  /// A union's type field is not asked for: the union's value says it.
  [[nodiscard]] virtual Result<FieldValue> field(ValueNode node, std::size_t table, std::size_t field) = 0;
  /// Returns element `i` of a vector: a TableValue, a string, or a UnionValue. The packer asks for unions
  /// twice: all for their types, then each for its member.
  [[nodiscard]] virtual Result<FieldValue> element(ValueNode vector, std::uint64_t i) = 0;
};

}  // namespace etstream
