// SPDX-License-Identifier: BSD-3-Clause
#include "value_tree.h"

#include <flatbuffers/reflection.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <span>

#include "core/base/text.h"

namespace etstream::testing {
namespace {

std::string_view as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr int kDeepest = 12;
constexpr int kMostTablesInTree = 60;

class Grower {
 public:
  Grower(const reflection::Schema& schema, SeededRandom& random) : schema_(schema), random_(random) {}

  TableTree table(std::size_t type, int depth) {
    --tables_left_;
    const auto& fields = *schema_.objects()->Get(static_cast<flatbuffers::uoffset_t>(type))->fields();
    TableTree tree{type, std::vector<FieldTree>(fields.size())};
    for (const auto* field : fields) tree.fields[field->id()] = value(type, *field, depth);
    return tree;
  }

  std::size_t root() const {
    for (flatbuffers::uoffset_t i = 0;; ++i) {
      if (schema_.objects()->Get(i) == schema_.root_table()) return i;
    }
  }

 private:
  FieldTree value(std::size_t table, const reflection::Field& field, int depth) {
    const auto base = field.type()->base_type();
    const bool are_types = base == reflection::UType || field.type()->element() == reflection::UType;
    if (field.deprecated() || are_types) return UnaskedTree{};
    if (!field.required() && random_.one_in(5)) return AbsentValue{};
    if (base == reflection::Obj && declared(field).is_struct()) return structure(declared(field));
    if (base == reflection::Obj || base == reflection::Union) {
      if (!field.required() && is_large(depth)) return AbsentValue{};
      return base == reflection::Obj ? child(field, depth) : member(table, field, depth);
    }
    if (base == reflection::String) return string();
    if (base == reflection::Vector) return vector(table, field, depth);
    return scalar(field);
  }

  FieldTree child(const reflection::Field& field, int depth) {
    return std::make_unique<TableTree>(
        this->table(static_cast<std::size_t>(field.type()->index()), depth + 1));
  }

  const reflection::Object& declared(const reflection::Field& field) const {
    return *schema_.objects()->Get(static_cast<flatbuffers::uoffset_t>(field.type()->index()));
  }

  StructTree structure(const reflection::Object& type) {
    return {bytes(static_cast<std::size_t>(type.bytesize()))};
  }

  std::vector<std::byte> bytes(std::size_t count) {
    std::vector<std::byte> out(count);
    for (std::byte& byte : out) byte = static_cast<std::byte>(random_.bits());
    return out;
  }

  UnionTree member(std::size_t table, const reflection::Field& field, int depth) {
    const auto* type = schema_.enums()->Get(static_cast<flatbuffers::uoffset_t>(field.type()->index()));
    std::vector<const reflection::EnumVal*> members;
    for (const auto* candidate : *type->values()) {
      if (candidate->value() == 0) continue;
      const auto index = static_cast<std::size_t>(candidate->union_type()->index());
      const bool is_table = candidate->union_type()->base_type() == reflection::Obj &&
                            !schema_.objects()->Get(static_cast<flatbuffers::uoffset_t>(index))->is_struct();
      if (!is_large(depth) || !is_table || index > table) members.push_back(candidate);
    }
    if (members.empty()) return {};
    const auto* chosen = random_.pick(members);
    UnionTree out{static_cast<std::uint8_t>(chosen->value()), {}};
    if (chosen->union_type()->base_type() == reflection::String) {
      out.held = string();
      return out;
    }
    const auto index = static_cast<flatbuffers::uoffset_t>(chosen->union_type()->index());
    if (const auto& object = *schema_.objects()->Get(index); object.is_struct()) {
      out.held = structure(object);
    } else {
      out.held = std::make_unique<TableTree>(this->table(index, depth + 1));
    }
    return out;
  }

  FieldTree vector(std::size_t table, const reflection::Field& field, int depth) {
    const auto element = field.type()->element();
    if (element == reflection::Union) {
      UnionVectorTree unions;
      for (std::uint64_t n = random_.below(5); n > 0; --n) {
        UnionTree each = member(table, field, depth);
        if (each.type != 0) unions.push_back(std::move(each));
      }
      return unions;
    }
    if (element == reflection::Obj && declared(field).is_struct()) {
      const auto size = static_cast<std::size_t>(declared(field).bytesize());
      return ScalarVectorTree{bytes(random_.below(5) * size), random_.one_in(2)};
    }
    if (element == reflection::Obj) {
      TableVectorTree tables;
      for (std::uint64_t n = is_large(depth) ? 0 : random_.below(5); n > 0; --n) {
        tables.push_back(this->table(static_cast<std::size_t>(field.type()->index()), depth + 1));
      }
      return tables;
    }
    if (element == reflection::String) {
      StringVectorTree strings(random_.below(5));
      for (std::string& each : strings) each = string();
      return strings;
    }
    return ScalarVectorTree{bytes(length() * flatbuffers::GetTypeSize(element)), random_.one_in(2)};
  }

  std::string string() {
    std::string out(length(), '\0');
    for (char& c : out) c = static_cast<char>(random_.bits());
    return out;
  }

  /// Returns the length of a string or a vector.
  std::size_t length() {
    if (random_.one_in(4)) return 0;
    if (random_.one_in(300)) return random_.below(100000);
    return 1 + random_.below(random_.one_in(10) ? 500 : 10);
  }

  FieldTree scalar(const reflection::Field& field) {
    const auto base = field.type()->base_type();
    const std::size_t width = flatbuffers::GetTypeSize(base);
    const bool is_float = base == reflection::Float || base == reflection::Double;
    const std::uint64_t ones = std::numeric_limits<std::uint64_t>::max() >> (64 - 8 * width);
    std::uint64_t bits = random_.bits();
    switch (random_.below(6)) {
      case 0:
        bits = static_cast<std::uint64_t>(field.default_integer());
        if (base == reflection::Float) {
          bits = std::bit_cast<std::uint32_t>(static_cast<float>(field.default_real()));
        } else if (base == reflection::Double) {
          bits = std::bit_cast<std::uint64_t>(field.default_real());
        }
        break;
      case 1:
        bits = 0;
        break;
      case 2:
        bits = random_.one_in(2) ? ones : ones >> 1;  // the largest, -1, NaN
        break;
      case 3:
        bits = ones ^ ones >> 1;  // the lowest, -0.0
        break;
      case 4:
        if (is_float) bits = width == 4 ? 0x7f800000 : std::uint64_t{0x7ff} << 52;  // infinity
        break;
      default:
        break;
    }
    if (base == reflection::Bool) bits &= 1;
    return ScalarTree{random_.one_in(2) ? bits : (bits & ones) | (random_.bits() & ~ones)};
  }

  bool is_large(int depth) const { return depth >= kDeepest || tables_left_ <= 0; }

  const reflection::Schema& schema_;
  SeededRandom& random_;
  int tables_left_ = kMostTablesInTree;
};

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

TableTree random_tree(const reflection::Schema& schema, SeededRandom& random) {
  Grower grower(schema, random);
  return grower.table(grower.root(), 1);
}

}  // namespace etstream::testing
