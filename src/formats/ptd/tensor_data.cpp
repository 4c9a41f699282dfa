// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/tensor_data.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/append.h"
#include "flat_tensor_bfbs_generated.h"
#include "flat_tensor_fields_generated.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/schema_packer.h"
#include "flatbuffer/struct_reader.h"
#include "formats/ptd/tensor_data_header.h"
#include "formats/tensor/dimensions.h"

namespace etstream {
namespace {

constexpr std::uint32_t kMostSegmentAlignment = std::uint32_t{1} << 30;

/// The structs from which the schema's tables are read.
struct DataSegmentTable {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};
struct NamedDataTable {
  const TensorData::Entry* entry = nullptr;
  std::uint32_t segment = 0;
};
struct FlatTensorTable {
  std::vector<DataSegmentTable> segments;
  std::vector<NamedDataTable> named_data;
};

std::vector<FieldBinding> bindings_of(const flat_tensor::Fields& fields) {
  // clang-format off
  return {
      {fields.flat_tensor.segments, [](const void* o) { return table_vector(get<FlatTensorTable>(o).segments); }},
      {fields.flat_tensor.named_data, [](const void* o) { return table_vector(get<FlatTensorTable>(o).named_data); }},
      {fields.data_segment.offset, [](const void* o) { return scalar(get<DataSegmentTable>(o).offset); }},
      {fields.data_segment.size, [](const void* o) { return scalar(get<DataSegmentTable>(o).size); }},
      {fields.named_data.key, [](const void* o) -> FieldValue { return std::string_view(get<NamedDataTable>(o).entry->key); }},
      {fields.named_data.segment_index, [](const void* o) { return scalar(get<NamedDataTable>(o).segment); }},
      {fields.named_data.tensor_layout, [](const void* o) -> FieldValue {
        const auto& layout = get<NamedDataTable>(o).entry->layout;
        return layout ? FieldValue(TableValue{{&*layout, 0}}) : AbsentValue{};
      }},
      {fields.tensor_layout.scalar_type, [](const void* o) { return scalar(get<TensorLayout>(o).scalar_type); }},
      {fields.tensor_layout.sizes, [](const void* o) { return scalar_vector(get<TensorLayout>(o).sizes); }},
      {fields.tensor_layout.dim_order, [](const void* o) { return scalar_vector(get<TensorLayout>(o).dim_order); }},
  };
  // clang-format on
}

template <class... Arguments>
Error invalid(Template<Arguments...> words, const Arguments&... arguments) {
  return make_error(ErrorCode::kInvalidArgument, words, arguments...);
}

Result<void> check_segment_alignment(std::uint32_t alignment) {
  return check_alignment("segment alignment", alignment, kMostSegmentAlignment);
}

Result<void> check_entry(const TensorData& data, const TensorData::Entry& entry) {
  const std::string name = text("tensor data: key {}", quote(entry.key));
  if (entry.buffer >= data.buffers.size()) {
    return invalid("{}: expected a buffer below {}, found {}", name, data.buffers.size(), entry.buffer);
  }
  if (!entry.layout || data.unchecked) return {};
  const TensorLayout& layout = *entry.layout;
  const auto bytes = byte_size(layout.scalar_type, layout.sizes);
  if (!bytes) return error_in(bytes.error().code, name, "{}", bytes.error().message);
  const std::uint64_t size = data.buffers[entry.buffer].data.size();
  if (*bytes != size) {
    return invalid("{}: expected the {} bytes of {}, found {}", name, *bytes, describe(layout), size);
  }
  if (!is_permutation(layout.dim_order, layout.sizes.size())) {
    return invalid("{}: expected each of its {} dimensions once as dim_order, found {}", name,
                   layout.sizes.size(), list_text(layout.dim_order));
  }
  return {};
}

Result<void> check(const TensorData& data) {
  ETSTREAM_TRY(check_segment_alignment(data.segment_alignment));
  for (const TensorData::Buffer& buffer : data.buffers)
    ETSTREAM_TRY(check_segment_alignment(buffer.alignment));
  for (const TensorData::Entry& entry : data.entries) ETSTREAM_TRY(check_entry(data, entry));
  const auto repeated = first_repeated(data.entries, &TensorData::Entry::key);
  if (repeated) return invalid("tensor data: key {} comes twice", quote(*repeated));
  return {};
}

}  // namespace

Result<FilePlan> plan(const TensorData& data) {
  return without_exceptions([&]() -> Result<FilePlan> {
    ETSTREAM_TRY(check(data));
    FlatTensorTable root;
    std::vector<Segment> segments;
    std::vector<std::optional<std::uint32_t>> numbers(data.buffers.size());  // of their segments
    for (const TensorData::Entry& entry : data.entries) {
      auto& number = numbers[entry.buffer];
      if (!number) {
        const TensorData::Buffer& buffer = data.buffers[entry.buffer];
        number = static_cast<std::uint32_t>(segments.size());
        segments.push_back({buffer.data, std::max(buffer.alignment, data.segment_alignment), entry.key});
      }
      root.named_data.push_back({&entry, *number});
    }
    ETSTREAM_ASSIGN(const auto offsets, place(segments));
    for (std::size_t i = 0; i < segments.size(); ++i) {
      root.segments.push_back({offsets[i], segments[i].source.size()});
    }
    ETSTREAM_ASSIGN(const Schema* schema, embedded_schema<flat_tensor::FlatTensorBinarySchema>());
    const auto bindings = bindings_of(flat_tensor::Fields(*schema));
    StructReader reader(bind_fields(*schema, bindings), &root);
    ETSTREAM_ASSIGN(
        FilePlan plan,
        pack(*schema, reader, {.header_size = TensorDataHeader::kPaddedSize, .order = ObjectOrder::kFlatc}));
    TensorDataHeader header;
    header.flatbuffer_size = plan.size - TensorDataHeader::kPaddedSize;
    ETSTREAM_ASSIGN(header.segment_base_offset, append(plan, segments, offsets, data.segment_alignment));
    header.segment_data_size = plan.size - header.segment_base_offset;
    std::vector<std::byte> padded(TensorDataHeader::kPaddedSize);
    std::ranges::copy(std::as_bytes(std::span(&header, 1)), padded.begin());
    fill_header(plan, std::move(padded));
    plan.payload_size = plan.size - plan.metadata_size;
    return plan;
  });
}

}  // namespace etstream
