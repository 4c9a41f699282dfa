// SPDX-License-Identifier: BSD-3-Clause
#include "python/object_reader.h"

#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "python/errors.h"
#include "python/sources.h"

namespace etstream::python {
namespace {

/// The largest bytes that are copied; an object for each would take as much.
constexpr std::uint64_t kSmall = 256;

[[noreturn]] void wrong(nb::handle object, std::string_view expected) {
  throw nb::type_error(text("expected {}, found {}", expected, class_name(object)).c_str());
}

/// Returns an element of the result of PySequence_Fast(), which is a list or a tuple and keeps it.
nb::handle item_of(const nb::object& elements, Py_ssize_t i) {
  PyObject* const of = elements.ptr();
  PyObject* const item = PyList_Check(of) ? PyList_GetItem(of, i) : PyTuple_GetItem(of, i);
  if (item == nullptr) throw nb::python_error();
  return item;
}

/// Returns the bits of a float or a double; ExecuTorch has infinities as text.
std::uint64_t float_bits(nb::handle object, std::uint32_t width) {
  nb::object number = nb::borrow(object);
  if (nb::isinstance<nb::str>(object)) number = nb::steal(PyFloat_FromString(object.ptr()));
  const double value = number.is_valid() ? PyFloat_AsDouble(number.ptr()) : 0;
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return width == sizeof(double) ? std::bit_cast<std::uint64_t>(value)
                                 : std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

/// Returns the characters of a str, as UTF-8. They last as long as `object`.
std::string_view characters_of(nb::handle object) {
  Py_ssize_t size = 0;
  const char* characters = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (characters == nullptr) throw nb::python_error();
  return {characters, static_cast<std::size_t>(size)};
}

nb::object elements_of(nb::handle sequence) {
  nb::object elements = nb::steal(PySequence_Fast(sequence.ptr(), "expected a sequence"));
  if (!elements.is_valid()) throw nb::python_error();
  return elements;
}

std::uint64_t integer_bits(nb::handle object, const InlineType& type) {
  const nb::object number = nb::steal(PyNumber_Index(object.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    wrong(object, "an integer");
  }
  const auto value = type.is_signed ? static_cast<std::uint64_t>(PyLong_AsLongLong(number.ptr()))
                                    : PyLong_AsUnsignedLongLong(number.ptr());
  const bool is_too_wide = PyErr_Occurred() != nullptr;
  PyErr_Clear();
  const unsigned unused_bits = 64 - type.width * 8;
  const std::uint64_t top = value << unused_bits;
  const auto kept = type.is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(top) >> unused_bits)
                                   : top >> unused_bits;
  if (is_too_wide || kept != value) {
    throw nb::value_error(
        text("{} does not fit in {} bits", nb::str(number).c_str(), type.width * 8).c_str());
  }
  return value;
}

std::uint64_t scalar_bits(nb::handle object, const InlineType& type) {
  return type.is_float ? float_bits(object, type.width) : integer_bits(object, type);
}

}  // namespace

ObjectReader::ObjectReader(const Schema& schema, nb::object root) : schema_(schema) {
  names_.reserve(schema.tables().size());
  for (const TableType& table : schema.tables()) {
    std::vector<nb::object>& names = names_.emplace_back();
    names.reserve(table.fields.size());
    for (const FieldType& field : table.fields) {
      names.push_back(nb::steal(PyUnicode_InternFromString(field.name.c_str())));
    }
  }
  kept_.push_back(std::move(root));
}

ValueNode ObjectReader::root() { return {kept_.front().ptr(), 0}; }

nb::handle ObjectReader::keep(nb::object object) { return kept_.emplace_back(std::move(object)); }

Result<FieldValue> ObjectReader::field(ValueNode node, std::size_t table, std::size_t field) {
  const FieldType& type = schema_.tables()[table].fields[field];
  return with_gil([&]() -> Result<FieldValue> {
    const nb::handle object(static_cast<PyObject*>(const_cast<void*>(node.object)));  // NOLINT: as it came
    const nb::object found = nb::getattr(object, names_[table][field], nb::none());
    try {
      return found.is_none() ? FieldValue(AbsentValue{}) : value(found, type);
    } catch (const nb::builtin_exception& error) {
      return make_error(ErrorCode::kInvalidArgument, "{}.{}: {}", schema_.tables()[table].name, type.name,
                        error.what());
    }
  });
}

Result<FieldValue> ObjectReader::element(ValueNode vector, std::uint64_t i) {
  return with_gil([&]() -> Result<FieldValue> {
    const Vector& from = vectors_[vector.index];
    const nb::handle item = item_of(from.elements, static_cast<Py_ssize_t>(i));
    if (from.field->kind == FieldKind::kTableVector) return FieldValue(TableValue{{item.ptr(), 0}});
    if (from.field->kind == FieldKind::kUnionVector) return union_value(nb::borrow(item), *from.field);
    return FieldValue(characters_of(item));
  });
}

FieldValue ObjectReader::value(const nb::object& object, const FieldType& field) {
  switch (field.kind) {
    case FieldKind::kScalar:
      return ScalarValue{scalar_bits(object, field)};
    case FieldKind::kTable:
      return TableValue{{keep(object).ptr(), 0}};
    case FieldKind::kUnion:
      return union_value(object, field);
    case FieldKind::kString:
      return characters_of(keep(object));
    case FieldKind::kInlineVector:
      return inline_vector(object, field);
    case FieldKind::kTableVector:
    case FieldKind::kStringVector:
    case FieldKind::kUnionVector:
      return vector(object, field);
    case FieldKind::kStruct:
    case FieldKind::kUnionType:
    case FieldKind::kUnionTypeVector:
      break;
  }
  wrong(object, "no struct");
}

FieldValue ObjectReader::vector(const nb::object& object, const FieldType& field) {
  nb::object elements = elements_of(object);
  const auto count = static_cast<std::uint64_t>(nb::len(elements));
  vectors_.push_back({std::move(elements), &field});
  return VectorValue{{nullptr, vectors_.size() - 1}, count};
}

FieldValue ObjectReader::inline_vector(const nb::object& object, const FieldType& field) {
  if (field.structure) wrong(object, "no structs");
  const bool is_numbers = nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object);
  bytes_.clear();
  if (is_byte(field) &&
      !(is_numbers && (nb::len(object) == 0 || PyLong_Check(nb::object(object[0]).ptr()) != 0))) {
    ByteSource source = data_of(object);
    if (source.size() > kSmall) return source;
    bytes_.resize(static_cast<std::size_t>(source.size()));
    value_or_raise(source.read_at(0, bytes_));
    return BytesValue(bytes_);
  }
  const nb::object elements = elements_of(object);
  const auto count = static_cast<Py_ssize_t>(nb::len(elements));
  bytes_.resize(static_cast<std::size_t>(count) * field.width);
  for (Py_ssize_t i = 0; i < count; ++i) {
    const std::uint64_t bits = scalar_bits(item_of(elements, i), field);
    std::memcpy(bytes_.data() + static_cast<std::size_t>(i) * field.width, &bits, field.width);
  }
  return BytesValue(bytes_);
}

FieldValue ObjectReader::union_value(const nb::object& object, const FieldType& field) {
  const UnionType& type = schema_.unions()[field.type];
  const std::string name = class_name(object);
  const auto number = type.number_of(name);
  if (!number || type.member(*number) == nullptr || type.member(*number)->kind != FieldKind::kTable) {
    throw nb::type_error(text("expected a member of {}, found {}", type.name, name).c_str());
  }
  return UnionValue{*number, {keep(object).ptr(), 0}};
}

}  // namespace etstream::python
