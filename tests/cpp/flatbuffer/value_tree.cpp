// SPDX-License-Identifier: BSD-3-Clause
#include "value_tree.h"

#include <algorithm>
#include <span>

#include "core/base/text.h"

namespace etstream::testing {
namespace {

std::string_view as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

/// Returns a copy that is overwritten when the next one is lent.
std::string_view TreeReader::lend(std::string_view bytes) {
  if (lent_) std::fill(lent_->begin(), lent_->end(), '\xdd');
  lent_ = std::make_unique<std::string>(bytes);
  return *lent_;
}

std::span<const std::byte> TreeReader::lend(const std::vector<std::byte>& bytes) {
  return std::as_bytes(std::span(lend(as_text(bytes))));
}

/// Returns a union's value. The node of a member that is no table has the index 1, and leads to its union.
UnionValue TreeReader::value_of(const UnionTree& member) {
  const auto* table = std::get_if<std::unique_ptr<TableTree>>(&member.held);
  return {member.type, table ? ValueNode{table->get(), 0} : ValueNode{&member, 1}};
}

Result<FieldValue> TreeReader::field(ValueNode node, std::size_t table, std::size_t field) {
  struct Visitor {
    TreeReader& reader;
    const FieldTree& tree;

    Result<FieldValue> operator()(const AbsentValue& absent) const { return FieldValue(absent); }
    Result<FieldValue> operator()(const UnaskedTree& /*value*/) const {
      return Error{ErrorCode::kInvalidArgument, "asked for a deprecated field, or a union's type"};
    }
    Result<FieldValue> operator()(const ScalarTree& scalar) const {
      return FieldValue(ScalarValue{scalar.bits});
    }
    Result<FieldValue> operator()(const std::string& string) const { return FieldValue(reader.lend(string)); }
    Result<FieldValue> operator()(const ScalarVectorTree& vector) const {
      if (vector.as_source) return FieldValue(ByteSource::memory(vector.bytes));
      return FieldValue(reader.lend(vector.bytes));
    }
    Result<FieldValue> operator()(const StructTree& value) const {
      return FieldValue(reader.lend(value.bytes));
    }
    Result<FieldValue> operator()(const std::unique_ptr<TableTree>& child) const {
      return FieldValue(TableValue{{child.get(), 0}});
    }
    Result<FieldValue> operator()(const UnionTree& member) const { return FieldValue(value_of(member)); }
    Result<FieldValue> operator()(const UnionVectorTree& vector) const {
      return FieldValue(VectorValue{{&tree, 0}, vector.size()});
    }
    Result<FieldValue> operator()(const TableVectorTree& vector) const {
      return FieldValue(VectorValue{{&tree, 0}, vector.size()});
    }
    Result<FieldValue> operator()(const StringVectorTree& vector) const {
      return FieldValue(VectorValue{{&tree, 0}, vector.size()});
    }
  };
  lend("");
  const auto& tree = *static_cast<const TableTree*>(node.object);
  if (tree.type != table || field >= tree.fields.size()) {
    return make_error(ErrorCode::kInvalidArgument, "asked for field {} of table {} where table {} is", field,
                      table, tree.type);
  }
  return std::visit(Visitor{*this, tree.fields[field]}, tree.fields[field]);
}

Result<FieldValue> TreeReader::element(ValueNode vector, std::uint64_t i) {
  if (vector.index == 1) {
    const auto& member = *static_cast<const UnionTree*>(vector.object);
    if (const auto* string = std::get_if<std::string>(&member.held)) return FieldValue(lend(*string));
    return FieldValue(lend(std::get<StructTree>(member.held).bytes));
  }
  const auto& tree = *static_cast<const FieldTree*>(vector.object);
  if (const auto* tables = std::get_if<TableVectorTree>(&tree)) {
    lend("");
    return FieldValue(TableValue{{&tables->at(i), 0}});
  }
  if (const auto* unions = std::get_if<UnionVectorTree>(&tree)) {
    lend("");
    return FieldValue(value_of(unions->at(i)));
  }
  return FieldValue(lend(std::get<StringVectorTree>(tree).at(i)));
}

}  // namespace etstream::testing
