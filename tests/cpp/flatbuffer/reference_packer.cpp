// SPDX-License-Identifier: BSD-3-Clause
#include "reference_packer.h"

#include <flatbuffers/reflection.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "core/layout/reference_builder.h"

namespace etstream::testing {
namespace {

using Ref = ReferenceBuilder::Ref;

class ReferencePacker {
 public:
  ReferencePacker(const reflection::Schema& schema, const Alignments& alignments)
      : schema_(schema), alignments_(alignments) {}

  std::vector<std::byte> run(const TableTree& root) {
    const Ref packed = table(root);
    return builder_.finish(packed, schema_.file_ident() ? schema_.file_ident()->string_view() : "");
  }

 private:
  Ref table(const TableTree& tree) {
    const auto* object = schema_.objects()->Get(static_cast<flatbuffers::uoffset_t>(tree.type));
    std::vector<const reflection::Field*> fields(object->fields()->size());
    for (const auto* field : *object->fields()) fields[field->id()] = field;
    std::vector<Ref> children;
    for (const auto* field : fields) {
      const bool are_types = field->type()->element() == reflection::UType;
      children.push_back(are_types ? types(tree.fields[std::size_t{field->id()} + 1]) : child(tree, *field));
    }
    builder_.begin_table();
    for (const auto* field : fields) {
      const FieldTree& value = tree.fields[field->id()];
      if (const auto* held = std::get_if<ScalarTree>(&value)) {
        scalar(*field, held->bits);
      } else if (const auto* member = std::get_if<UnionTree>(&value)) {
        const auto type_id = static_cast<std::uint16_t>(field->id() - 1);
        builder_.add_scalar_unless_default<std::uint8_t>(type_id, member->type, 0);
      } else if (const auto* held_struct = std::get_if<StructTree>(&value)) {
        builder_.add_struct(field->id(), held_struct->bytes, alignment_of(*object_of(*field->type())));
      }
      builder_.add_ref(field->id(), children[field->id()]);
    }
    return builder_.end_table();
  }

  /// Places the object that a field refers to; returns nothing for a scalar or an absent field.
  Ref child(const TableTree& tree, const reflection::Field& field) {
    const FieldTree& value = tree.fields[field.id()];
    if (const auto* string = std::get_if<std::string>(&value)) return builder_.add_string(*string);
    if (const auto* held = std::get_if<std::unique_ptr<TableTree>>(&value)) return table(**held);
    if (const auto* held = std::get_if<UnionTree>(&value)) return member(*held, field);
    if (const auto* vector = std::get_if<ScalarVectorTree>(&value)) {
      return builder_.add_vector(vector->bytes, element_size(field), alignment(tree.type, field));
    }
    std::vector<Ref> elements;
    if (const auto* tables = std::get_if<TableVectorTree>(&value)) {
      for (const TableTree& each : *tables) elements.push_back(table(each));
      return builder_.add_vector(elements);
    }
    if (const auto* strings = std::get_if<StringVectorTree>(&value)) {
      for (const std::string& each : *strings) elements.push_back(builder_.add_string(each));
      return builder_.add_vector(elements);
    }
    if (const auto* unions = std::get_if<UnionVectorTree>(&value)) {
      for (const UnionTree& each : *unions) elements.push_back(member(each, field));
      return builder_.add_vector(elements);
    }
    return {};
  }

  /// Places the types of the unions in a vector.
  Ref types(const FieldTree& value) {
    const auto* unions = std::get_if<UnionVectorTree>(&value);
    if (!unions) return {};
    std::vector<std::byte> out;
    for (const UnionTree& each : *unions) out.push_back(static_cast<std::byte>(each.type));
    return builder_.add_vector(out, 1, 1);
  }

  Ref member(const UnionTree& value, const reflection::Field& field) {
    if (const auto* string = std::get_if<std::string>(&value.held)) return builder_.add_string(*string);
    if (const auto* held = std::get_if<std::unique_ptr<TableTree>>(&value.held)) return table(**held);
    const auto* type = schema_.enums()->Get(static_cast<flatbuffers::uoffset_t>(field.type()->index()));
    const auto* declared = type->values()->LookupByKey(value.type)->union_type();
    return builder_.add_struct(std::get<StructTree>(value.held).bytes, alignment_of(*object_of(*declared)));
  }

  /// Returns the object that a type names; null for an element that is no object.
  const reflection::Object* object_of(const reflection::Type& type) const {
    if (type.base_type() != reflection::Obj && type.element() != reflection::Obj) return nullptr;
    return schema_.objects()->Get(static_cast<flatbuffers::uoffset_t>(type.index()));
  }

  static std::uint32_t alignment_of(const reflection::Object& type) {
    return static_cast<std::uint32_t>(type.minalign());
  }

  std::uint32_t element_size(const reflection::Field& field) const {
    if (const auto* type = object_of(*field.type())) return static_cast<std::uint32_t>(type->bytesize());
    return static_cast<std::uint32_t>(flatbuffers::GetTypeSize(field.type()->element()));
  }

  std::uint32_t alignment(std::size_t object, const reflection::Field& field) const {
    if (const auto found = alignments_.find({object, field.id()}); found != alignments_.end()) {
      return found->second;
    }
    std::uint32_t asked = 1;
    if (field.attributes()) {
      for (const auto* attribute : *field.attributes()) {
        if (attribute->key()->string_view() != "force_align") continue;
        asked = static_cast<std::uint32_t>(std::stoul(attribute->value()->str()));
      }
    }
    if (const auto* type = object_of(*field.type())) return alignment_of(*type);
    return std::max(asked, element_size(field));
  }

  void scalar(const reflection::Field& field, std::uint64_t bits) {
    switch (field.type()->base_type()) {
      case reflection::Short:
        return scalar_of<std::int16_t>(field, bits);
      case reflection::UShort:
        return scalar_of<std::uint16_t>(field, bits);
      case reflection::Int:
        return scalar_of<std::int32_t>(field, bits);
      case reflection::UInt:
        return scalar_of<std::uint32_t>(field, bits);
      case reflection::Long:
        return scalar_of<std::int64_t>(field, bits);
      case reflection::ULong:
        return scalar_of<std::uint64_t>(field, bits);
      case reflection::Float:
        return scalar_of<float>(field, bits);
      case reflection::Double:
        return scalar_of<double>(field, bits);
      default:
        return scalar_of<std::uint8_t>(field, bits);
    }
  }

  template <class T>
  void scalar_of(const reflection::Field& field, std::uint64_t bits) {
    T value{};
    std::memcpy(&value, &bits, sizeof(value));
    if (field.optional()) return builder_.add_scalar(field.id(), bits, sizeof(T));
    if constexpr (std::is_floating_point_v<T>) {
      builder_.add_scalar_unless_default(field.id(), value, static_cast<T>(field.default_real()));
    } else {
      builder_.add_scalar_unless_default(field.id(), value, static_cast<T>(field.default_integer()));
    }
  }

  const reflection::Schema& schema_;
  const Alignments& alignments_;
  ReferenceBuilder builder_;
};

}  // namespace

std::vector<std::byte> pack_by_reference(const reflection::Schema& schema, const TableTree& root,
                                         const Alignments& alignments) {
  return ReferencePacker(schema, alignments).run(root);
}

}  // namespace etstream::testing
