// SPDX-License-Identifier: BSD-3-Clause
#include "format/program_values.h"

#include <array>

#include "base/text.h"
#include "base/try.h"

namespace etstream {

Result<BoundFields<ProgramValues::Binding>> ProgramValues::bind(const Schema& schema) {
  using Values = ProgramValues;
  static constexpr std::array kBindings = {
      Binding{"Program", "segments", &Values::segments},
      Binding{"DataSegment", "offset", &Values::segment_offset},
      Binding{"DataSegment", "size", &Values::segment_size},
      Binding{"SubsegmentOffsets", "segment_index", &Values::segment_index},
      Binding{"SubsegmentOffsets", "offsets", &Values::offsets},
      Binding{"NamedData", "segment_index", &Values::segment_index},
      Binding{"Program", "backend_delegate_data", &Values::inline_data},
      Binding{"BackendDelegateInlineData", "data", &Values::data_of_delegate},
      Binding{"BackendDelegateDataReference", "location", &Values::location},
      Binding{"BackendDelegateDataReference", "index", &Values::index},
  };
  return bind_fields<Binding>(schema, kBindings);
}

/// Vectors of ours have an object: the first of the elements, of the size that the index says.
Result<FieldValue> ProgramValues::element(ValueNode vector, std::uint64_t i) {
  if (!vector.object) return read_.element(vector, i);
  return FieldValue(TableValue{{static_cast<const std::byte*>(vector.object) + i * vector.index, 0}});
}

Result<FieldValue> ProgramValues::segments(ValueNode /*node*/, std::size_t /*table*/, std::size_t /*field*/) {
  return table_vector(data_.segments);
}

Result<FieldValue> ProgramValues::segment_offset(ValueNode node, std::size_t /*table*/,
                                                 std::size_t /*field*/) {
  return scalar(get<ProgramData::Segment>(node.object).offset);
}

Result<FieldValue> ProgramValues::segment_size(ValueNode node, std::size_t /*table*/, std::size_t /*field*/) {
  return scalar(get<ProgramData::Segment>(node.object).size);
}

Result<FieldValue> ProgramValues::segment_index(ValueNode node, std::size_t table, std::size_t field) {
  ETSTREAM_ASSIGN(const FieldValue read, read_.field(node, table, field));
  const auto* old = std::get_if<ScalarValue>(&read);
  const std::uint64_t number = old ? old->bits : 0;
  if (number < data_.segment_numbers.size()) return scalar(data_.segment_numbers[number]);
  // With no constants, segment 0 need not be there.
  if (number == 0) return read;
  return view_.corrupt(node.index, text("a segment below ", data_.segment_numbers.size()), text(number));
}

Result<FieldValue> ProgramValues::offsets(ValueNode node, std::size_t table, std::size_t field) {
  if (!data_.constants || data_.constants->position != node.index) return read_.field(node, table, field);
  return scalar_vector(data_.constants->offsets);
}

Result<FieldValue> ProgramValues::inline_data(ValueNode node, std::size_t table, std::size_t field) {
  if (!data_.delegates) return read_.field(node, table, field);
  return table_vector(data_.delegates->inline_data);
}

Result<FieldValue> ProgramValues::data_of_delegate(ValueNode node, std::size_t table, std::size_t field) {
  if (!node.object) return read_.field(node, table, field);
  return FieldValue(get<ByteSource>(node.object));
}

Result<FieldValue> ProgramValues::location(ValueNode node, std::size_t table, std::size_t field) {
  if (!data_.delegates) return read_.field(node, table, field);
  return scalar(static_cast<std::int8_t>(data_.delegates->references.at(node.index).in_segment ? 1 : 0));
}

Result<FieldValue> ProgramValues::index(ValueNode node, std::size_t table, std::size_t field) {
  if (!data_.delegates) return read_.field(node, table, field);
  return scalar(data_.delegates->references.at(node.index).index);
}

}  // namespace etstream
