// SPDX-License-Identifier: BSD-3-Clause
//
// TableReader: a table in a FlatbufferView, read by the fields that code knows. schema/compile_schema.cpp
// makes a struct of those for each schema of the library, bound to the places that the fields have in a
// schema.
//
//   const program::Fields fields(schema);
//   ETSTREAM_ASSIGN(const TableReader root, TableReader::root(view));
//   ETSTREAM_ASSIGN(const auto version, root.scalar<std::uint32_t>(fields.program.version));
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/try.h"
#include "flatbuffer/flatbuffer_view.h"

namespace etstream {

/// A field of a schema, which outlives it.
struct BoundField {
  const Schema* schema = nullptr;
  std::size_t table = 0;  // an index in Schema::tables()
  std::size_t index = 0;  // in its fields

  [[nodiscard]] const FieldType& type() const { return schema->tables()[table].fields[index]; }
  [[nodiscard]] const std::string& table_name() const { return schema->tables()[table].name; }
  [[nodiscard]] const std::string& name() const { return type().name; }
  /// Returns "NamedData.key".
  [[nodiscard]] std::string full_name() const { return table_name() + "." + name(); }
};

/// A base of structs whose members are the fields. A name that the schema lacks ends the program: the schema
/// is the one that the struct was made of, or has all that it has.
class BoundTable {
 public:
  BoundTable(const Schema& schema, std::string_view name) : schema_(&schema) {
    const auto found = schema.find_table(name);
    if (!found) std::abort();
    index_ = *found;
  }

  /// Returns its index in Schema::tables().
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

class TableList;

/// A vector of scalars, which are read when they are asked for.
template <class T>
class NumberList {
 public:
  NumberList() = default;
  NumberList(const FlatbufferView& view, const VectorView& vector) : view_(&view), vector_(vector) {}

  [[nodiscard]] std::uint32_t size() const noexcept { return vector_.count; }
  /// Returns the number at `i`, which is below size().
  [[nodiscard]] Result<T> at(std::uint64_t i) const {
    ETSTREAM_ASSIGN(const std::uint64_t bits,
                    view_->read_bits(vector_.elements() + sizeof(T) * i, sizeof(T)));
    T out{};
    std::memcpy(&out, &bits, sizeof(T));
    return out;
  }
  /// Reads all numbers. Error also: kTooLarge over 1 MiB.
  [[nodiscard]] Result<std::vector<T>> all() const {
    return view_ ? view_->values<T>(vector_) : std::vector<T>();
  }

 private:
  const FlatbufferView* view_ = nullptr;
  VectorView vector_;
};

/// A value; the view outlives it. A field of another table ends the program: fields are constants.
/// Errors: those of FlatbufferView.
class TableReader {
 public:
  [[nodiscard]] static Result<TableReader> root(const FlatbufferView& view) {
    ETSTREAM_ASSIGN(const TableView table, view.root());
    return TableReader(view, table, view.schema().root_index());
  }
  TableReader(const FlatbufferView& view, const TableView& table, std::size_t type)
      : view_(&view), table_(table), type_(type) {}

  /// Returns the table's position in the file.
  [[nodiscard]] std::uint64_t position() const noexcept { return table_.position; }

  [[nodiscard]] Result<bool> has(const BoundField& bound) const {
    ETSTREAM_ASSIGN(const auto found, position_of(bound));
    return found.has_value();
  }
  /// Returns where the field's inline part is in the file; nothing if the field is absent.
  [[nodiscard]] Result<std::optional<std::uint64_t>> position_of(const BoundField& bound) const {
    return view_->find(table_, field(bound));
  }
  /// Returns the scalar, or its default. Any byte but 0 is true.
  template <class T>
  [[nodiscard]] Result<T> scalar(const BoundField& bound) const {
    ETSTREAM_ASSIGN(const std::uint64_t bits, view_->scalar(table_, field(bound)));
    if constexpr (std::is_same_v<T, bool>) return bits != 0;
    T out{};
    std::memcpy(&out, &bits, sizeof(T));
    return out;
  }
  [[nodiscard]] Result<std::optional<std::string>> string(const BoundField& bound) const {
    return view_->string(table_, field(bound));
  }
  /// Returns a scalar vector's bytes, which stay in the file.
  [[nodiscard]] Result<std::optional<ByteSource>> bytes(const BoundField& bound) const {
    ETSTREAM_ASSIGN(const auto vector, view_->vector(table_, field(bound)));
    if (!vector) return std::optional<ByteSource>();
    ETSTREAM_ASSIGN(ByteSource bytes, view_->bytes(*vector, field(bound)));
    return std::optional(std::move(bytes));
  }
  /// Returns a string's characters, which stay in the file; none if it is absent.
  [[nodiscard]] Result<ByteSource> characters(const BoundField& bound) const {
    ETSTREAM_ASSIGN(const auto string, view_->vector(table_, field(bound)));
    return string ? view_->file().slice(string->elements(), string->count) : ByteSource();
  }
  /// Returns the vector, with the position of its elements in the file.
  [[nodiscard]] Result<std::optional<VectorView>> vector(const BoundField& bound) const {
    return view_->vector(table_, field(bound));
  }
  /// Returns the elements of a vector of scalars as wide as `T`; nothing if it is absent.
  template <class T>
  [[nodiscard]] Result<NumberList<T>> numbers(const BoundField& bound) const {
    ETSTREAM_ASSIGN(const auto vector, view_->vector(table_, field(bound)));
    return vector ? NumberList<T>(*view_, *vector) : NumberList<T>();
  }
  /// Returns the elements of a short vector of scalars as wide as `T`; nothing if it is absent.
  template <class T>
  [[nodiscard]] Result<std::vector<T>> values(const BoundField& bound) const {
    ETSTREAM_ASSIGN(const auto vector, view_->vector(table_, field(bound)));
    if (!vector) return std::vector<T>();
    return view_->values<T>(*vector);
  }
  [[nodiscard]] Result<std::optional<TableReader>> child(const BoundField& bound) const {
    ETSTREAM_ASSIGN(const auto table, view_->child(table_, field(bound)));
    if (!table) return std::optional<TableReader>();
    return std::optional(TableReader(*view_, *table, field(bound).type));
  }
  /// Returns the table in a union of tables alone, whose type_name() tells which member it is; nothing for
  /// NONE.
  [[nodiscard]] Result<std::optional<TableReader>> member(const BoundField& bound) const {
    ETSTREAM_ASSIGN(const auto member, view_->member(table_, view_->schema().tables()[type_], field(bound)));
    if (!member) return std::optional<TableReader>();
    ETSTREAM_ASSIGN(const TableView table, view_->table(member->position));
    return std::optional(TableReader(*view_, table, member->type->type));
  }
  /// Returns the name of the member that a union holds; empty for NONE.
  [[nodiscard]] Result<std::string> member_name(const BoundField& bound) const {
    ETSTREAM_ASSIGN(const auto member, view_->member(table_, view_->schema().tables()[type_], field(bound)));
    return member ? member->type->name : std::string();
  }
  /// Returns the type of the table: its index in Schema::tables(), and its name there.
  [[nodiscard]] std::size_t type() const noexcept { return type_; }
  [[nodiscard]] const std::string& type_name() const { return view_->schema().tables()[type_].name; }
  /// Returns an empty list if the vector is absent.
  [[nodiscard]] Result<TableList> tables(const BoundField& bound) const;

  [[nodiscard]] Error corrupt(std::string_view expected, std::string_view found) const {
    return view_->corrupt(position(), expected, found);
  }

 private:
  [[nodiscard]] const FieldType& field(const BoundField& bound) const {
    if (bound.table != type_) std::abort();
    return bound.type();
  }

  const FlatbufferView* view_;
  TableView table_;
  std::size_t type_;
};

/// A vector of tables.
class TableList {
 public:
  TableList() = default;
  TableList(const FlatbufferView& view, const VectorView& vector, std::size_t type)
      : view_(&view), vector_(vector), type_(type) {}

  [[nodiscard]] std::uint32_t size() const noexcept { return vector_.count; }
  /// Returns the table at `i`, which is below size().
  [[nodiscard]] Result<TableReader> at(std::uint64_t i) const {
    ETSTREAM_ASSIGN(const TableView table, view_->table_at(vector_, i));
    return TableReader(*view_, table, type_);
  }

 private:
  const FlatbufferView* view_ = nullptr;
  VectorView vector_;
  std::size_t type_ = 0;
};

inline Result<TableList> TableReader::tables(const BoundField& bound) const {
  ETSTREAM_ASSIGN(const auto vector, view_->vector(table_, field(bound)));
  return vector ? TableList(*view_, *vector, field(bound).type) : TableList();
}

/// Calls `visit` with each item of a list, and with its index if it takes one. `visit` returns nothing, or a
/// Result<void> whose error ends the walk. Errors: those of reading the items, and of `visit`.
template <class List, class Visit>
[[nodiscard]] Result<void> for_each(const List& list, const Visit& visit) {
  for (std::uint32_t i = 0; i < list.size(); ++i) {
    ETSTREAM_ASSIGN(const auto item, list.at(i));
    const auto visited = [&] {
      if constexpr (requires { visit(item, i); }) {
        return visit(item, i);
      } else {
        return visit(item);
      }
    };
    if constexpr (std::is_void_v<decltype(visited())>) {
      visited();
    } else {
      ETSTREAM_TRY(visited());
    }
  }
  return {};
}
/// Does the same for a list whose reading may have failed.
template <class List, class Visit>
[[nodiscard]] Result<void> for_each(const Result<List>& list, const Visit& visit) {
  return list ? for_each(*list, visit) : list.error();
}

}  // namespace etstream
