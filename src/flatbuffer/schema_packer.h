// SPDX-License-Identifier: BSD-3-Clause
//
// pack(): packs any table of any schema, driven by the schema alone. ValueReader: gives it the values, one
// field at a time, from any source. Nothing is copied into a tree of values first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "core/layout/backward_builder.h"
#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/sink.h"
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

/// The order of objects in a flatbuffer, which differs between writers.
enum class ObjectOrder {
  kObjectApi,  // that of FlatBuffers' Python object API, which ExecuTorch writes .pte and .bpte files with
  kFlatc,      // that of FlatBuffers' JSON parser, which it writes .ptd files with, and once wrote all
};

struct PackerOptions {
  std::uint64_t limit = kLargestFlatbuffer;  // of the file, in bytes
  /// The size in bytes of a header of the format's own behind the identifier: an extent of zeros, the second
  /// one and labelled "header", whose source the caller replaces. It counts as metadata.
  std::uint32_t header_size = 0;
  ObjectOrder order = ObjectOrder::kObjectApi;
  /// The sharing of vtables in the order of the object API. In flatc's order, tables of equal size share
  /// them.
  VtableSharing vtables = VtableSharing::kOfEqualSize;
};

/// Packs what `reader` gives, from its root on. A table's children come first, in the order of its fields.
/// Then comes the table, with its fields in that order too or, as in flatc, the widest first and of one width
/// the last first. Scalars that equal their default are left out, vtables are shared as `vtables` says, and
/// strings are not shared.
///
/// Errors: the reader's own; kInvalidArgument for a value that is not of its field's kind, a string
/// that breaks its field's rule (unmet_rule()), a required field that is absent, tables nested deeper than
/// 64; kTooLarge over the limit.
[[nodiscard]] Result<FilePlan> pack(const Schema& schema, ValueReader& reader,
                                    const PackerOptions& options = {});

}  // namespace etstream
