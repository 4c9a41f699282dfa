// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/flatbuffer_text.h"

#include <doctest/doctest.h>
#include <flatbuffers/idl.h>
#include <flatbuffers/reflection_generated.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/sink.h"
#include "flatbuffer/json/json_writer.h"
#include "flatbuffer/schema.h"
#include "seeded_random.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_sources.h"

namespace etstream::flatbuffer_text_test {
namespace {

using Bytes = std::vector<std::byte>;

/// All kinds of fields that a schema can have, except flatbuffers in flatbuffers.
constexpr const char* kSchema = R"(
namespace a.b;
enum Color : byte { Red, Green = 3 }
enum Flags : uint (bit_flags) { X, Y, Z }
struct Point { x: short; y: double; colors: [Color:3]; }
table Leaf { name: string (shared); more: [Leaf]; }
union Any { Leaf, Point, Text: string }
table Root {
  small: bool; huge: ulong = 9223372036854775806; low: long = -9223372036854775808; tiny: float = 1e-20;
  infinite: double = inf; color: Color = Green; flags: Flags = X; maybe: int = null; point: Point;
  data: [ubyte] (force_align: 16); wide: [double] (force_align: 32); points: [Point]; names: [string];
  any: Any; anys: [Any]; leaves: [Leaf]; gone: int (deprecated); last: string;
}
root_type Root;
file_identifier "TEST";
file_extension "tst";
)";

constexpr const char* kJson = R"({
  // flatc takes comments, names without quotes, and numbers in quotes
  last: "\u00e9\ttext", small: true, huge: 18446744073709551614, low: "0x10", color: "Red", flags: "X Z", maybe: 0,
  "point": {"x": -1, "y": 1e300, "colors": ["Red", 3, "Green"]}, tiny: 0.5,
  "data": [1, 2, 255], "wide": [0.1, -inf], "names": ["b", "a", ""], infinite: 0,
  "points": [{"x": 1, "y": 2, "colors": [0, 0, 0]}],
  "leaves": [{"name": "one"}, {"more": [{"name": "one"}, {}]}],
  "any_type": "Text", "any": "a string",
  "anys_type": ["Leaf", "Point"], "anys": [{"name": "one"}, {"x": 1, "y": 2, "colors": [0, 0, 0]}]
})";

flatbuffers::IDLOptions judge_options() {
  flatbuffers::IDLOptions out;
  out.lang_to_generate = flatbuffers::IDLOptions::kBinary;
  out.strict_json = true;
  out.output_default_scalars_in_json = true;
  return out;
}

/// FlatBuffers' parser, which has read the text of the schema.
struct Judge {
  flatbuffers::Parser parser{judge_options()};

  explicit Judge(const std::string& schema) { REQUIRE_MESSAGE(parser.Parse(schema.c_str()), parser.error_); }

  Bytes compiled(const std::string& json) {
    parser.opts.strict_json = false;
    REQUIRE_MESSAGE(parser.ParseJson(json.c_str()), parser.error_);
    parser.opts.strict_json = true;
    const auto bytes =
        std::as_bytes(std::span(parser.builder_.GetBufferPointer(), parser.builder_.GetSize()));
    return {bytes.begin(), bytes.end()};
  }
  [[nodiscard]] std::string text(const Bytes& flatbuffer) const {
    std::string out;
    REQUIRE(generate_text(parser, flatbuffer.data(), out));
    return out;
  }
};

struct Loaded {
  TemporaryFolder folder;
  FlatbufferText text;

  explicit Loaded(const std::string& schema) : text(open(folder, schema)) {}

  static FlatbufferText open(const TemporaryFolder& folder, const std::string& schema) {
    put_file(folder / "s.fbs", schema);
    auto out = FlatbufferText::open(folder / "s.fbs");
    REQUIRE_MESSAGE(out, out.error().message);
    return std::move(out).value();
  }
};

Bytes compiled(const FlatbufferText& schema, std::string_view json) {
  auto out = schema.compile(json);
  REQUIRE_MESSAGE(out, out.error().message);
  return std::move(out).value();
}

template <class T>
T number_at(const Bytes& bytes, std::size_t at) {
  T out{};
  REQUIRE(at + sizeof(T) <= bytes.size());
  std::memcpy(&out, bytes.data() + at, sizeof(T));
  return out;
}

TEST_CASE("exact JSON is laid out as flatc or Python's objects do it") {
  const TemporaryFolder folder;
  put_file(folder / "s.fbs", kSchema);
  const auto schema = ExactJson::open(folder / "s.fbs");
  REQUIRE_MESSAGE(schema, schema.error().message);
  const std::string json =
      R"({"small": true, "names": ["b", "a"], "leaves": [{"name": "one"}], "last": "z"})";
  const auto compiled = [&](FlatbufferOrder order) {
    const auto plan = schema->compile(ByteSource::memory(std::as_bytes(std::span(json))), "", order);
    REQUIRE_MESSAGE(plan, plan.error().message);
    Bytes out;
    REQUIRE(write(*plan, *open_memory_sink(out)));
    return out;
  };
  const auto expected = Judge(kSchema).compiled(json);
  const auto as_flatc = compiled(FlatbufferOrder::kFlatc);
  CHECK((as_flatc == expected));
  const auto as_python = compiled(FlatbufferOrder::kPython);
  CHECK((as_python != expected));
  const Loaded loaded(kSchema);
  CHECK(loaded.text.decompile(as_python).value() == loaded.text.decompile(as_flatc).value());
}

TEST_CASE("exact JSON is written of a sound flatbuffer alone, with or without its size before it") {
  const TemporaryFolder folder;
  const auto opened = [&](const std::string& schema) {
    put_file(folder / "s.fbs", schema);
    return ExactJson::open(folder / "s.fbs").value();
  };
  const auto exact = [](const ExactJson& schema, const Bytes& file, const ExactJsonOptions& options) {
    Bytes out;
    const auto written = schema.decompile(ByteSource::memory(file), options, *open_memory_sink(out));
    return written ? text_of(out) : written.error().message;
  };
  const ExactJson schema = opened(kSchema);
  Judge judge(kSchema);
  Bytes file = judge.compiled(R"({"data": [1, 2, 3], "last": "z"})");
  CHECK(exact(schema, file, {}) == "{\n  \"data\": \"AQID\",\n  \"last\": \"z\"\n}\n");
  put_file(folder / "x.tst", text_of(file));
  const std::string left_out = exact(schema, file, {.leave_out_over = 2, .file_name = "x.tst"});
  CHECK(left_out.find(R"("data": {"file": "x.tst", "offset": )") != std::string::npos);
  const auto again = schema.compile(source_of(left_out), folder.path());
  REQUIRE_MESSAGE(again, again.error().message);
  Bytes out;
  REQUIRE(write(*again, *open_memory_sink(out)));
  CHECK((out == file));
  judge.parser.opts.size_prefixed = true;
  CHECK(exact(schema, judge.compiled(kJson), {.size_prefixed = true}) ==
        exact(schema, compiled(Loaded(kSchema).text, kJson), {}));

  const ExactJson less = opened("table T { a: int; } root_type T;");
  const Loaded more("table T { a: int; b: int; } root_type T;");
  CHECK(exact(less, compiled(more.text, "{b: 1}"), {.identifier = false})
            .ends_with("; a schema that has all of its fields loses none"));
  const std::string of_unions = "table X {} union U { X } table T { u: U; } root_type T;";
  Bytes typeless = compiled(Loaded(of_unions).text, "{u_type: 1, u: {}}");
  REQUIRE(flatbuffers::GetMutableRoot<flatbuffers::Table>(typeless.data())->SetField<std::uint8_t>(4, 0, 0));
  CHECK(exact(opened(of_unions), typeless, {.identifier = false})
            .ends_with("expected a type of the value in T.u, found none"));
}

TEST_CASE("JSON becomes the flatbuffer and the text that FlatBuffers makes with the schema's text") {
  const Loaded loaded(kSchema);
  Judge judge(kSchema);
  for (const std::string json :
       {kJson, "{}", R"({"huge": 9223372036854775806, "tiny": 1e-20, "infinite": "inf"})"}) {
    const Bytes flatbuffer = compiled(loaded.text, json);
    CHECK((flatbuffer == judge.compiled(json)));
    const auto text = loaded.text.decompile(flatbuffer);
    REQUIRE_MESSAGE(text, text.error().message);
    CHECK(*text == judge.text(flatbuffer));
    const auto loose = loaded.text.decompile(flatbuffer, {.strict_json = false, .defaults = false});
    REQUIRE_MESSAGE(loose, loose.error().message);
    judge.parser.opts.strict_json = judge.parser.opts.output_default_scalars_in_json = false;
    CHECK(*loose == judge.text(flatbuffer));
    judge.parser.opts = judge_options();
  }
  CHECK(loaded.text.file_extension() == "tst");
  CHECK(Loaded("table T {} root_type T;").text.file_extension() == "bin");
}

TEST_CASE("names need no quotes, whatever was made text before") {
  const Loaded loaded("table T { of: int; } root_type T;");
  const Bytes flatbuffer = compiled(loaded.text, "{of: 1,}");
  REQUIRE(loaded.text.decompile(flatbuffer, {.identifier = false}).value() == "{\n  \"of\": 1\n}\n");
  CHECK((compiled(loaded.text, "{of: 1,}") == flatbuffer));
}

/// A table for each type of key, and one with vectors of them.
constexpr const char* kKeyed = R"(
struct S { before: byte; k: short (key); v: int; }
table String { v: int; k: string (key); } table Byte { k: byte (key); v: int; } table Bool { k: bool (key); v: int; }
table Long { k: long = -3 (key); v: int; } table Ulong { k: ulong = 7 (key); v: int; }
table Int { v: int; k: int (key); } table Uint { k: uint (key); v: int; } table Ushort { k: ushort (key); v: int; }
table Float { k: float (key); v: int; } table Double { k: double (key); v: int; }
union Any { Root, S, Text: string }
table Root { string: [String]; byte: [Byte]; bool: [Bool]; long: [Long]; ulong: [Ulong]; int: [Int]; uint: [Uint];
             ushort: [Ushort]; float: [Float]; double: [Double]; s: [S]; any: Any; anys: [Any]; one: Root; more: [Root]; }
root_type Root;
)";

/// Makes vectors of up to 40 elements, whose keys repeat, and have bits and signs at both ends of their type.
std::string keyed_object(std::mt19937& random, const std::string& more) {
  struct Keyed {
    std::string field;
    unsigned bits;
  };
  std::string out = "{" + more;
  for (const auto& [field, bits] : std::vector<Keyed>{{"string", 8},
                                                      {"byte", 8},
                                                      {"bool", 1},
                                                      {"long", 64},
                                                      {"ulong", 64},
                                                      {"int", 32},
                                                      {"uint", 32},
                                                      {"ushort", 16},
                                                      {"float", 32},
                                                      {"double", 64},
                                                      {"s", 16}}) {
    out += (out == "{" ? "" : ",") + field + ": [";
    for (std::uint64_t i = random() % 40; i > 0; --i) {
      const std::uint64_t size = random() % (bits == 1 ? 2 : 5);
      const std::string sign = bits > 1 && field.front() != 'u' && random() % 2 == 0 ? "-" : "";
      std::string key = sign + std::to_string(size << (bits > 1 && random() % 2 == 0 ? bits - 4 : 0));
      if (field == "string") key = "\"" + std::string(random() % 3, 'x') + key + "\"";
      if (field == "double" && random() % 2 == 0) key += "e-300";
      out += "{k: " + key + ", v: " + std::to_string(i) + (field == "s" ? ", before: 1}" : "}") +
             (i > 1 ? "," : "");
    }
    out += "]";
  }
  return out + "}";
}

TEST_CASE("vectors are sorted by their keys as flatc sorts them, equal ones in its order") {
  const Loaded loaded(kKeyed);
  Judge judge(kKeyed);
  std::mt19937 random(1);  // NOLINT: the same ones each time
  for (std::uint64_t i = 0; i < 3 * testing::rounds(); ++i) {
    CAPTURE(i);
    const std::string inner = keyed_object(random, "");
    const std::string json = keyed_object(
        random, "any_type: \"Root\", any: " + inner + ", anys_type: [\"Text\", \"Root\"], anys: [\"t\", " +
                    inner + "], one: " + inner + ", more: [{}, " + inner + "]");
    CHECK((compiled(loaded.text, json) == judge.compiled(json)));
  }
}

TEST_CASE("long vectors are sorted as flatc sorts them, equal keys in its order") {
  const std::string schema = "table T { k: int (key); v: int; } table R { of: [T]; } root_type R;";
  const Loaded loaded(schema);
  Judge judge(schema);
  std::mt19937 random(1);  // NOLINT: the same ones each time
  std::string json = "{of: [";
  for (int i = 0; i < 3000; ++i) {
    json += (i > 0 ? ",{k: " : "{k: ") + std::to_string(random() % 1000) + ", v: " + std::to_string(i) + "}";
  }
  json += "]}";
  CHECK((compiled(loaded.text, json) == judge.compiled(json)));
}

TEST_CASE("equal keys are in flatc's order as long as it compares each at most 64 times on average") {
  const std::string schema = "table T { k: int (key); v: int; } table R { of: [T]; } root_type R;";
  const Loaded loaded(schema);
  Judge judge(schema);
  struct Row {
    int equal;
    bool has_larger;  // behind them
    bool is_as_flatc;
  };
  for (const Row& row : {Row{127, false, true}, Row{128, false, false}, Row{128, true, true}}) {
    CAPTURE(row.equal);
    std::string json = "{of: [";
    for (int i = 0; i < row.equal; ++i) json += "{k: 1, v: " + std::to_string(i) + "},";
    json += row.has_larger ? "{k: 2}]}" : "]}";
    CHECK((compiled(loaded.text, json) == judge.compiled(json)) == row.is_as_flatc);
  }
}

TEST_CASE("many equal keys, which would take flatc hours, stay in the order of the JSON") {
  const Loaded loaded("table T { k: string (key); v: int; } table R { of: [T]; } root_type R;");
  std::string json = "{of: [{k: \"b\", v: 300000}";
  for (int i = 1; i < 300'000; ++i) json += ",{k: \"a\", v: " + std::to_string(i) + "}";
  const auto text = loaded.text.decompile(compiled(loaded.text, json + "]}"), {.identifier = false});
  REQUIRE_MESSAGE(text, text.error().message);
  int found = 0;
  bool in_order = true;
  for (std::size_t at = 0; (at = text->find("\"v\": ", at + 1)) != std::string::npos;) {
    in_order &= std::atoi(text->c_str() + at + 5) == ++found;
  }
  CHECK(found == 300'000);
  CHECK(in_order);
}

TEST_CASE("schemas on which FlatBuffers' parser would fail are refused") {
  const auto refusal = [](const std::string& schema) {
    const TemporaryFolder folder;
    put_file(folder / "s.fbs", schema);
    return error_of(FlatbufferText::open(folder / "s.fbs"));
  };
  std::string wide = "table Wide {";
  for (int i = 0; i < 16'375; ++i) wide += "f" + std::to_string(i) + ": int;";
  CHECK(Loaded(wide + "a: byte; b: byte; c: byte; } root_type Wide;").text.compile("{}"));
  CHECK(refusal(wide + "a: int; } root_type Wide;") ==
        containing("'Wide' has fields for more than the 64 KiB of a table"));
  CHECK(refusal("table T { k: int (key); n: [ubyte] (nested_flatbuffer: \"T\"); } root_type T;") ==
        containing("a key in a schema with a flatbuffer in another, T.n"));
  // flatc makes no such binary schema.
  const TemporaryFolder folder;
  put_file(folder / "s.fbs", "struct S { a: int; b: int; } table T { s: S; } root_type T;");
  Bytes binary = compile_schema(folder / "s.fbs", {}).value();
  const auto* const objects = reflection::GetSchema(binary.data())->objects();
  auto* const b = const_cast<reflection::Field*>(objects->LookupByKey("S")->fields()->LookupByKey("b"));
  for (const std::uint16_t id : {std::uint16_t{0}, std::uint16_t{2}}) {
    REQUIRE(reinterpret_cast<flatbuffers::Table*>(b)->SetField(reflection::Field::VT_ID, id, {}));
    CHECK(refusal(text_of(binary)) == containing("'S' has not one field for each id"));
  }
}

TEST_CASE("a flatbuffer with its size before it has the same text") {
  const Loaded loaded(kSchema);
  Judge judge(kSchema);
  judge.parser.opts.size_prefixed = true;
  const Bytes prefixed = judge.compiled(kJson);
  const auto text = loaded.text.decompile(prefixed, {.size_prefixed = true});
  REQUIRE_MESSAGE(text, text.error().message);
  CHECK(*text == judge.text(prefixed));
  CHECK(error_of(loaded.text.decompile(prefixed)) == containing("expected identifier 'TEST'"));
  for (std::size_t size = 0; size < prefixed.size(); ++size) {
    CHECK_FALSE(loaded.text.decompile(std::span(prefixed).first(size), {.size_prefixed = true}));
  }
}

TEST_CASE("a file without the identifier is taken where that is asked for") {
  const Loaded loaded(kSchema);
  Bytes flatbuffer = compiled(loaded.text, kJson);
  const std::string text = loaded.text.decompile(flatbuffer).value();
  flatbuffer[4] = std::byte{'X'};
  Bytes no_text = compiled(loaded.text, R"({"last": "~"})");
  *std::ranges::find(no_text, std::byte{'~'}) = std::byte{0xff};
  CHECK(error_of(loaded.text.decompile(no_text, {}, "x.tst")) ==
        "kCorrupt: x.tst: a string that is not UTF-8, or nothing in a vector of unions");
  CHECK(error_of(loaded.text.decompile(flatbuffer, {}, "x.tst")) ==
        containing("kCorrupt: x.tst: offset 4: expected identifier 'TEST', found 'XEST'"));
  CHECK(loaded.text.decompile(flatbuffer, {.identifier = false}).value() == text);
  const Loaded anonymous("table T { a: int; } root_type T;");
  CHECK(error_of(anonymous.text.decompile(compiled(anonymous.text, "{}"))) ==
        containing("has no file_identifier to look for; identifier = false does without"));
}

TEST_CASE("vectors are aligned to more than FlatBuffers' parser takes") {
  const std::string kWide = R"(
    union Any { T, S: string }
    table T { name: string; d: [ubyte] (force_align: 32); e: [long] (force_align: 8); any: Any; anys: [Any]; n: [T];
              names: [string]; x: long; } root_type T; file_identifier "WIDE";)";
  const std::string json =
      R"({"name": "a name", "d": [1, 2, 3], "n": [{"e": [1, 2], "x": 1}, {"d": [], "e": []},
    {"d": [4], "any_type": "T", "any": {"e": [7], "names": ["x", "yy"]}, "x": 2}], "e": [5],
    "anys_type": ["S", "T"], "anys": ["s", {"d": [6], "x": 3}]})";
  const std::string text = Loaded(kWide).text.decompile(compiled(Loaded(kWide).text, json)).value();
  for (const std::size_t alignment : {64U, 256U, 4096U, 65536U}) {
    std::string schema = kWide;
    schema.replace(schema.find("32"), 2, std::to_string(alignment));
    const Loaded loaded(schema);
    const Bytes flatbuffer = compiled(loaded.text, json);
    CHECK(flatbuffer.size() % alignment == 0);
    CHECK(loaded.text.decompile(flatbuffer).value() == text);
    int found = 0;  // the data of `d`, behind its length, at multiples of what was asked for
    for (std::size_t at = alignment; at < flatbuffer.size(); at += alignment) {
      const auto length = number_at<std::uint32_t>(flatbuffer, at - 4);
      const auto first = static_cast<char>(flatbuffer[at]);
      found += (length == 3 && first == 1) || (length == 1 && (first == 4 || first == 6)) ? 1 : 0;
    }
    CHECK(found == 3);
  }
}

TEST_CASE("an error in JSON is told with its name and line, and the next call is none the worse") {
  const Loaded loaded(kSchema);
  const Bytes good = compiled(loaded.text, kJson);
  const auto error_in = [&](std::string_view json) {
    return error_of(loaded.text.compile(json, "data.json"));
  };
  CHECK(error_in("{\n\"small\": tru }") == containing("kCorrupt: data.json: line 2: "));
  CHECK(error_in("{\n\n\"nothing\": 1}") ==
        containing("kCorrupt: data.json: line 3: unknown field: nothing"));
  CHECK(error_in("{\"points\": [{\"x\": 1}]}") == containing("struct: wrong number of initializers"));
  CHECK(error_in("{} {}") == containing("kCorrupt: data.json: line 1: expecting: end of file"));
  CHECK(error_in("") == containing("input file is empty"));
  CHECK(error_in(std::string_view("{}\0{}", 5)) == containing("a zero byte at offset 2"));
  const std::string zeros(kLargestJson + 1, '\0');
  CHECK(error_in(zeros) == "kTooLarge: data.json: 256.0 MiB of JSON, at most 256.0 MiB can be compiled");
  CHECK(error_in(std::string_view(zeros).substr(1)) == containing("a zero byte at offset 0"));
  CHECK((compiled(loaded.text, kJson) == good));
  std::string deep = "{}";
  for (int i = 0; i < 70; ++i) deep = R"({"more": [)" + deep + "]}";
  CHECK(error_in(R"({"leaves": [)" + deep + "]}") == containing("maximum parsing depth "));
  CHECK((compiled(loaded.text, kJson) == good));
}

TEST_CASE("no truncation and no flipped bit of a flatbuffer makes a fault") {
  const Loaded loaded(kSchema);
  Bytes bytes = compiled(loaded.text, kJson);
  int refused = 0;
  for (std::size_t i = 0; i < 8 * bytes.size(); ++i) {
    bytes[i / 8] ^= std::byte{1} << (i % 8);
    refused += loaded.text.decompile(bytes) ? 0 : 1;
    bytes[i / 8] ^= std::byte{1} << (i % 8);
  }
  CHECK(refused > 100);
  for (std::size_t size = 0; size < bytes.size() / 2; ++size) {
    CHECK_FALSE(loaded.text.decompile(std::span(bytes).first(size)));
  }
}

TEST_CASE("a union with a value and no type is refused, of which the text would take another field's") {
  const Loaded loaded("table X { b: byte; } union U { X } table T { a: uint; u: U; } root_type T;");
  for (const bool has_field_before : {true, false}) {
    flatbuffers::FlatBufferBuilder builder;
    const auto value = builder.CreateString("\xff\xff\xff\xff");
    const auto start = builder.StartTable();
    if (has_field_before) builder.AddElement<std::uint32_t>(4, 1);
    builder.AddOffset(8, value);
    builder.Finish(flatbuffers::Offset<flatbuffers::Table>(builder.EndTable(start)));
    const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
    for (const bool defaults : {true, false}) {
      CHECK(error_of(loaded.text.decompile(bytes, {.defaults = defaults, .identifier = false})) ==
            containing("expected a type of the value in T.u, found none"));
    }
  }
}

TEST_CASE("schemas that can't be served are refused, and say why") {
  const TemporaryFolder folder;
  const auto error_of_schema = [&](const std::string& words) {
    put_file(folder / "s.fbs", words);
    return error_of(FlatbufferText::open(folder / "s.fbs"));
  };
  CHECK(error_of_schema("table T {}") == containing("s.fbs: "));
  CHECK(error_of_schema("table T { a: ulong = 9223372036854775808; } root_type T;") ==
        containing("s.fbs: T.a has a default over 2^63 - 1"));
  CHECK(error_of_schema(
            "table N {} table T { n: [ubyte] (nested_flatbuffer: \"N\"); d: [ubyte] (force_align: 64); } "
            "root_type T;") == containing("kUnsupported: "));
  const Loaded nested("table N {} table T { n: [ubyte] (nested_flatbuffer: \"N\"); } root_type T;");
  const Bytes flatbuffer = compiled(nested.text, R"({"n": {}})");
  CHECK(error_of(nested.text.decompile(flatbuffer, {.identifier = false})) ==
        containing("has a flatbuffer in another, T.n"));
}

}  // namespace
}  // namespace etstream::flatbuffer_text_test
