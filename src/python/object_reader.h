// SPDX-License-Identifier: BSD-3-Clause
//
// ObjectReader: gives the packer the values of Python objects, by the schema that is packed. The fields of
// ExecuTorch's dataclasses have the names of its schema.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <vector>

#include "flatbuffer/schema.h"
#include "flatbuffer/schema_packer.h"

namespace etstream::python {

/// A table is an object with an attribute for each field. A field that it lacks, or that is None, is absent.
/// A union's member is known from the name of its value's class. A scalar is an int, a bool, an enum of ints,
/// or a float or its text. A vector is a sequence. A vector of bytes may also be anything that source_of()
/// takes; unless it is small, it is read only when the flatbuffer is written.
///
/// Errors: kInvalidArgument for a value of another kind than its field's or out of its range, naming table
/// and field; those of source_of(). All calls are made with the GIL; the objects are kept alive, and are not
/// to change.
class ObjectReader final : public ValueReader {
 public:
  /// `schema` outlives the reader.
  ObjectReader(const Schema& schema, nanobind::object root);

  ValueNode root() override;
  Result<FieldValue> field(ValueNode node, std::size_t table, std::size_t field) override;
  Result<FieldValue> element(ValueNode vector, std::uint64_t i) override;

 private:
  /// A vector that was given out: its elements, and its field.
  struct Vector {
    nanobind::object elements;  // a list or a tuple
    const FieldType* field = nullptr;
  };

  FieldValue value(const nanobind::object& object, const FieldType& field);
  FieldValue vector(const nanobind::object& object, const FieldType& field);
  FieldValue inline_vector(const nanobind::object& object, const FieldType& field);
  FieldValue union_value(const nanobind::object& object, const FieldType& field);
  nanobind::handle keep(nanobind::object object);

  const Schema& schema_;
  std::vector<std::vector<nanobind::object>> names_;  // of fields, by table
  std::vector<nanobind::object> kept_;                // that were given out
  std::vector<Vector> vectors_;                       // that were given out
  std::vector<std::byte> bytes_;                      // of the value that was given last
};

}  // namespace etstream::python
