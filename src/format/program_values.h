// SPDX-License-Identifier: BSD-3-Clause
//
// ProgramValues: a program's values for the packer, with those replaced that say where data is.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "schema/flatbuffer_value_reader.h"
#include "schema/struct_reader.h"

namespace etstream {

/// Where a program's data is, in the terms of its schema.
struct ProgramData {
  struct Segment {
    std::uint64_t offset = 0;  // from the first one on
    std::uint64_t size = 0;
  };
  /// A BackendDelegateDataReference.
  struct Reference {
    bool in_segment = false;
    std::uint32_t index = 0;
    bool is_new = false;  // until segments are numbered: the index is among new ones
  };
  struct Delegates {
    std::vector<ByteSource> inline_data;
    std::unordered_map<std::uint64_t, Reference>
        references;  // by their positions in the program that is read
  };
  /// The offsets of constants, where they are others than in the program that is read.
  struct Constants {
    std::uint64_t position = 0;  // of the table that has them
    std::vector<std::uint64_t> offsets;
  };
  std::vector<Segment> segments;
  std::vector<std::uint32_t> segment_numbers;  // what became of each segment of the program that is read
  std::optional<Delegates> delegates;          // where they stay as they are: none
  std::optional<Constants> constants;
};

/// `view`, whose root table is `root`, and `data` outlive the reader. Error also: kCorrupt for the index of a
/// segment that is none.
class ProgramValues final : public ValueReader {
 public:
  struct Binding {
    std::string_view table;
    std::string_view field;
    Result<FieldValue> (ProgramValues::*read)(ValueNode node, std::size_t table, std::size_t field);
  };

  [[nodiscard]] static Result<BoundFields<Binding>> bind(const Schema& schema);
  ProgramValues(BoundFields<Binding> bound, const FlatbufferView& view, const TableView& root,
                const ProgramData& data)
      : bound_(std::move(bound)), view_(view), read_(view, root), data_(data) {}

  ValueNode root() override { return read_.root(); }
  Result<FieldValue> field(ValueNode node, std::size_t table, std::size_t field) override {
    const Binding* binding = bound_[table][field];
    return binding ? (this->*binding->read)(node, table, field) : read_.field(node, table, field);
  }
  Result<FieldValue> element(ValueNode vector, std::uint64_t i) override;

 private:
  Result<FieldValue> segments(ValueNode node, std::size_t table, std::size_t field);
  Result<FieldValue> segment_offset(ValueNode node, std::size_t table, std::size_t field);
  Result<FieldValue> segment_size(ValueNode node, std::size_t table, std::size_t field);
  Result<FieldValue> segment_index(ValueNode node, std::size_t table, std::size_t field);
  Result<FieldValue> offsets(ValueNode node, std::size_t table, std::size_t field);
  Result<FieldValue> inline_data(ValueNode node, std::size_t table, std::size_t field);
  Result<FieldValue> data_of_delegate(ValueNode node, std::size_t table, std::size_t field);
  Result<FieldValue> location(ValueNode node, std::size_t table, std::size_t field);
  Result<FieldValue> index(ValueNode node, std::size_t table, std::size_t field);

  BoundFields<Binding> bound_;
  const FlatbufferView& view_;
  FlatbufferValueReader read_;
  const ProgramData& data_;
};

}  // namespace etstream
