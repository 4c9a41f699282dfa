// SPDX-License-Identifier: BSD-3-Clause
//
// StructReader: the values of plain C++ structs, bound to a schema's fields.
//
//   const FieldBinding bindings[] = {
//       {fields.suite.name, [](const void* o) -> FieldValue { return get<Suite>(o).name; }},
//       {fields.suite.cases, [](const void* o) -> FieldValue { return table_vector(get<Suite>(o).cases); }},
//   };
#pragma once

#include <cstdint>
#include <cstring>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "flatbuffer/schema_packer.h"
#include "flatbuffer/table_reader.h"

namespace etstream {

/// `read` gives the field's value from the struct that stands for a table.
struct FieldBinding {
  BoundField field;
  FieldValue (*read)(const void* object);
};

/// Bindings by table and field; null for a field that no binding has.
template <class Binding>
using BoundFields = std::vector<std::vector<const Binding*>>;

/// Puts bindings in the places of their fields, which are bound to `schema`. The bindings outlive the result.
template <class Bindings>
[[nodiscard]] auto bind_fields(const Schema& schema, const Bindings& bindings) {
  BoundFields<std::ranges::range_value_t<Bindings>> bound;
  for (const auto& table : schema.tables()) bound.emplace_back(table.fields.size());
  for (const auto& binding : bindings) bound[binding.field.table][binding.field.index] = &binding;
  return bound;
}

/// A field that no binding has is absent.
class StructReader : public ValueReader {
 public:
  /// `root` is what the schema's root table is read from, and outlives the reader.
  StructReader(BoundFields<FieldBinding> bound, const void* root) : bound_(std::move(bound)), root_(root) {}

  ValueNode root() override { return {root_, 0}; }
  Result<FieldValue> field(ValueNode node, std::size_t table, std::size_t field) override {
    const FieldBinding* binding = bound_[table][field];
    return binding ? binding->read(node.object) : FieldValue(AbsentValue{});
  }
  Result<FieldValue> element(ValueNode vector, std::uint64_t i) override {
    return FieldValue(TableValue{{static_cast<const std::byte*>(vector.object) + i * vector.index, 0}});
  }

 private:
  BoundFields<FieldBinding> bound_;
  const void* root_;
};

/// Helpers for bindings: the struct behind `object`, and values made from its members.
template <class T>
const T& get(const void* object) {
  return *static_cast<const T*>(object);
}

template <class T>
requires std::is_arithmetic_v<T> || std::is_enum_v<T> FieldValue scalar(T value) {
  ScalarValue out;
  std::memcpy(&out.bits, &value, sizeof(value));
  return out;
}

template <class T>
FieldValue scalar_vector(const std::vector<T>& elements) {
  return std::as_bytes(std::span(elements));
}

template <class T>
FieldValue table_vector(const std::vector<T>& elements) {
  return VectorValue{{elements.data(), sizeof(T)}, elements.size()};
}

}  // namespace etstream
