// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/schema_packer.h"

#include <bit>
#include <variant>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"

namespace etstream {
namespace {

using Ref = BackwardBuilder::Ref;

constexpr std::string_view kWrongKind = "is not of the kind that the schema says";
constexpr std::string_view kWrongElement = "has an element that is not of the kind that the schema says";

/// Floats are compared as numbers: a zero default also stands for -0.0, and a NaN is never the default.
bool equals_default(const FieldType& field, std::uint64_t bits) {
  if (!field.default_bits) return false;
  if (!field.is_float) return ((bits ^ *field.default_bits) & field.mask()) == 0;
  if (field.width == 8) return std::bit_cast<double>(bits) == std::bit_cast<double>(*field.default_bits);
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits)) ==
         std::bit_cast<float>(static_cast<std::uint32_t>(*field.default_bits));
}

class Packer {
 public:
  Packer(const Schema& schema, ValueReader& reader, const PackerOptions& options)
      : schema_(schema), reader_(reader), order_(options.order), builder_(builder_for(options)) {}

  Result<FilePlan> run(const PackerOptions& options) {
    ETSTREAM_ASSIGN(const Ref root, pack_table(reader_.root(), schema_.root_index(), 1));
    return builder_.finish(root, schema_.identifier(), options.limit, options.header_size);
  }

 private:
  static BackwardBuilder builder_for(const PackerOptions& options) {
    using EmptyVectors = BackwardBuilder::EmptyVectors;
    if (options.order == ObjectOrder::kFlatc) return BackwardBuilder(EmptyVectors::kAsTheyCome);
    return BackwardBuilder(EmptyVectors::kAligned, options.vtables);
  }

  /// The place of a struct's bytes in structs_.
  struct StructPlace {
    std::size_t begin = 0;
  };
  /// The content of a field's slot in its table, known once the field's children are placed.
  using Slot = std::variant<AbsentValue, ScalarValue, StructPlace, Ref>;

  Result<Ref> pack_table(ValueNode node, std::size_t type, int depth) {
    const TableType& table = schema_.tables()[type];
    if (depth > kDeepestTable) {
      return make_error(ErrorCode::kInvalidArgument, "tables are nested deeper than {}, at {}", kDeepestTable,
                        table.name);
    }
    const std::size_t first_slot = slots_.size();
    const std::size_t first_struct = structs_.size();
    slots_.resize(first_slot + table.fields.size());
    for (const FieldType& field : table.fields) {
      if (is_type_of_unions(field) || (field.deprecated && !reader_.has_deprecated())) continue;
      ETSTREAM_ASSIGN(const FieldValue value, reader_.field(node, type, field.id));
      if (std::holds_alternative<AbsentValue>(value)) {
        if (field.required) return mismatch(table, field, "is required, but absent");
        continue;
      }
      const std::size_t slot = first_slot + field.id;
      if (field.kind == FieldKind::kUnionVector) {
        ETSTREAM_ASSIGN(slots_[slot - 1], pack_union_types(table, field, value));
      }
      ETSTREAM_ASSIGN(slots_[slot], pack_field(table, field, value, depth));
      if (const auto* member = std::get_if<UnionValue>(&value))
        slots_[slot - 1] = Slot(ScalarValue{member->type});
    }
    builder_.begin_table();
    if (order_ == ObjectOrder::kObjectApi) {
      for (const FieldType& field : table.fields) add_field(field, slots_[first_slot + field.id]);
    } else {
      for (std::uint32_t width = 8; width > 0; width /= 2) {
        for (auto field = table.fields.rbegin(); field != table.fields.rend(); ++field) {
          if (inline_width(*field) == width) add_field(*field, slots_[first_slot + field->id]);
        }
      }
    }
    slots_.resize(first_slot);
    structs_.resize(first_struct);
    return builder_.end_table();
  }

  void add_field(const FieldType& field, const Slot& slot) {
    if (const auto* ref = std::get_if<Ref>(&slot)) {
      builder_.add_ref(field.id, *ref);
    } else if (const auto* place = std::get_if<StructPlace>(&slot)) {
      builder_.add_struct(field.id, std::span(structs_).subspan(place->begin, field.width),
                          field.natural_alignment);
    } else if (const auto* scalar = std::get_if<ScalarValue>(&slot);
               scalar && !equals_default(field, scalar->bits)) {
      builder_.add_scalar(field.id, scalar->bits, field.width);
    }
  }

  /// Pads as flatc does: it makes a struct when it reads it, and then removes it for later, but leaves the
  /// padding.
  void pad_for_struct(const InlineType& type) {
    if (order_ == ObjectOrder::kFlatc && type.structure) builder_.pad(type.natural_alignment);
  }

  /// Returns the width by which flatc sorts fields: a struct counts as an offset.
  static std::uint32_t inline_width(const FieldType& field) {
    const bool is_scalar = field.kind == FieldKind::kScalar || field.kind == FieldKind::kUnionType;
    return is_scalar ? field.width : 4;
  }

  /// Places the children of a field that is there.
  Result<Slot> pack_field(const TableType& table, const FieldType& field, const FieldValue& value,
                          int depth) {
    if (field.kind == FieldKind::kScalar) {
      const auto* scalar = std::get_if<ScalarValue>(&value);
      return scalar ? Result<Slot>(*scalar) : mismatch(table, field, "is not a scalar");
    }
    if (field.kind == FieldKind::kStruct) {
      const auto* bytes = std::get_if<BytesValue>(&value);
      if (!bytes || bytes->size() != field.width)
        return mismatch(table, field, "is not a struct of its size");
      pad_for_struct(field);
      structs_.insert(structs_.end(), bytes->begin(), bytes->end());
      return Slot(StructPlace{structs_.size() - bytes->size()});
    }
    ETSTREAM_ASSIGN(const Ref ref, pack_child(table, field, value, depth));
    return Slot(ref);
  }

  Result<Ref> pack_child(const TableType& table, const FieldType& field, const FieldValue& value, int depth) {
    switch (field.kind) {
      case FieldKind::kInlineVector:
        return pack_inline_vector(table, field, value);
      case FieldKind::kTableVector:
        return pack_ref_vector(table, field, FieldKind::kTable, value, depth);
      case FieldKind::kStringVector:
        return pack_ref_vector(table, field, FieldKind::kString, value, depth);
      case FieldKind::kUnionVector:
        return pack_ref_vector(table, field, FieldKind::kUnion, value, depth);
      default:
        return pack_object(table, field, field.kind, value, depth, kWrongKind);
    }
  }

  /// Packs a table, a string or a union: a field, or an element of one. `wrong` is what another value is.
  Result<Ref> pack_object(const TableType& table, const FieldType& field, FieldKind kind,
                          const FieldValue& value, int depth, std::string_view wrong) {
    if (const auto* child = std::get_if<TableValue>(&value); child && kind == FieldKind::kTable) {
      return pack_table(child->node, field.type, depth + 1);
    }
    if (const auto* string = std::get_if<std::string_view>(&value); string && kind == FieldKind::kString) {
      if (const std::string_view unmet = unmet_rule(field, *string); !unmet.empty()) {
        return make_error(ErrorCode::kInvalidArgument, "{}.{}: expected {}, found {}", table.name, field.name,
                          unmet,
                          string->size() > kLongestString ? readable_size(string->size()) : quote(*string));
      }
      return builder_.add_string(*string);
    }
    if (const auto* member = std::get_if<UnionValue>(&value); member && kind == FieldKind::kUnion) {
      return pack_member(table, field, *member, depth);
    }
    return mismatch(table, field, wrong);
  }

  Result<Ref> pack_member(const TableType& table, const FieldType& field, const UnionValue& value,
                          int depth) {
    const UnionMember* member = schema_.unions()[field.type].member(value.type);
    if (!member) return mismatch(table, field, kWrongKind);
    if (member->kind == FieldKind::kTable) return pack_table(value.node, member->type, depth + 1);
    ETSTREAM_ASSIGN(const FieldValue held, reader_.element(value.node, 0));
    if (const auto* string = std::get_if<std::string_view>(&held);
        string && member->kind == FieldKind::kString) {
      return builder_.add_string(*string);
    }
    if (const auto* bytes = std::get_if<BytesValue>(&held);
        bytes && member->kind == FieldKind::kStruct && bytes->size() == member->width) {
      pad_for_struct(*member);
      return builder_.add_struct(*bytes, member->natural_alignment);
    }
    return mismatch(table, field, kWrongKind);
  }

  Result<Slot> pack_union_types(const TableType& table, const FieldType& field, const FieldValue& value) {
    const auto* vector = std::get_if<VectorValue>(&value);
    if (!vector || vector->count > kLargestFlatbuffer) return mismatch(table, field, kWrongKind);
    std::vector<std::byte> types;
    for (std::uint64_t i = 0; i < vector->count; ++i) {
      ETSTREAM_ASSIGN(const FieldValue element, reader_.element(vector->node, i));
      const auto* member = std::get_if<UnionValue>(&element);
      if (!member) return mismatch(table, field, kWrongKind);
      types.push_back(static_cast<std::byte>(member->type));
    }
    return Slot(builder_.add_vector(types, 1, 1));
  }

  Result<Ref> pack_inline_vector(const TableType& table, const FieldType& field, const FieldValue& value) {
    const auto* small = std::get_if<BytesValue>(&value);
    const auto* large = std::get_if<ByteSource>(&value);
    if (small && small->size() % field.width == 0) {
      return builder_.add_vector(*small, field.width, field.alignment);
    }
    if (large && large->size() % field.width == 0) {
      return builder_.add_vector(*large, field.width, field.alignment, text("{}.{}", table.name, field.name));
    }
    return mismatch(table, field, "is not a whole number of elements");
  }

  Result<Ref> pack_ref_vector(const TableType& table, const FieldType& field, FieldKind element_kind,
                              const FieldValue& value, int depth) {
    const auto* vector = std::get_if<VectorValue>(&value);
    if (!vector) return mismatch(table, field, kWrongKind);
    if (vector->count > kLargestFlatbuffer) return mismatch(table, field, "has too many elements");
    std::vector<Ref> refs;
    for (std::uint64_t i = 0; i < vector->count; ++i) {
      ETSTREAM_ASSIGN(const FieldValue element, reader_.element(vector->node, i));
      ETSTREAM_ASSIGN(const Ref ref, pack_object(table, field, element_kind, element, depth, kWrongElement));
      refs.push_back(ref);
    }
    return builder_.add_vector(refs);
  }

  static Error mismatch(const TableType& table, const FieldType& field, std::string_view what) {
    return make_error(ErrorCode::kInvalidArgument, "{}.{} {}", table.name, field.name, what);
  }

  const Schema& schema_;
  ValueReader& reader_;
  const ObjectOrder order_;
  BackwardBuilder builder_;
  std::vector<Slot> slots_;         // of all tables that are open
  std::vector<std::byte> structs_;  // of the slots
};

}  // namespace

Result<FilePlan> pack(const Schema& schema, ValueReader& reader, const PackerOptions& options) {
  return without_exceptions([&] { return Packer(schema, reader, options).run(options); });
}

}  // namespace etstream
