// SPDX-License-Identifier: BSD-3-Clause
//
// FlatbufferValueReader: gives the packer the values of a flatbuffer. The packer writes them again, in
// another order of objects or with some values replaced.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/value_reader.h"

namespace etstream {

/// Reads from a view of the schema that is packed, which outlives the reader. A node is a table's position in
/// the file, or a vector's place in this reader's list of vectors. Vectors of scalars over 64 KiB stay where
/// they are. Errors: those of FlatbufferView.
class FlatbufferValueReader final : public ValueReader {
 public:
  FlatbufferValueReader(const FlatbufferView& view, const TableView& root)
      : view_(&view), root_(root.position) {}

  ValueNode root() override { return {nullptr, root_}; }
  Result<FieldValue> field(ValueNode node, std::size_t table, std::size_t field) override;
  Result<FieldValue> element(ValueNode vector, std::uint64_t i) override;

  /// The table at `node`.
  [[nodiscard]] Result<TableView> table(ValueNode node);

 private:
  /// A vector of tables, strings or unions; or a string or struct that a union holds, as its one element.
  struct Vector {
    const TableType* declared = nullptr;
    const FieldType* field = nullptr;
    VectorView elements;
    VectorView types;   // of the unions
    MemberView member;  // what a union holds
  };

  Result<FieldValue> inline_vector(const VectorView& vector, const FieldType& field);
  Result<FieldValue> member_value(const MemberView& member, std::uint64_t number);
  Result<FieldValue> held_value(const MemberView& member);
  ValueNode add(Vector vector);

  const FlatbufferView* view_;
  std::uint64_t root_;
  std::optional<TableView> last_;  // the table that was asked for last, as it will be next
  std::deque<Vector> vectors_;     // that were given out
  std::vector<std::byte> bytes_;   // of the value that was given last
  std::string string_;
};

}  // namespace etstream
