// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/flatbuffer_value_reader.h"

#include "base/try.h"

namespace etstream {
namespace {

/// Longer vectors of scalars are payload.
constexpr std::uint64_t kMostAtHand = std::uint64_t{64} << 10;

}  // namespace

Result<TableView> FlatbufferValueReader::table(ValueNode node) {
  if (!last_ || last_->position != node.index) {
    ETSTREAM_ASSIGN(last_, view_->table(node.index));
  }
  return *last_;
}

Result<FieldValue> FlatbufferValueReader::field(ValueNode node, std::size_t table, std::size_t field) {
  const TableType& declared = view_->schema().tables()[table];
  const FieldType& type = declared.fields[field];
  ETSTREAM_ASSIGN(const TableView found, this->table(node));
  if (type.kind == FieldKind::kUnion) {
    ETSTREAM_ASSIGN(const auto member, view_->member(found, declared, type));
    if (!member) return FieldValue(AbsentValue{});
    ETSTREAM_ASSIGN(const std::uint64_t number, view_->scalar(found, declared.fields[field - 1]));
    return member_value(*member, number);
  }
  ETSTREAM_ASSIGN(const auto position, view_->find(found, type));
  if (!position) return FieldValue(AbsentValue{});
  switch (type.kind) {
    case FieldKind::kScalar: {
      ETSTREAM_ASSIGN(const std::uint64_t bits, view_->scalar(found, type));
      return FieldValue(ScalarValue{bits});
    }
    case FieldKind::kStruct:
      bytes_.resize(type.width);
      ETSTREAM_TRY(view_->read(*position, bytes_));
      return FieldValue(BytesValue(bytes_));
    case FieldKind::kTable: {
      ETSTREAM_ASSIGN(last_, view_->child(found, type));
      return FieldValue(TableValue{{nullptr, last_->position}});
    }
    case FieldKind::kString: {
      ETSTREAM_ASSIGN(auto string, view_->string(found, type));
      string_ = std::move(*string);
      return FieldValue(std::string_view(string_));
    }
    default:
      break;
  }
  ETSTREAM_ASSIGN(const auto vector, view_->vector(found, type));
  if (type.kind == FieldKind::kInlineVector) return inline_vector(*vector, type);
  Vector given{&declared, &type, *vector, {}, {}};
  if (type.kind == FieldKind::kUnionVector) {
    ETSTREAM_ASSIGN(const auto types, view_->vector(found, declared.fields[field - 1]));
    given.types = types.value_or(VectorView{vector->position, 0});
  }
  return FieldValue(VectorValue{add(given), vector->count});
}

Result<FieldValue> FlatbufferValueReader::element(ValueNode vector, std::uint64_t i) {
  const Vector& given = vectors_[vector.index];
  if (given.member.type) return held_value(given.member);
  switch (given.field->kind) {
    case FieldKind::kTableVector: {
      ETSTREAM_ASSIGN(last_, view_->table_at(given.elements, i));
      return FieldValue(TableValue{{nullptr, last_->position}});
    }
    case FieldKind::kStringVector: {
      ETSTREAM_ASSIGN(const VectorView string, view_->string_at(given.elements, i));
      ETSTREAM_ASSIGN(string_, view_->characters(string));
      return FieldValue(std::string_view(string_));
    }
    default: {
      ETSTREAM_ASSIGN(const auto member,
                      view_->member_at(*given.declared, *given.field, given.types, given.elements, i));
      if (!member) return FieldValue(UnionValue{});
      ETSTREAM_ASSIGN(const std::uint64_t number, view_->read_bits(given.types.elements() + i, 1));
      return member_value(*member, number);
    }
  }
}

Result<FieldValue> FlatbufferValueReader::inline_vector(const VectorView& vector, const FieldType& field) {
  ETSTREAM_ASSIGN(ByteSource elements, view_->bytes(vector, field));
  if (elements.size() > kMostAtHand) return FieldValue(std::move(elements));
  bytes_.resize(static_cast<std::size_t>(elements.size()));
  ETSTREAM_TRY(view_->read(vector.elements(), bytes_));
  return FieldValue(BytesValue(bytes_));
}

Result<FieldValue> FlatbufferValueReader::member_value(const MemberView& member, std::uint64_t number) {
  const auto type = static_cast<std::uint8_t>(number);
  if (member.type->kind == FieldKind::kTable) {
    return FieldValue(UnionValue{type, {nullptr, member.position}});
  }
  return FieldValue(UnionValue{type, add({nullptr, nullptr, {}, {}, member})});
}

Result<FieldValue> FlatbufferValueReader::held_value(const MemberView& member) {
  if (member.type->kind == FieldKind::kString) {
    ETSTREAM_ASSIGN(const VectorView string, view_->string_object(member.position));
    ETSTREAM_ASSIGN(string_, view_->characters(string));
    return FieldValue(std::string_view(string_));
  }
  bytes_.resize(member.type->width);
  ETSTREAM_TRY(view_->read(member.position, bytes_));
  return FieldValue(BytesValue(bytes_));
}

ValueNode FlatbufferValueReader::add(Vector vector) {
  vectors_.push_back(vector);
  return {nullptr, vectors_.size() - 1};
}

}  // namespace etstream
