// SPDX-License-Identifier: BSD-3-Clause
#include "used_bytes.h"
#include "test_paths.h"

#include <doctest/doctest.h>
#include <flatbuffers/idl.h>
#include <flatbuffers/reflection.h>

#include "file_bytes.h"

namespace etstream {
namespace {

class Walk {
 public:
  Walk(const std::string& file, const reflection::Schema& schema)
      : file_(file), schema_(schema), used_(file.size(), false) {
    mark(file.data(), 8);
    table(*flatbuffers::GetAnyRoot(reinterpret_cast<const std::uint8_t*>(file.data())), *schema.root_table());
  }

  [[nodiscard]] std::vector<bool> used() && { return std::move(used_); }

 private:
  void mark(const void* begin, std::size_t size) {
    const auto from = static_cast<std::size_t>(static_cast<const char*>(begin) - file_.data());
    REQUIRE(from + size <= file_.size());
    for (std::size_t i = from; i < from + size; ++i) used_[i] = true;
  }

  [[nodiscard]] const reflection::Object& declared(const reflection::Type& type) const {
    return *schema_.objects()->Get(static_cast<flatbuffers::uoffset_t>(type.index()));
  }

  void table(const flatbuffers::Table& table, const reflection::Object& object) {
    const std::uint8_t* vtable = table.GetVTable();
    mark(vtable, flatbuffers::ReadScalar<std::uint16_t>(vtable));
    mark(&table, flatbuffers::ReadScalar<std::uint16_t>(vtable + 2));
    for (const reflection::Field* field : *object.fields()) {
      if (table.CheckField(field->offset())) this->field(table, object, *field);
    }
  }

  void field(const flatbuffers::Table& table, const reflection::Object& object,
             const reflection::Field& field) {
    switch (field.type()->base_type()) {
      case reflection::Obj:
        return this->table(*flatbuffers::GetFieldT(table, field), declared(*field.type()));
      case reflection::Union:
        return this->table(*flatbuffers::GetFieldT(table, field),
                           flatbuffers::GetUnionType(schema_, object, field, table));
      case reflection::String:
        return mark(flatbuffers::GetFieldS(table, field),
                    4 + flatbuffers::GetFieldS(table, field)->size() + 1);
      case reflection::Vector:
        return vector(*table.GetPointer<const flatbuffers::VectorOfAny*>(field.offset()), *field.type());
      default:
        return;
    }
  }

  void vector(const flatbuffers::VectorOfAny& vector, const reflection::Type& type) {
    mark(&vector, 4 + vector.size() * flatbuffers::GetTypeSize(type.element()));
    REQUIRE(type.element() != reflection::String);  // which no schema here has
    if (type.element() != reflection::Obj) return;
    for (std::size_t i = 0; i < vector.size(); ++i) {
      table(*flatbuffers::GetAnyVectorElemPointer<const flatbuffers::Table>(&vector, i), declared(type));
    }
  }

  const std::string& file_;
  const reflection::Schema& schema_;
  std::vector<bool> used_;
};

}  // namespace

std::vector<bool> used_bytes(const std::string& flatbuffer, const std::string& schema) {
  flatbuffers::IDLOptions options;
  options.binary_schema_builtins = true;
  flatbuffers::Parser parser(options);
  const char* folders[] = {kSchemaDir.c_str(), nullptr};
  const std::string text = content_of(kSchemaDir + "/" + schema);
  REQUIRE_MESSAGE(parser.Parse(text.c_str(), folders), parser.error_);
  parser.Serialize();
  return Walk(flatbuffer, *reflection::GetSchema(parser.builder_.GetBufferPointer())).used();
}

}  // namespace etstream
