// SPDX-License-Identifier: BSD-3-Clause
//
// Values that the packer refuses, each with its message, and the limits of depth and of size up to which it
// packs.
#include <doctest/doctest.h>
#include <flatbuffers/reflection.h>

#include <array>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/schema_packer.h"
#include "random_schema.h"
#include "written_plan.h"

namespace etstream::testing::packer_errors_test {
namespace {

constexpr const char* kSchema = R"(
  struct Spot { x: int; y: int; }
  union Any { Leaf = 1, Other: Leaf = 5, Spot = 7, text: string = 8 }
  table Leaf { number: int; }
  table Root {
    scalar: int;
    string: string;
    table: Leaf;
    any: Any;
    bytes: [ubyte];
    tables: [Leaf];
    strings: [string];
    shorts: [short];
    floats: [float];
    longs: [ulong] (force_align: 64);
    spot: Spot;
    anys: [Any];
  }
  root_type Root;
  file_identifier "ERRS";
)";

Schema schema_of(const std::string& text) { return Schema::from_binary(compile_schema(text)).value(); }

/// Gives the value of one field of the root; all others, and those of other tables, are absent.
class OneFieldReader final : public ValueReader {
 public:
  using Element = std::function<Result<FieldValue>(std::uint64_t i)>;

  OneFieldReader(const Schema& schema, std::string_view field, Result<FieldValue> value, Element element = {})
      : table_(schema.root_index()),
        field_(schema.find_field(table_, field).value()),
        value_(std::move(value)),
        element_(std::move(element)) {}

  ValueNode root() override { return {}; }
  Result<FieldValue> field(ValueNode /*node*/, std::size_t table, std::size_t field) override {
    return table == table_ && field == field_ ? value_ : FieldValue(AbsentValue{});
  }
  Result<FieldValue> element(ValueNode /*vector*/, std::uint64_t i) override {
    ++elements_asked_;
    return element_ ? element_(i) : Error{ErrorCode::kInvalidArgument, "unexpectedly asked for an element"};
  }

  int elements_asked() const { return elements_asked_; }

 private:
  std::size_t table_;
  std::size_t field_;
  Result<FieldValue> value_;
  Element element_;
  int elements_asked_ = 0;
};

Result<FilePlan> pack_field(std::string_view field, const FieldValue& value,
                            const OneFieldReader::Element& element = {}) {
  const Schema schema = schema_of(kSchema);
  OneFieldReader reader(schema, field, value, element);
  return pack(schema, reader);
}

void check_refused(const Result<FilePlan>& plan, const std::string& message) {
  REQUIRE_FALSE(plan.has_value());
  CHECK(plan.error().code == ErrorCode::kInvalidArgument);
  CHECK(plan.error().message == message);
}

/// Returns `n` bytes that are at hand.
FieldValue bytes(std::size_t n) {
  static constexpr std::array<std::byte, 64> kBytes{};
  return BytesValue(kBytes).first(n);
}

TEST_CASE("a_value_is_refused_unless_it_is_of_its_fields_kind") {
  const FieldValue scalar = ScalarValue{1};
  const FieldValue string = std::string_view("x");
  const FieldValue small = bytes(8);
  const FieldValue source = ByteSource::zeros(8);
  const FieldValue table = TableValue{};
  const FieldValue any = UnionValue{1, {}};
  const FieldValue vector = VectorValue{};
  const std::string other_kind = " is not of the kind that the schema says";
  struct Expectation {
    std::string field;
    std::vector<FieldValue> fitting;
    std::vector<FieldValue> others;
    std::string message;
  };
  const std::vector<Expectation> expectations = {
      {"scalar", {scalar}, {string, small, source, table, any, vector}, " is not a scalar"},
      {"string", {string}, {scalar, small, source, table, any, vector}, other_kind},
      {"table", {table}, {scalar, string, small, source, any, vector}, other_kind},
      {"any", {any}, {scalar, string, small, source, table, vector}, other_kind},
      {"tables", {vector}, {scalar, string, small, source, table, any}, other_kind},
      {"strings", {vector}, {scalar, string, small, source, table, any}, other_kind},
      {"anys", {vector}, {scalar, string, small, source, table, any}, other_kind},
      {"spot",
       {small},
       {scalar, string, bytes(4), source, table, any, vector},
       " is not a struct of its size"},
      {"bytes", {small, source}, {scalar, string, table, any, vector}, " is not a whole number of elements"},
  };
  for (const Expectation& each : expectations) {
    CAPTURE(each.field);
    for (const FieldValue& value : each.fitting) CHECK(pack_field(each.field, value).has_value());
    for (const FieldValue& value : each.others) {
      CAPTURE(value.index());
      check_refused(pack_field(each.field, value), "Root." + each.field + each.message);
    }
  }
}

TEST_CASE("a_member_that_the_union_does_not_have_is_refused") {
  for (const unsigned type : {1U, 5U}) {
    CHECK(pack_field("any", UnionValue{static_cast<std::uint8_t>(type), {}}).has_value());
  }
  const std::string message = "Root.any is not of the kind that the schema says";
  for (const unsigned type : {0U, 2U, 4U, 6U, 255U}) {
    CAPTURE(type);
    check_refused(pack_field("any", UnionValue{static_cast<std::uint8_t>(type), {}}), message);
  }
  const auto holding = [](std::uint8_t type, const FieldValue& held) {
    return pack_field("any", UnionValue{type, {}}, [&](std::uint64_t) { return held; });
  };
  const FieldValue string = std::string_view("x");
  CHECK(holding(7, bytes(8)).has_value());
  CHECK(holding(8, string).has_value());
  check_refused(holding(7, bytes(4)), message);
  check_refused(holding(7, string), message);
  check_refused(holding(8, bytes(8)), message);
}

TEST_CASE("a_required_field_that_is_absent_is_refused") {
  for (const std::string type : {"string", "Leaf", "Any", "[ubyte]", "[Leaf]", "[string]"}) {
    CAPTURE(type);
    const Schema schema =
        schema_of("union Any { Leaf } table Leaf { number: int; } table Root { free: " + type +
                  "; needed: " + type + " (required); } root_type Root; file_identifier \"ERRS\";");
    OneFieldReader reader(schema, "free", FieldValue(AbsentValue{}));
    check_refused(pack(schema, reader), "Root.needed is required, but absent");
  }
}

TEST_CASE("a_scalar_vector_holds_a_whole_number_of_elements") {
  struct Width {
    std::string field;
    std::size_t bytes;
  };
  for (const Width& width : {Width{"shorts", 2}, Width{"floats", 4}, Width{"longs", 8}}) {
    for (std::size_t size = 0; size <= 3 * width.bytes; ++size) {
      CAPTURE(width.field);
      CAPTURE(size);
      for (const FieldValue& value : {bytes(size), FieldValue(ByteSource::zeros(size))}) {
        const auto plan = pack_field(width.field, value);
        if (size % width.bytes == 0) {
          CHECK(plan.has_value());
        } else {
          check_refused(plan, "Root." + width.field + " is not a whole number of elements");
        }
      }
    }
  }
}

TEST_CASE("an_element_of_the_wrong_kind_is_refused") {
  const auto element_of = [](const FieldValue& second) {
    return [second](std::uint64_t i) -> Result<FieldValue> {
      return i == 0 ? FieldValue(TableValue{}) : FieldValue(second);
    };
  };
  const auto string_of = [](const FieldValue& second) {
    return [second](std::uint64_t i) -> Result<FieldValue> {
      return i == 0 ? FieldValue(std::string_view("x")) : FieldValue(second);
    };
  };
  const std::string message = " has an element that is not of the kind that the schema says";
  const VectorValue two = {{}, 2};
  CHECK(pack_field("tables", two, element_of(TableValue{})).has_value());
  CHECK(pack_field("strings", two, string_of(std::string_view())).has_value());
  for (const FieldValue& wrong : {FieldValue(AbsentValue{}), FieldValue(ScalarValue{}), bytes(4),
                                  FieldValue(UnionValue{1, {}}), FieldValue(VectorValue{})}) {
    CAPTURE(wrong.index());
    check_refused(pack_field("tables", two, element_of(wrong)), "Root.tables" + message);
    check_refused(pack_field("strings", two, string_of(wrong)), "Root.strings" + message);
  }
  check_refused(pack_field("tables", two, element_of(std::string_view())), "Root.tables" + message);
  check_refused(pack_field("anys", two, element_of(TableValue{})),
                "Root.anys is not of the kind that the schema says");
  check_refused(pack_field("strings", two, string_of(TableValue{})), "Root.strings" + message);
}

TEST_CASE("a_vector_of_more_elements_than_a_file_has_bytes_is_refused_before_any_is_asked_for") {
  const Schema schema = schema_of(kSchema);
  OneFieldReader reader(schema, "strings", FieldValue(VectorValue{{}, std::uint64_t{1} << 31}));
  check_refused(pack(schema, reader), "Root.strings has too many elements");
  CHECK(reader.elements_asked() == 0);
  for (const std::string field : {"strings", "anys"}) {
    OneFieldReader most(schema, field, FieldValue(VectorValue{{}, kLargestFlatbuffer}));
    check_refused(pack(schema, most), "unexpectedly asked for an element");
  }
  OneFieldReader anys(schema, "anys", FieldValue(VectorValue{{}, std::uint64_t{1} << 31}));
  check_refused(pack(schema, anys), "Root.anys is not of the kind that the schema says");
}

TEST_CASE("an_error_of_the_reader_is_passed_on_as_it_is") {
  const Error error{ErrorCode::kIo, "the tape is torn"};
  const auto check_passed_on = [&](const Result<FilePlan>& plan) {
    REQUIRE_FALSE(plan.has_value());
    CHECK(plan.error().code == error.code);
    CHECK(plan.error().message == error.message);
  };
  const Schema schema = schema_of(kSchema);
  for (const std::string field : {"scalar", "string", "longs"}) {
    OneFieldReader reader(schema, field, Result<FieldValue>(error));
    check_passed_on(pack(schema, reader));
  }
  for (const std::string field : {"tables", "strings"}) {
    check_passed_on(pack_field(field, VectorValue{{}, 2}, [&](std::uint64_t) { return error; }));
  }
}

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
}  // namespace etstream::testing::packer_errors_test
