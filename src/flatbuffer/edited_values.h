// SPDX-License-Identifier: BSD-3-Clause
//
// EditedValues: gives the packer the values of a flatbuffer, as they are or with some replaced. The packer
// writes them again, in another order of objects too.
//
//   EditedValues values(view, root);
//   values.set(chain, fields.stacktrace, AbsentValue{});
//   values.set(values.root(), fields.segments, values.tables({values.add_table()}));
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/schema_packer.h"
#include "flatbuffer/table_reader.h"

namespace etstream {

/// A node is a table of the flatbuffer, by its position (node_at), or one that was added. A field
/// that is not edited has its value in the flatbuffer, or none in a table that was added. Values that set()
/// takes live as long as the reader: those of tables(), scalars(), bytes() and string() do. Memory: about 100
/// bytes an edit. Vectors of scalars over 64 KiB stay where they are. May be packed any number of times. The
/// view, of the schema that is packed, outlives it. Errors: those of FlatbufferView.
class EditedValues final : public ValueReader {
 public:
  EditedValues(const FlatbufferView& view, const TableView& root)
      : view_(view), root_(root.position), edited_(view.schema().tables().size()) {}

  [[nodiscard]] static ValueNode node_at(std::uint64_t position) { return {nullptr, position}; }
  [[nodiscard]] ValueNode add_table() { return {nullptr, kFirstAdded + added_++}; }
  /// `field` is one of the view's schema.
  void set(ValueNode table, const BoundField& field, FieldValue value);

  [[nodiscard]] FieldValue tables(std::vector<ValueNode> elements);
  template <class T>
  [[nodiscard]] FieldValue scalars(const std::vector<T>& elements) {
    return bytes(std::as_bytes(std::span(elements)));
  }
  [[nodiscard]] FieldValue string(std::string_view characters);

  ValueNode root() override { return node_at(root_); }
  bool has_deprecated() const override { return true; }
  Result<FieldValue> field(ValueNode node, std::size_t table, std::size_t field) override;
  Result<FieldValue> element(ValueNode vector, std::uint64_t i) override;

 private:
  /// The number of the first table that is added: larger than any position in a flatbuffer.
  static constexpr std::uint64_t kFirstAdded = std::uint64_t{1} << 32;
  struct EditedField {
    std::uint64_t node = 0;
    std::size_t table = 0;
    std::size_t field = 0;
    auto operator<=>(const EditedField&) const = default;  // NOLINT(modernize-use-nullptr)
  };

  /// A vector of tables, strings or unions; or a string or struct that a union holds, as its one element.
  struct Vector {
    const TableType* declared = nullptr;
    const FieldType* field = nullptr;
    VectorView elements;
    VectorView types;   // of the unions
    MemberView member;  // what a union holds
  };

  FieldValue bytes(std::span<const std::byte> bytes);
  /// Returns the value that the flatbuffer itself has.
  Result<FieldValue> value(ValueNode node, const TableType& declared, const FieldType& field);
  Result<FieldValue> inline_vector(const VectorView& vector, const FieldType& field);
  Result<FieldValue> string_value(const VectorView& string);
  Result<FieldValue> struct_value(std::uint64_t position, const InlineType& type);
  FieldValue member_value(const MemberView& member, std::uint64_t number);
  ValueNode add(Vector vector);

  const FlatbufferView& view_;
  const std::uint64_t root_;
  std::optional<TableView> last_;  // the table that was asked for last, as it will be next
  std::deque<Vector> vectors_;     // of the flatbuffer that were given out: nodes are places in it
  std::vector<std::byte> bytes_;   // of the value that was given last
  std::string string_;

  std::uint64_t added_ = 0;
  std::map<EditedField, FieldValue> edits_;
  std::vector<std::uint64_t> edited_;  // by table type: the fields that some edit names, a bit each
  // Values that edits refer to:
  std::deque<std::vector<ValueNode>> table_vectors_;
  std::deque<std::vector<std::byte>> byte_vectors_;
  std::deque<std::string> strings_;
};

}  // namespace etstream
