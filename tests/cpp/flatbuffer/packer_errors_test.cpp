// SPDX-License-Identifier: BSD-3-Clause
//
// Values that the packer refuses, each with its message.
#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

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

TEST_CASE("a_required_field_that_is_absent_in_a_nested_table_is_refused_by_the_name_of_that_table") {
  const Schema schema = schema_of(R"(
    table Leaf { needed: string (required); }
    table Root { leaf: Leaf; }
    root_type Root; file_identifier "ERRS";)");
  OneFieldReader reader(schema, "leaf", FieldValue(TableValue{}));
  check_refused(pack(schema, reader), "Leaf.needed is required, but absent");
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

TEST_CASE("a_reader_that_runs_out_of_memory_is_an_error_not_an_exception") {
  const auto plan = pack_field("tables", VectorValue{{}, 1},
                               [](std::uint64_t) -> Result<FieldValue> { throw std::bad_alloc(); });
  REQUIRE_FALSE(plan.has_value());
  CHECK(plan.error().code == ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace etstream::testing::packer_errors_test
