// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/edited_values.h"

#include "core/base/try.h"

namespace etstream {
namespace {

/// The largest vector of scalars, in bytes, that is held in memory. Longer ones are payload.
constexpr std::uint64_t kMostAtHand = std::uint64_t{64} << 10;

}  // namespace

void EditedValues::set(ValueNode table, const BoundField& field, FieldValue value) {
  edited_[field.table] |= std::uint64_t{1} << (field.index % 64);
  edits_.insert_or_assign(EditedField{table.index, field.table, field.index}, std::move(value));
}

FieldValue EditedValues::tables(std::vector<ValueNode> elements) {
  const auto& kept = table_vectors_.emplace_back(std::move(elements));
  return VectorValue{{&kept, 0}, kept.size()};
}

FieldValue EditedValues::bytes(std::span<const std::byte> bytes) {
  return BytesValue(byte_vectors_.emplace_back(bytes.begin(), bytes.end()));
}

FieldValue EditedValues::string(std::string_view characters) {
  return std::string_view(strings_.emplace_back(characters));
}

Result<FieldValue> EditedValues::field(ValueNode node, std::size_t table, std::size_t field) {
  if ((edited_[table] >> (field % 64) & 1) != 0) {
    const auto edit = edits_.find(EditedField{node.index, table, field});
    if (edit != edits_.end()) return edit->second;
  }
  if (node.index >= kFirstAdded) return FieldValue(AbsentValue{});
  const TableType& declared = view_.schema().tables()[table];
  return value(node, declared, declared.fields[field]);
}

Result<FieldValue> EditedValues::value(ValueNode node, const TableType& declared, const FieldType& field) {
  if (!last_ || last_->position != node.index) {
    ETSTREAM_ASSIGN(last_, view_.table(node.index));
  }
  const TableView table = *last_;
  if (field.kind == FieldKind::kUnion) {
    ETSTREAM_ASSIGN(const auto member, view_.member(table, declared, field));
    if (!member) return FieldValue(AbsentValue{});
    ETSTREAM_ASSIGN(const std::uint64_t number, view_.scalar(table, declared.types_of(field)));
    return member_value(*member, number);
  }
  ETSTREAM_ASSIGN(const auto position, view_.find(table, field));
  if (!position) return FieldValue(AbsentValue{});
  if (field.kind == FieldKind::kScalar) {
    ETSTREAM_ASSIGN(const std::uint64_t bits, view_.scalar(table, field));
    return FieldValue(ScalarValue{bits});
  }
  if (field.kind == FieldKind::kStruct) return struct_value(*position, field);
  if (field.kind == FieldKind::kTable) {
    ETSTREAM_ASSIGN(last_, view_.child(table, field));
    return FieldValue(TableValue{node_at(last_->position)});
  }
  ETSTREAM_ASSIGN(const auto vector, view_.vector(table, field));
  if (field.kind == FieldKind::kString) return string_value(*vector);
  if (field.kind == FieldKind::kInlineVector) return inline_vector(*vector, field);
  Vector given{&declared, &field, *vector, {}, {}};
  if (field.kind == FieldKind::kUnionVector) {
    ETSTREAM_ASSIGN(const auto types, view_.vector(table, declared.types_of(field)));
    given.types = types.value_or(VectorView{vector->position, 0});
  }
  return FieldValue(VectorValue{add(given), vector->count});
}

Result<FieldValue> EditedValues::element(ValueNode vector, std::uint64_t i) {
  if (vector.object) {
    return FieldValue(TableValue{(*static_cast<const std::vector<ValueNode>*>(vector.object))[i]});
  }
  const Vector& given = vectors_[vector.index];
  if (const UnionMember* held = given.member.type) {
    if (held->kind == FieldKind::kStruct) return struct_value(given.member.position, *held);
    ETSTREAM_ASSIGN(const VectorView string, view_.string_object(given.member.position));
    return string_value(string);
  }
  if (given.field->kind == FieldKind::kTableVector) {
    ETSTREAM_ASSIGN(last_, view_.table_at(given.elements, i));
    return FieldValue(TableValue{node_at(last_->position)});
  }
  if (given.field->kind == FieldKind::kStringVector) {
    ETSTREAM_ASSIGN(const VectorView string, view_.string_at(given.elements, i));
    return string_value(string);
  }
  ETSTREAM_ASSIGN(const auto member,
                  view_.member_at(*given.declared, *given.field, given.types, given.elements, i));
  if (!member) return FieldValue(UnionValue{});
  ETSTREAM_ASSIGN(const std::uint64_t number, view_.read_bits(given.types.elements() + i, 1));
  return member_value(*member, number);
}

Result<FieldValue> EditedValues::inline_vector(const VectorView& vector, const FieldType& field) {
  ETSTREAM_ASSIGN(ByteSource elements, view_.bytes(vector, field));
  if (elements.size() > kMostAtHand) return FieldValue(std::move(elements));
  bytes_.resize(static_cast<std::size_t>(elements.size()));
  ETSTREAM_TRY(view_.read(vector.elements(), bytes_));
  return FieldValue(BytesValue(bytes_));
}

Result<FieldValue> EditedValues::string_value(const VectorView& string) {
  ETSTREAM_ASSIGN(string_, view_.characters(string));
  return FieldValue(std::string_view(string_));
}

Result<FieldValue> EditedValues::struct_value(std::uint64_t position, const InlineType& type) {
  bytes_.resize(type.width);
  ETSTREAM_TRY(view_.read(position, bytes_));
  return FieldValue(BytesValue(bytes_));
}

FieldValue EditedValues::member_value(const MemberView& member, std::uint64_t number) {
  const bool is_table = member.type->kind == FieldKind::kTable;
  return UnionValue{static_cast<std::uint8_t>(number),
                    is_table ? node_at(member.position) : add({nullptr, nullptr, {}, {}, member})};
}

ValueNode EditedValues::add(Vector vector) {
  vectors_.push_back(vector);
  return {nullptr, vectors_.size() - 1};
}

}  // namespace etstream
