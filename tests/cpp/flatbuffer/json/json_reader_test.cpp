// SPDX-License-Identifier: BSD-3-Clause
//
// The JSON that is accepted, the flatbuffers that it gives, and the JSON that is refused, each with its
// message.
#include <doctest/doctest.h>
#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "etstream/sink.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/json/json_value_reader.h"
#include "flatbuffer/json/json_writer.h"
#include "flatbuffer/random_schema.h"
#include "flatbuffer/schema_packer.h"
#include "test_files.h"
#include "written_plan.h"

namespace etstream::testing::json_reader_test {
namespace {

constexpr const char* kSchema = R"(
  enum Color : short { RED = -1, NONE, GREEN = 3, TEAL }
  enum Flags : ubyte (bit_flags) { A, B, C }
  struct Point { x: short; y: int; }
  struct Grid { cells: [ubyte: 2]; corners: [Point: 2]; tint: Color; }
  union Any { Leaf, Text: string, Spot: Point, More: Leaf = 9, Last: Leaf = 255 }
  table Leaf { number: int; }
  table Root {
    i8: byte; u8: ubyte; i64: long; u64: ulong; f32: float; f64: double;
    truth: bool; color: Color; flags: Flags; maybe: int = null;
    point: Point; grid: Grid; any: Any; many: [Any];
    text: string; texts: [string]; leaf: Leaf; leaves: [Leaf]; self: Root;
    bytes: [ubyte]; chars: [byte]; shorts: [short]; doubles: [double]; truths: [bool]; colors: [Color];
    points: [Point]; gone: int (deprecated);
  }
  root_type Root;
)";

const Schema& schema() {
  static const Schema kMade = Schema::from_binary(compile_schema(kSchema)).value();
  return kMade;
}

ByteSource source_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return ByteSource::owned({bytes.begin(), bytes.end()});
}

Result<FilePlan> pack_json(std::string_view json, const std::string& folder = "") {
  auto reader = read_json_values(schema(), source_of(json), folder);
  if (!reader) return std::move(reader).error();
  return pack(schema(), **reader);
}

std::string message_of(std::string_view json, const std::string& folder = "") {
  const auto plan = pack_json(json, folder);
  return plan ? "no error" : plan.error().message;
}

/// Returns the JSON of a flatbuffer, or the reason why there is none.
std::string json_of(const std::vector<std::byte>& file, const JsonOptions& options = {.compact = true}) {
  const auto view = FlatbufferView::open(schema(), ByteSource::memory(file), "file");
  if (!view) return view.error().message;
  const auto flaws = find_flaws_of_layout(*view);
  if (!flaws) return flaws.error().message;
  if (!flaws->empty()) return flaws->front().message;
  std::vector<std::byte> out;
  const auto written = write_json(*view, options, *open_memory_sink(out));
  if (!written) return written.error().message;
  return {reinterpret_cast<const char*>(out.data()), out.size() - 1};  // without the newline
}

/// Returns JSON that was packed and written as JSON again.
std::string rewritten(std::string_view json, const std::string& folder = "") {
  const auto plan = pack_json(json, folder);
  return plan ? json_of(bytes_of(*plan)) : plan.error().message;
}

TEST_CASE("every_form_of_a_value_is_read_and_its_exact_form_is_written") {
  struct Row {
    std::string json;
    std::string exact;
  };
  const std::vector<Row> rows = {
      {"{}", "{}"},
      {R"({"text": null, "leaf": null, "any": null, "any_type": null, "maybe": null, "gone": null})", "{}"},
      {R"({"i8": -128, "u8": 255})", R"({"i8":-128,"u8":255})"},
      {R"({"i64": -9223372036854775808, "u64": 18446744073709551615})",
       R"({"i64":-9223372036854775808,"u64":18446744073709551615})"},
      {R"({"u64": 9223372036854775808})", R"({"u64":9223372036854775808})"},
      {R"({"f32": 0.1, "f64": 0.1})", R"({"f32":0.1,"f64":0.1})"},
      {R"({"f32": 16777217, "f64": 9007199254740993})", R"({"f32":16777216.0,"f64":9007199254740992.0})"},
      {R"({"f64": 18446744073709551615})", R"({"f64":18446744073709551616.0})"},
      {R"({"f32": 3.4028235e38, "f64": 5e-324})", R"({"f32":3.4028235e+38,"f64":5e-324})"},
      {R"({"f32": "nan", "f64": "-inf"})", R"({"f32":"nan","f64":"-inf"})"},
      {R"({"f32": "nan:ffc00001", "f64": "nan:7ff0000000000001"})",
       R"({"f32":"nan:ffc00001","f64":"nan:7ff0000000000001"})"},
      {R"({"doubles": [-0.0, 1, "inf", 1e300]})", R"({"doubles":[-0.0,1.0,"inf",1e+300]})"},
      {R"({"truth": 1, "truths": [true, 0, 2]})", R"({"truth":true,"truths":[true,false,2]})"},
      {R"({"color": 3, "colors": ["RED", -1, 7]})", R"({"color":"GREEN","colors":["RED","RED",7]})"},
      {R"({"flags": "A C"})", R"({"flags":"A C"})"},
      {R"({"flags": 6})", R"({"flags":"B C"})"},
      {R"({"flags": 9})", R"({"flags":9})"},
      {R"({"maybe": 0, "i8": 0})", R"({"maybe":0})"},
      {R"({"point": {"y": 2, "x": 1}})", R"({"point":{"x":1,"y":2}})"},
      {R"({"point": "AQD/AAIAAAA="})", R"({"point":"AQD/AAIAAAA="})"},
      {R"({"point": "AQAAAAIAAAA="})", R"({"point":{"x":1,"y":2}})"},
      {R"({"grid": {"cells": [1, 2], "corners": [{"x": 1, "y": 2}, {"x": 3, "y": 4}], "tint": "RED"}})",
       R"({"grid":{"cells":[1,2],"corners":[{"x":1,"y":2},{"x":3,"y":4}],"tint":"RED"}})"},
      {R"({"points": [{"x": 1, "y": 2}], "shorts": [-1, 2]})",
       R"({"shorts":[-1,2],"points":[{"x":1,"y":2}]})"},
      {R"({"any": {"number": 5}, "any_type": "Leaf"})", R"({"any_type":"Leaf","any":{"number":5}})"},
      {R"({"any_type": 9, "any": {}})", R"({"any_type":"More","any":{}})"},
      {R"({"any_type": 255, "any": {}})", R"({"any_type":"Last","any":{}})"},
      {R"({"any_type": "NONE"})", "{}"},
      {R"({"any_type": "Text", "any": "words"})", R"({"any_type":"Text","any":"words"})"},
      {R"({"many": [{}, "b", {"x": 1, "y": 2}, {"number": 1}], "many_type": ["Leaf", 2, "Spot", "More"]})",
       R"({"many_type":["Leaf","Text","Spot","More"],"many":[{},"b",{"x":1,"y":2},{"number":1}]})"},
      {R"({"text": "", "texts": [], "leaves": [], "shorts": [], "bytes": [], "many": [], "many_type": []})",
       R"({"many_type":[],"many":[],"text":"","texts":[],"leaves":[],"bytes":"","shorts":[]})"},
      {R"({"text": "\u0000\"\\\n\u007f é😀"})", R"({"text":"\u0000\"\\\n\u007f é😀"})"},
      {R"({"texts": ["a", {"base64": "/w=="}, {"base64": "YQ=="}]})",
       R"({"texts":["a",{"base64":"/w=="},"a"]})"},
      {"{\"texts\":[\"" + std::string(127, 'a') + "\",\"" + std::string(128, 'b') + "\"]}",
       "{\"texts\":[\"" + std::string(127, 'a') + "\",\"" + std::string(128, 'b') + "\"]}"},
      {R"({"leaves": [{"number": 1}, {}, {"number": 3}]})", R"({"leaves":[{"number":1},{},{"number":3}]})"},
      {R"({"bytes": [0, 127, 128, 240, 255], "chars": [-128, -1, 0]})",
       R"({"bytes":"AH+A8P8=","chars":"gP8A"})"},
      {R"({"bytes": "AH+A/w=="})", R"({"bytes":"AH+A/w=="})"},
      {R"({"bytes": ["AH8=", "", "gP8="]})", R"({"bytes":"AH+A/w=="})"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.json);
    CHECK(rewritten(row.json) == row.exact);
    CHECK(rewritten(row.exact) == row.exact);
  }
}

TEST_CASE("what_is_wrong_is_named_with_its_line_and_path") {
  struct Row {
    std::string json;
    std::string message;
  };
  const std::vector<Row> rows = {
      {"[]", "line 1: expected an object, for table Root, found an array"},
      {"{",
       "line 1: not JSON: syntax error while parsing object key - unexpected end of input; expected string "
       "literal"},
      {"{\n\"colour\": 1}", "line 2: unknown key 'colour' in table Root"},
      {"{\n\"leaf\":\n{\"text\": 1}}", "line 3: leaf: unknown key 'text' in table Leaf"},
      {"{\"self\": {\"leaves\": [{},\n{\"number\": 1,\n\"number\": 1}]}}",
       "line 3: self.leaves[1]: 'number' comes twice"},
      {R"({"i8": 128})", "line 1: i8: expected an integer from -128 to 127, found 128"},
      {R"({"u8": -1})", "line 1: u8: expected an integer from 0 to 255, found -1"},
      {R"({"i64": 9223372036854775808})",
       "line 1: i64: expected an integer from -9223372036854775808 to 9223372036854775807, found "
       "9223372036854775808"},
      {R"({"u64": 18446744073709551616})", "line 1: an integer does not fit 64 bits"},
      {R"({"u64": 1.0})", "line 1: u64: expected an integer from 0 to 18446744073709551615, found 1.0"},
      {R"({"u8": "1"})", "line 1: u8: expected an integer from 0 to 255, found '1'"},
      {R"({"truth": 256})", "line 1: truth: expected true or false, found 256"},
      {R"({"f32": 3.5e38})",
       "line 1: f32: expected a number in the range of 4 bytes, 'nan', 'inf' or '-inf', found 3.5e+38"},
      {R"({"f32": "nan:7f800000"})",
       "line 1: f32: expected a number in the range of 4 bytes, 'nan', 'inf' or '-inf', found "
       "'nan:7f800000'"},
      {R"({"color": "BLUE"})",
       "line 1: color: expected a name in enum Color, or an integer from -32768 to 32767, found 'BLUE'"},
      {R"({"flags": "A  B"})",
       "line 1: flags: expected a name in enum Flags, or an integer from 0 to 255, found 'A  B'"},
      {R"({"point": {"x": 1}})", "line 1: point: there is no 'y', which struct Point needs"},
      {R"({"point": "AQD/"})", "line 1: point: expected an object, or base64 of 8 bytes, found 'AQD/'"},
      {R"({"grid": {"cells": [1], "corners": [], "tint": 0}})",
       "line 1: grid.cells: expected an array of 2 elements, found an array"},
      {R"({"any": {}})", "line 1: any: there is no 'any_type', which says what it is"},
      {R"({"any_type": "Leaf"})", "line 1: any_type: there is no 'any' that it tells of"},
      {R"({"any_type": "Branch", "any": {}})",
       "line 1: any_type: expected a member of union Any, found 'Branch'"},
      {R"({"any_type": 256, "any": {}})", "line 1: any_type: expected a member of union Any, found 256"},
      {R"({"any_type": 0, "any": {}})", "line 1: any: expected null, as its type is NONE, found an object"},
      {R"({"any_type": "Text", "any": 5})", "line 1: any: expected a string, found 5"},
      {R"({"many_type": ["Leaf"], "many": []})",
       "line 1: many_type: expected 0 types, one for each union, found 1"},
      {R"({"text": 5})", "line 1: text: expected a string, found 5"},
      {R"({"text": {"base64": "?"}})",
       R"(line 1: text: expected a string, or {"base64": "..."}, found an object)"},
      {R"({"texts": ["a", null]})", "line 1: texts[1]: expected a string, found null"},
      {"{\"leaves\": [{}, {},\n3]}", "line 2: leaves[2]: expected an object, found 3"},
      {"{\"shorts\": [1,\n2,\n32768]}",
       "line 3: shorts[2]: expected an integer from -32768 to 32767, found 32768"},
      {R"({"shorts": "AAAA"})", "line 1: shorts: expected an array, found 'AAAA'"},
      {R"({"bytes": "AAA"})", "line 1: bytes: expected base64, found 'AAA'"},
      {R"({"bytes": 5})", "line 1: bytes: expected an array or base64, found 5"},
      {R"({"bytes": ["AAAA", 1]})", "line 1: bytes[1]: expected base64, as what is before it, found 1"},
      {R"({"bytes": {"file": "missing"}})",
       "line 1: bytes.file: cannot open 'missing': No such file or directory"},
      {R"({"bytes": {"name": "x"}})", "line 1: bytes: unknown key 'name' in a range of a file"},
      {R"({"a\u001b": 1})", "line 1: unknown key 'a\\x1b' in table Root"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.json);
    CHECK(message_of(row.json) == "memory: " + row.message);
  }
  CHECK(message_of(R"({"many_type": [0], "many": [null]})") ==
        "Root.many is not of the kind that the schema says");
}

std::string nested(std::string_view open, std::string_view close, int depth) {
  std::string out;
  for (int i = 0; i < depth; ++i) out += open;
  out += "{}";
  for (int i = 0; i < depth; ++i) out += close;
  return out;
}

TEST_CASE("nesting_is_bounded") {
  const std::string deepest = nested(R"({"self":)", "}", 63);
  CHECK(rewritten(deepest) == deepest);
  CHECK(message_of(nested(R"({"self":)", "}", 64)) == "tables are nested deeper than 64, at Root");
  CHECK(message_of(nested("[", "]", 300)) == "memory: line 1: nested deeper than 256");
}

/// Notes how long the longest piece of a text is.
class PiecesSink final : public Sink {
 public:
  Result<void> reserve(std::uint64_t /*size*/) override { return {}; }
  Result<void> append(const ByteSource& source) override {
    longest = std::max(longest, source.size());
    ++pieces;
    return {};
  }
  Result<void> commit() override { return {}; }

  std::uint64_t longest = 0;
  int pieces = 0;
};

TEST_CASE("a_byte_vector_over_3_MiB_is_written_in_pieces") {
  const TemporaryFolder folder;
  constexpr std::uint64_t kWhole = 3 << 20;
  put_file(folder / "data", "");
  const std::string whole = "\"" + std::string(4 << 20, 'A') + "\"";
  for (const bool is_more : {false, true}) {
    std::filesystem::resize_file(folder / "data", kWhole + (is_more ? 1 : 0));
    const auto file = bytes_of(pack_json(R"({"bytes": {"file": "data"}})", folder.path()).value());
    const std::string exact = json_of(file);
    CHECK((exact == R"({"bytes":)" + (is_more ? "[" + whole + R"(,"AA=="])" : whole) + "}"));
    if (is_more) CHECK(difference(bytes_of(pack_json(exact).value()), file) == "");
  }
}

TEST_CASE("a_struct_may_be_larger_than_what_is_read_at_a_time") {
  const Schema schema =
      Schema::from_binary(compile_schema("struct S { a: [ulong: 7000]; } table R { of: [S]; } root_type R;"))
          .value();
  std::string numbers = "7";
  for (int i = 1; i < 7000; ++i) numbers += ",7";
  const std::string json = "{\"of\":[{\"a\":[" + numbers + "]},{\"a\":[" + numbers + "]}]}";
  const auto reader = read_json_values(schema, source_of(json), "").value();
  const auto file = bytes_of(pack(schema, *reader).value());
  std::vector<std::byte> out;
  const auto view = FlatbufferView::open(schema, ByteSource::memory(file), "file");
  REQUIRE(view);
  REQUIRE(write_json(*view, {.compact = true}, *open_memory_sink(out)));
  CHECK((std::string(reinterpret_cast<const char*>(out.data()), out.size()) == json + "\n"));
}

TEST_CASE("no_more_than_some_64_KiB_of_text_are_held_back") {
  std::string types;
  std::string members;
  for (int i = 0; i < 30'000; ++i) {
    types += i > 0 ? ",1" : "1";
    members += i > 0 ? ",{}" : "{}";
  }
  const auto file = bytes_of(pack_json("{\"many_type\": [" + types + "], \"many\": [" + members +
                                       "], \"bytes\": \"" + std::string(400'000, 'A') + "\"}")
                                 .value());
  PiecesSink sink;
  REQUIRE(write_json(FlatbufferView::open(schema(), ByteSource::memory(file), "file").value(), {}, sink));
  CHECK(sink.longest >= 64 << 10);
  CHECK(sink.longest <= 128 << 10);
  CHECK(sink.pieces > 8);
}

TEST_CASE("a_vector_may_be_a_range_of_a_file") {
  const TemporaryFolder folder;
  put_file(folder / "data", "0123456789");
  CHECK(rewritten(R"({"bytes": {"file": "data"}})", folder.path()) == R"({"bytes":"MDEyMzQ1Njc4OQ=="})");
  CHECK(rewritten(R"({"bytes": {"size": 3, "file": "data", "offset": 1}})", folder.path()) ==
        R"({"bytes":"MTIz"})");
  CHECK(rewritten(R"({"bytes": {"file": "data", "offset": 10}})", folder.path() + "/") == R"({"bytes":""})");
  CHECK(rewritten(R"({"shorts": {"file": "data", "offset": 6}})", folder.path()) ==
        R"({"shorts":[14134,14648]})");
  CHECK(rewritten(text(R"({{"bytes": {{"file": "{}/data", "offset": 9}}}})", folder.path()), "/none") ==
        R"({"bytes":"OQ=="})");
  CHECK(message_of(R"({"bytes": {"file": "data", "offset": 11}})", folder.path()) ==
        text("memory: line 1: bytes: expected a range of {}/data, which is of 10 bytes, found 0 from 11 on",
             folder.path()));
  CHECK(message_of(R"({"bytes": {"file": "data", "offset": 9, "size": 18446744073709551615}})",
                   folder.path()) == text("memory: line 1: bytes: expected a range of {}/data, which is of "
                                          "10 bytes, found 18446744073709551615 from 9 on",
                                          folder.path()));
  CHECK(message_of(R"({"bytes": {"file": "data", "offset": -1}})", folder.path()) ==
        "memory: line 1: bytes.offset: expected an integer from 0 to 18446744073709551615, found -1");
  CHECK(message_of(R"({"shorts": {"file": "data", "size": 3}})", folder.path()) ==
        "memory: line 1: shorts: expected a multiple of 2 bytes, found 3");
}

TEST_CASE("a_range_of_a_file_is_not_read_before_it_is_written") {
  const TemporaryFolder folder;
  constexpr std::uint64_t kSize = std::uint64_t{1} << 30;
  put_file(folder / "data", "");
  std::filesystem::resize_file(folder / "data", kSize);
  const auto plan = pack_json(R"({"doubles": {"file": "data"}})", folder.path());
  REQUIRE(plan);
  CHECK(plan->size > kSize);
  CHECK(plan->metadata_size < 1000);
}

TEST_CASE("vectors_over_a_size_are_left_in_the_file_they_lie_in") {
  const TemporaryFolder folder;
  const auto file = bytes_of(
      pack_json(
          R"({"bytes": [1, 2, 3, 4, 5], "doubles": [0.5], "points": [{"x": 1, "y": 2}], "shorts": [1, 2]})")
          .value());
  const std::string prefix = "in front";
  put_file(folder / "x.bin", prefix + std::string(reinterpret_cast<const char*>(file.data()), file.size()));
  JsonOptions options{
      .compact = true, .defaults = false, .references = JsonReferences{"x.bin", prefix.size(), 4}};
  const std::string json = json_of(file, options);
  CHECK(json.find("\"shorts\":[1,2]") != std::string::npos);
  CHECK(json.find(R"("bytes":{"file":"x.bin","offset":)") != std::string::npos);
  CHECK(json.find(R"("points":{"file":)") != std::string::npos);
  CHECK(difference(bytes_of(pack_json(json, folder.path()).value()), file) == "");
  options.references->file = "\xff";
  CHECK(json_of(file, options) == "file name '\\xff' is not UTF-8, as JSON needs it");
}

TEST_CASE("json_is_indented_by_two_spaces_and_scalars_stay_on_their_line") {
  const auto file = bytes_of(
      pack_json(
          R"({"shorts": [1, 2], "leaves": [{"number": 1}, {}], "point": {"x": 1, "y": 2}, "texts": ["a", "b"]})")
          .value());
  CHECK(json_of(file, {}) == R"({
  "point": {"x": 1, "y": 2},
  "texts": [
    "a",
    "b"
  ],
  "leaves": [
    {
      "number": 1
    },
    {}
  ],
  "shorts": [1, 2]
})");
}

TEST_CASE("absent_scalars_are_written_on_request_with_their_defaults") {
  const std::string json =
      json_of(bytes_of(pack_json("{}").value()), {.compact = true, .defaults = true, .references = {}});
  CHECK(json ==
        R"({"i8":0,"u8":0,"i64":0,"u64":0,"f32":0.0,"f64":0.0,"truth":false,"color":"NONE","flags":0})");
}

TEST_CASE("what_is_shared_over_and_over_is_not_written_over_and_over") {
  flatbuffers::FlatBufferBuilder builder;
  const auto bytes = builder.CreateVector(std::vector<std::uint8_t>(10'000));
  const auto field = [](std::string_view name) {
    const auto index = schema().find_field(schema().root_index(), name).value();
    return static_cast<flatbuffers::voffset_t>(4 + 2 * index);
  };
  flatbuffers::uoffset_t root = 0;
  for (int i = 0; i < 30; ++i) {
    const auto start = builder.StartTable();
    builder.AddOffset(field("bytes"), bytes);
    if (root != 0) builder.AddOffset(field("self"), flatbuffers::Offset<void>(root));
    root = builder.EndTable(start);
  }
  builder.Finish(flatbuffers::Offset<void>(root));
  const auto file = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  const std::string json = json_of({file.begin(), file.end()});
  CHECK(json.ends_with("expected objects that are shared at most 4 times on average, found more sharing"));
}

}  // namespace
}  // namespace etstream::testing::json_reader_test
