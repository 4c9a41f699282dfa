// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/rewrite/payload_extraction.h"

#include <optional>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/schema_packer.h"
#include "program_fields_generated.h"

namespace etstream {
namespace {

constexpr std::string_view kSegmentData = "data";
constexpr std::string_view kSegmentAlignment = "alignment";

/// The fields of a described segment. The last two are not in programs' schema.
struct DescribedSegmentFields : program::DataSegmentFields {
  using DataSegmentFields::DataSegmentFields;
  BoundField data = field(kSegmentData);
  BoundField alignment = field(kSegmentAlignment);
};

/// Passes on the values of another reader, but keeps data and reports it as absent. The packer asks for each
/// entry of a list once and in order, and for an entry's fields in their order.
class PayloadExtractor final : public ValueReader {
 public:
  PayloadExtractor(const Schema& schema, ValueReader& values, ProgramDescription& out)
      : values_(values), out_(out), constant_(schema), delegate_(schema), segment_(schema) {}

  ValueNode root() override { return values_.root(); }
  bool has_deprecated() const override { return values_.has_deprecated(); }
  Result<FieldValue> field(ValueNode node, std::size_t table, std::size_t field) override {
    ETSTREAM_ASSIGN(FieldValue value, values_.field(node, table, field));
    const auto asks_for = [&](const BoundField& known) {
      return known.table == table && known.index == field;
    };
    if (asks_for(constant_.storage)) {
      out_.constants.push_back(bytes_of(value));
    } else if (asks_for(delegate_.data)) {
      out_.delegate_data.push_back(bytes_of(value));
    } else if (asks_for(segment_.size)) {
      sizes_.push_back(number_of(value));
    } else if (asks_for(segment_.data)) {
      out_.segments.push_back({bytes_of(value)});
      has_data_.push_back(!std::holds_alternative<AbsentValue>(value));
    } else if (asks_for(segment_.alignment)) {
      out_.segments.back().alignment = static_cast<std::uint32_t>(number_of(value).value_or(1));
    } else {
      return value;
    }
    return FieldValue(AbsentValue{});
  }
  Result<FieldValue> element(ValueNode vector, std::uint64_t i) override {
    return values_.element(vector, i);
  }

  /// Takes the data of segments that have none from `program`, unless it is null, and checks all sizes.
  Result<void> complete_segments(const ProgramFile* program, const std::string& name) {
    std::vector<SegmentInfo> found;
    if (program) {
      ETSTREAM_ASSIGN(found, program->segments());
    }
    for (std::size_t i = 0; i < out_.segments.size(); ++i) {
      ByteSource& data = out_.segments[i].data;
      if (!has_data_[i] && i < found.size()) {
        ETSTREAM_ASSIGN(data, program->file().slice(found[i].offset, found[i].size));
      }
      if (sizes_[i].value_or(data.size()) == data.size()) continue;
      Error error = error_in(ErrorCode::kInvalidArgument, name,
                             "segments[{}]: expected data of {} bytes as its size says, found {}{}", i,
                             *sizes_[i], data.size(), has_data_[i] ? "" : ": the JSON has none");
      if (has_data_[i]) return error;
      return with_advice(std::move(error), {"take it from the program (", AdviceTerm::kSegmentsFrom, ")"});
    }
    return {};
  }

 private:
  static ByteSource bytes_of(const FieldValue& value) {
    if (const auto* source = std::get_if<ByteSource>(&value)) return *source;
    const auto* bytes = std::get_if<BytesValue>(&value);
    return bytes ? ByteSource::owned({bytes->begin(), bytes->end()}) : ByteSource();
  }

  static std::optional<std::uint64_t> number_of(const FieldValue& value) {
    const auto* scalar = std::get_if<ScalarValue>(&value);
    return scalar ? std::optional(scalar->bits) : std::nullopt;
  }

  ValueReader& values_;
  ProgramDescription& out_;
  const program::BufferFields constant_;
  const program::BackendDelegateInlineDataFields delegate_;
  const DescribedSegmentFields segment_;
  std::vector<std::optional<std::uint64_t>> sizes_;  // of segments, as they say
  std::vector<bool> has_data_;                       // of segments
};

}  // namespace

Result<Schema> with_segment_data(Schema schema) {
  FieldType data;
  data.name = kSegmentData;
  data.kind = FieldKind::kInlineVector;
  data.width = 1;
  FieldType alignment;
  alignment.name = kSegmentAlignment;
  alignment.width = alignment.natural_alignment = sizeof(std::uint32_t);
  ETSTREAM_TRY(schema.add_field(program::DataSegmentFields::kName, std::move(data)));
  ETSTREAM_TRY(schema.add_field(program::DataSegmentFields::kName, std::move(alignment)));
  return schema;
}

Result<ProgramDescription> describe_program(const Schema& schema, ValueReader& values,
                                            const ProgramFile* segments_from, const std::string& name) {
  ProgramDescription out;
  PayloadExtractor extractor(schema, values, out);
  ETSTREAM_ASSIGN(const FilePlan plan, pack(schema, extractor));
  ETSTREAM_TRY(extractor.complete_segments(segments_from, name));
  ETSTREAM_ASSIGN(out.metadata, source_of(plan));
  return out;
}

}  // namespace etstream
