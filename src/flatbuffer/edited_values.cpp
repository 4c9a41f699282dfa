// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/edited_values.h"

#include <functional>

#include "base/try.h"

namespace etstream {

std::size_t EditedValues::EditedFieldHash::operator()(const EditedField& edited) const noexcept {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio
  return std::hash<std::uint64_t>()((edited.node * kOdd) ^ (edited.table << 16 | edited.field));
}

void EditedValues::set(ValueNode table, const BoundField& field, FieldValue value) {
  edited_[field.table] |= std::uint64_t{1} << (field.index % 64);
  edits_.insert_or_assign(EditedField{table.index, field.table, field.index}, std::move(value));
}

FieldValue EditedValues::tables(std::vector<ValueNode> elements) {
  vectors_.push_back(std::move(elements));
  return VectorValue{{&vectors_.back(), 0}, vectors_.back().size()};
}

FieldValue EditedValues::bytes(std::span<const std::byte> bytes) {
  bytes_.emplace_back(bytes.begin(), bytes.end());
  return BytesValue(bytes_.back());
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
  return read_.field(node, table, field);
}

Result<FieldValue> EditedValues::element(ValueNode vector, std::uint64_t i) {
  if (!vector.object) return read_.element(vector, i);
  return FieldValue(TableValue{(*static_cast<const std::vector<ValueNode>*>(vector.object))[i]});
}

}  // namespace etstream
