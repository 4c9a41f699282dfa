// SPDX-License-Identifier: BSD-3-Clause
//
// BoundTable: the fields of a schema's table that code knows, found by their names once.
//
//   struct NamedDataFields : FieldsOf<"NamedData"> {
//     BoundField key = field("key");
//   };
//   const NamedDataFields fields{schema};
//   ETSTREAM_ASSIGN(const auto key, table.string(fields.key));
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

#include "flatbuffer/schema.h"

namespace etstream {

/// A field of a schema, which outlives it.
struct BoundField {
  const Schema* schema = nullptr;
  std::size_t table = 0;  // an index in Schema::tables()
  std::size_t index = 0;  // in its fields

  [[nodiscard]] const FieldType& type() const { return schema->tables()[table].fields[index]; }
  [[nodiscard]] const std::string& table_name() const { return schema->tables()[table].name; }
  [[nodiscard]] const std::string& name() const { return type().name; }
  /// "NamedData.key".
  [[nodiscard]] std::string full_name() const { return table_name() + "." + name(); }
};

/// A base of structs whose members are the fields. A name that the schema lacks ends the program: names are
/// constants.
class BoundTable {
 public:
  BoundTable(const Schema& schema, std::string_view name) : schema_(&schema) {
    const auto found = schema.find_table(name);
    if (!found) std::abort();
    index_ = *found;
  }

  /// An index in Schema::tables().
  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  [[nodiscard]] const std::string& name() const { return schema_->tables()[index_].name; }

 protected:
  [[nodiscard]] BoundField field(std::string_view name) const {
    const auto found = schema_->find_field(index_, name);
    if (!found) std::abort();
    return {schema_, index_, *found};
  }

 private:
  const Schema* schema_;
  std::size_t index_ = 0;
};

/// A string literal as the argument of a template.
template <std::size_t kSize>
struct Literal {
  constexpr Literal(const char (&words)[kSize]) { std::copy_n(words, kSize, text); }  // NOLINT: converts
  char text[kSize]{};
};

/// A BoundTable of this name.
template <Literal kName>
struct FieldsOf : BoundTable {
  FieldsOf(const Schema& schema) : BoundTable(schema, kName.text) {}  // NOLINT: as the base of an aggregate
};

}  // namespace etstream
