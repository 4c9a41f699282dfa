// SPDX-License-Identifier: BSD-3-Clause
//
// StructReader: the values of plain C++ structs, bound to a schema's fields by name.
//
//   constexpr FieldBinding kBindings[] = {
//       {"Suite", "name", [](const void* o) -> FieldValue { return get<Suite>(o).name; }},
//       {"Suite", "cases", [](const void* o) -> FieldValue { return table_vector(get<Suite>(o).cases); }},
//   };
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/value_reader.h"

namespace etstream {

/// `read` gives the field's value from the struct that stands for a table.
struct FieldBinding {
  std::string_view table;
  std::string_view field;
  FieldValue (*read)(const void* object);
};

/// Bindings by table and field; null for a field that no binding names.
template <class Binding>
using BoundFields = std::vector<std::vector<const Binding*>>;

/// Finds the fields of bindings. `Binding` has a `table` and a `field`, names of the schema; the bindings
/// outlive the result. Error: kInvalidArgument for a binding that the schema does not have.
template <class Binding>
[[nodiscard]] Result<BoundFields<Binding>> bind_fields(const Schema& schema,
                                                       std::span<const Binding> bindings) {
  BoundFields<Binding> bound;
  for (const auto& table : schema.tables()) bound.emplace_back(table.fields.size());
  for (const Binding& binding : bindings) {
    const auto table = schema.find_table(binding.table);
    const auto field = table ? schema.find_field(*table, binding.field) : std::nullopt;
    if (!field) {
      return make_error(ErrorCode::kInvalidArgument, "the schema has no field {}.{}", binding.table,
                        binding.field);
    }
    bound[*table][*field] = &binding;
  }
  return bound;
}

/// A field that no binding names is absent.
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
