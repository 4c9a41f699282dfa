// SPDX-License-Identifier: BSD-3-Clause
//
// EditedValues: a flatbuffer's values for the packer, with some of its fields replaced and tables added.
//
//   EditedValues values(view, root);
//   values.set(chain, fields.stacktrace, AbsentValue{});
//   values.set(values.root(), fields.segments, values.tables({values.add_table()}));
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "flatbuffer/bound_table.h"
#include "flatbuffer/flatbuffer_value_reader.h"
#include "flatbuffer/value_reader.h"

namespace etstream {

/// A node is a table of the flatbuffer, by its position (node_at), or one that was added. A field
/// that is not edited has its value in the flatbuffer, or none in a table that was added. Values that set()
/// takes live as long as the reader: those of tables(), scalars(), bytes() and string() do. Memory: about 100
/// bytes an edit. May be packed any number of times. The view outlives it.
class EditedValues final : public ValueReader {
 public:
  EditedValues(const FlatbufferView& view, const TableView& root)
      : read_(view, root), edited_(view.schema().tables().size()) {}

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

  ValueNode root() override { return read_.root(); }
  Result<FieldValue> field(ValueNode node, std::size_t table, std::size_t field) override;
  Result<FieldValue> element(ValueNode vector, std::uint64_t i) override;

 private:
  /// Larger than any position in a flatbuffer.
  static constexpr std::uint64_t kFirstAdded = std::uint64_t{1} << 32;
  struct EditedField {
    std::uint64_t node = 0;
    std::size_t table = 0;
    std::size_t field = 0;
    bool operator==(const EditedField&) const = default;
  };
  struct EditedFieldHash {
    std::size_t operator()(const EditedField& edited) const noexcept;
  };

  FieldValue bytes(std::span<const std::byte> bytes);

  FlatbufferValueReader read_;
  std::uint64_t added_ = 0;
  std::unordered_map<EditedField, FieldValue, EditedFieldHash> edits_;
  std::vector<std::uint64_t> edited_;  // by table type: the fields that some edit names, a bit each
  std::deque<std::vector<ValueNode>> vectors_;
  std::deque<std::vector<std::byte>> bytes_;
  std::deque<std::string> strings_;
};

}  // namespace etstream
