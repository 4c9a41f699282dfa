// SPDX-License-Identifier: BSD-3-Clause
//
// The limits of depth and of size up to which the packer packs.
#include <doctest/doctest.h>
#include <flatbuffers/reflection.h>

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/schema_packer.h"
#include "random_schema.h"
#include "written_plan.h"

namespace etstream::testing::packer_limits_test {
namespace {

/// A chain of `tables` tables, each in the field `link` of the one before. The root is number 1.
class ChainReader final : public ValueReader {
 public:
  ChainReader(const Schema& schema, std::string_view link, std::uint64_t tables)
      : link_(schema.find_field(schema.root_index(), link).value()),
        kind_(schema.root().fields[link_].kind),
        tables_(tables) {}

  ValueNode root() override { return {nullptr, 1}; }
  Result<FieldValue> field(ValueNode node, std::size_t /*table*/, std::size_t field) override {
    if (field != link_ || node.index == tables_) return FieldValue(AbsentValue{});
    const ValueNode next = {nullptr, node.index + 1};
    if (kind_ == FieldKind::kTableVector) return FieldValue(VectorValue{next, 1});
    if (kind_ == FieldKind::kUnion) return FieldValue(UnionValue{1, next});
    return FieldValue(TableValue{next});
  }
  Result<FieldValue> element(ValueNode vector, std::uint64_t /*i*/) override {
    return FieldValue(TableValue{vector});
  }

 private:
  std::size_t link_;
  FieldKind kind_;
  std::uint64_t tables_;
};

/// Gives every scalar vector the same bytes.
class PayloadReader final : public ValueReader {
 public:
  explicit PayloadReader(ByteSource payload) : payload_(std::move(payload)) {}

  ValueNode root() override { return {}; }
  Result<FieldValue> field(ValueNode /*node*/, std::size_t /*table*/, std::size_t /*field*/) override {
    return FieldValue(payload_);
  }
  Result<FieldValue> element(ValueNode /*vector*/, std::uint64_t /*i*/) override {
    return Error{ErrorCode::kInvalidArgument, "there are no vectors of tables"};
  }

 private:
  ByteSource payload_;
};

const std::string& chain_schema() {
  static const std::string text = R"(
    union Any { Chain }
    table Chain { table: Chain; any: Any; tables: [Chain]; }
    root_type Chain;
    file_identifier "DEEP";)";
  return text;
}

Schema schema_of(const std::string& text) { return Schema::from_binary(compile_schema(text)).value(); }

Schema payload_schema() {
  return schema_of(R"(
    table Box { payload: [ubyte] (force_align: 16); }
    root_type Box;
    file_identifier "BULK";)");
}

Result<FilePlan> pack_zeros(std::uint64_t size, std::uint64_t limit = kLargestFlatbuffer) {
  const Schema schema = payload_schema();
  PayloadReader reader(ByteSource::zeros(size));
  return pack(schema, reader, {.limit = limit});
}

std::string too_large(std::uint64_t size, std::uint64_t limit) {
  return "the file would be " + std::to_string(size) + " bytes, and its format ends at " +
         std::to_string(limit) + " bytes";
}

TEST_CASE("tables_may_be_nested_as_deep_as_flatbuffers_reads_them_and_no_deeper") {
  const auto binary = compile_schema(chain_schema());
  const Schema schema = Schema::from_binary(binary).value();
  const auto& reflected = *reflection::GetSchema(binary.data());
  for (const std::string link : {"table", "any", "tables"}) {
    CAPTURE(link);
    ChainReader deepest(schema, link, 64);
    const auto plan = pack(schema, deepest);
    REQUIRE(plan.has_value());
    const auto file = bytes_of(*plan);
    CHECK(flatbuffers::Verify(reflected, *reflected.root_table(),
                              reinterpret_cast<const std::uint8_t*>(file.data()), file.size()));

    for (const std::uint64_t tables : {std::uint64_t{65}, std::numeric_limits<std::uint64_t>::max()}) {
      ChainReader too_deep(schema, link, tables);
      const auto refused = pack(schema, too_deep);
      REQUIRE_FALSE(refused.has_value());
      CHECK(refused.error().code == ErrorCode::kInvalidArgument);
      CHECK(refused.error().message == "tables are nested deeper than 64, at Chain");
    }
  }
}

TEST_CASE("tables_are_read_as_deep_as_flatbuffers_reads_them_and_no_deeper") {
  const Schema schema = schema_of(chain_schema());
  constexpr flatbuffers::voffset_t kTable = 4;
  constexpr flatbuffers::voffset_t kAnyType = 6;
  constexpr flatbuffers::voffset_t kAny = 8;
  constexpr flatbuffers::voffset_t kTables = 10;
  for (const flatbuffers::voffset_t link : {kTable, kAny, kTables}) {
    for (const int tables : {64, 65}) {
      CAPTURE(link);
      CAPTURE(tables);
      flatbuffers::FlatBufferBuilder builder;
      flatbuffers::Offset<flatbuffers::Table> last(builder.EndTable(builder.StartTable()));
      for (int i = 1; i < tables; ++i) {
        const flatbuffers::Offset<void> next(link == kTables ? builder.CreateVector(&last, 1).o : last.o);
        const auto start = builder.StartTable();
        if (link == kAny) builder.AddElement<std::uint8_t>(kAnyType, 1, 0);
        builder.AddOffset(link, next);
        last = flatbuffers::Offset<flatbuffers::Table>(builder.EndTable(start));
      }
      builder.Finish(last, "DEEP");
      const auto file = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
      const auto view = FlatbufferView::open(schema, ByteSource::memory(file), "file");
      REQUIRE(view);
      const auto verified = verify_flatbuffer(*view);
      CHECK(verified.has_value() == (tables == 64));
      if (!verified) CHECK(verified.error().message.ends_with("tables nested at most 64 deep, found Chain"));
    }
  }
}

TEST_CASE("a_string_of_up_to_1_MiB_is_read") {
  const Schema schema = schema_of("table T { s: string; } root_type T;");
  for (const std::size_t size : {std::size_t{1} << 20, (std::size_t{1} << 20) + 1}) {
    CAPTURE(size);
    flatbuffers::FlatBufferBuilder builder;
    const auto string = builder.CreateString(std::string(size, 'x'));
    const auto start = builder.StartTable();
    builder.AddOffset(4, string);
    builder.Finish(flatbuffers::Offset<flatbuffers::Table>(builder.EndTable(start)));
    const auto file = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
    const FlatbufferView view = FlatbufferView::open(schema, ByteSource::memory(file), "file").value();
    const auto read = view.string(view.root().value(), schema.root().fields[0]);
    CHECK(read.has_value() == (size == std::size_t{1} << 20));
    if (!read) {
      CHECK(read.error().message.ends_with("a string or list of 1048577 bytes, expected at most 1048576"));
    }
  }
}

TEST_CASE("a_file_over_two_gibibytes_is_refused_and_one_just_under_is_not") {
  constexpr std::uint64_t kOverhead = 32;  // header, vtable, table and length, padded for the alignment
  constexpr std::uint64_t kLargest = (std::uint64_t{1} << 31) - 16;
  CHECK(kLargestFlatbuffer == (std::uint64_t{1} << 31) - 1);
  const auto largest = pack_zeros(kLargest - kOverhead);
  REQUIRE(largest.has_value());
  CHECK(largest->size == kLargest);
  CHECK(flaw_in(*largest) == "");

  const auto refused = pack_zeros(kLargest - kOverhead + 1);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kTooLarge);
  CHECK(refused.error().message == too_large(kLargest + 16, kLargestFlatbuffer));
}

TEST_CASE("a_limit_of_the_caller_holds_to_the_byte") {
  const auto size = pack_zeros(100).value().size;
  CHECK(pack_zeros(100, size).has_value());
  const auto refused = pack_zeros(100, size - 1);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kTooLarge);
  CHECK(refused.error().message == too_large(size, size - 1));
}

TEST_CASE("a_payload_is_an_extent_with_its_fields_name_and_alignment") {
  for (const std::uint64_t alignment : {16U, 1U, 4096U}) {
    CAPTURE(alignment);
    Schema schema = payload_schema();
    if (alignment != 16) REQUIRE(schema.set_alignment("Box", "payload", alignment).has_value());
    PayloadReader reader(ByteSource::zeros(1000));
    const auto plan = pack(schema, reader);
    REQUIRE(plan.has_value());
    CHECK(flaw_in(*plan) == "");
    CHECK(plan->payload_size >= 1000);
    std::size_t payloads = 0;
    for (const Extent& extent : plan->extents) {
      if (plan->label(extent) != "Box.payload") continue;
      ++payloads;
      CHECK(extent.size() == 1000);
      CHECK(extent.alignment == alignment);
    }
    CHECK(payloads == 1);
  }
}

}  // namespace
}  // namespace etstream::testing::packer_limits_test
