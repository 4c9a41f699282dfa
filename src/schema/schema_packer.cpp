// SPDX-License-Identifier: BSD-3-Clause
#include "schema/schema_packer.h"

#include <bit>
#include <limits>
#include <vector>

#include "base/text.h"
#include "base/try.h"

namespace etstream {
namespace {

using Ref = BackwardBuilder::Ref;

/// FlatBuffers' verifier stops at the same depth.
constexpr int kDeepest = 64;

/// Floats are compared as numbers: a zero default also stands for -0.0, and a NaN is never the default.
bool equals_default(const FieldType& field, std::uint64_t bits) {
  if (!field.default_bits) return false;
  const std::uint64_t mask = std::numeric_limits<std::uint64_t>::max() >> (64 - 8 * field.width);
  if (!field.is_float) return ((bits ^ *field.default_bits) & mask) == 0;
  if (field.width == 8) return std::bit_cast<double>(bits) == std::bit_cast<double>(*field.default_bits);
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits)) ==
         std::bit_cast<float>(static_cast<std::uint32_t>(*field.default_bits));
}

class Packer {
 public:
  Packer(const Schema& schema, ValueReader& reader) : schema_(schema), reader_(reader) {}

  Result<Layout> run(std::uint64_t limit) {
    ETSTREAM_ASSIGN(const Ref root, pack_table(reader_.root(), schema_.root_index(), 1));
    return builder_.finish(root, schema_.identifier(), limit);
  }

 private:
  /// What a field's slot in its table will hold, once the field's children are placed.
  struct Slot {
    bool present = false;
    std::uint64_t bits = 0;  // of a scalar
    Ref ref;                 // to anything else
  };

  Result<Ref> pack_table(ValueNode node, std::size_t type, int depth) {
    const TableType& table = schema_.tables()[type];
    if (depth > kDeepest) {
      return make_error(ErrorCode::kInvalidArgument, "tables are nested deeper than ", kDeepest, ", at ",
                        table.name);
    }
    const std::size_t first_slot = slots_.size();
    slots_.resize(first_slot + table.fields.size());
    for (std::size_t i = 0; i < table.fields.size(); ++i) {
      if (table.fields[i].kind == FieldKind::kUnionType || table.fields[i].deprecated) continue;
      ETSTREAM_ASSIGN(const FieldValue value, reader_.field(node, type, i));
      if (std::holds_alternative<AbsentValue>(value)) {
        if (table.fields[i].required) return mismatch(table, table.fields[i], "is required, but absent");
        continue;
      }
      ETSTREAM_TRY(pack_field(table, i, value, first_slot, depth));
    }
    builder_.begin_table();
    for (const FieldType& field : table.fields) {
      const Slot& slot = slots_[first_slot + field.id];
      if (slot.ref) {
        builder_.add_ref(field.id, slot.ref);
      } else if (slot.present && !equals_default(field, slot.bits)) {
        builder_.add_scalar(field.id, slot.bits, field.width);
      }
    }
    slots_.resize(first_slot);
    return builder_.end_table();
  }

  /// Places the children of a field that is there, and fills its slot.
  Result<void> pack_field(const TableType& table, std::size_t index, const FieldValue& value,
                          std::size_t first_slot, int depth) {
    const FieldType& field = table.fields[index];
    if (field.kind == FieldKind::kScalar) {
      const auto* scalar = std::get_if<ScalarValue>(&value);
      if (!scalar) return mismatch(table, field, "is not a scalar");
      slots_[first_slot + index] = {true, scalar->bits, {}};
      return {};
    }
    ETSTREAM_ASSIGN(const Ref ref, pack_child(table, field, value, depth));
    slots_[first_slot + index].ref = ref;
    if (field.kind == FieldKind::kUnion) {
      slots_[first_slot + index - 1] = {true, std::get<UnionValue>(value).type, {}};
    }
    return {};
  }

  Result<Ref> pack_child(const TableType& table, const FieldType& field, const FieldValue& value, int depth) {
    switch (field.kind) {
      case FieldKind::kString:
        if (const auto* string = std::get_if<std::string_view>(&value)) return builder_.add_string(*string);
        break;
      case FieldKind::kScalarVector:
        return pack_scalar_vector(table, field, value);
      case FieldKind::kTable:
        if (const auto* child = std::get_if<TableValue>(&value)) {
          return pack_table(child->node, field.type, depth + 1);
        }
        break;
      case FieldKind::kUnion:
        if (const auto* child = std::get_if<UnionValue>(&value)) {
          const auto& members = schema_.unions()[field.type].members;
          if (child->type >= members.size() || !members[child->type]) break;
          return pack_table(child->node, *members[child->type], depth + 1);
        }
        break;
      case FieldKind::kTableVector:
      case FieldKind::kStringVector:
        if (const auto* vector = std::get_if<VectorValue>(&value)) {
          return pack_ref_vector(table, field, *vector, depth);
        }
        break;
      case FieldKind::kScalar:
      case FieldKind::kUnionType:
        break;
    }
    return mismatch(table, field, "is not of the kind that the schema says");
  }

  Result<Ref> pack_scalar_vector(const TableType& table, const FieldType& field, const FieldValue& value) {
    if (const auto* small = std::get_if<SmallVectorValue>(&value); small && whole(small->size(), field)) {
      return builder_.add_vector(*small, field.width, field.alignment);
    }
    if (const auto* large = std::get_if<ByteSource>(&value); large && whole(large->size(), field)) {
      return builder_.add_vector(*large, field.width, field.alignment, text(table.name, ".", field.name));
    }
    return mismatch(table, field, "is not a whole number of scalars");
  }

  static bool whole(std::uint64_t bytes, const FieldType& field) { return bytes % field.width == 0; }

  Result<Ref> pack_ref_vector(const TableType& table, const FieldType& field, const VectorValue& vector,
                              int depth) {
    if (vector.count > kLargestFlatbuffer) return mismatch(table, field, "has too many elements");
    std::vector<Ref> refs;
    for (std::uint64_t i = 0; i < vector.count; ++i) {
      ETSTREAM_ASSIGN(const FieldValue element, reader_.element(vector.node, i));
      if (const auto* child = std::get_if<TableValue>(&element);
          child && field.kind == FieldKind::kTableVector) {
        ETSTREAM_ASSIGN(const Ref ref, pack_table(child->node, field.type, depth + 1));
        refs.push_back(ref);
      } else if (const auto* string = std::get_if<std::string_view>(&element);
                 string && field.kind == FieldKind::kStringVector) {
        refs.push_back(builder_.add_string(*string));
      } else {
        return mismatch(table, field, "has an element that is not of the kind that the schema says");
      }
    }
    return builder_.add_vector(refs);
  }

  static Error mismatch(const TableType& table, const FieldType& field, std::string_view what) {
    return make_error(ErrorCode::kInvalidArgument, table.name, ".", field.name, " ", what);
  }

  const Schema& schema_;
  ValueReader& reader_;
  BackwardBuilder builder_;
  std::vector<Slot> slots_;  // of all tables that are open
};

}  // namespace

Result<Layout> pack(const Schema& schema, ValueReader& reader, std::uint64_t limit) {
  return without_exceptions([&] { return Packer(schema, reader).run(limit); });
}

}  // namespace etstream
