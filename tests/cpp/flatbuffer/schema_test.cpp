// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/schema.h"

#include <doctest/doctest.h>
#include <flatbuffers/idl.h>
#include <flatbuffers/reflection_generated.h>
#include <flatbuffers/util.h>

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "bundled_program_bfbs_generated.h"
#include "etstream/byte_source.h"
#include "flat_tensor_bfbs_generated.h"
#include "native_graph_bfbs_generated.h"
#include "program_bfbs_generated.h"
#include "seeded_random.h"
#include "segmented_bundle_bfbs_generated.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_paths.h"
#include "test_sources.h"
#include "vulkan_graph_bfbs_generated.h"
#include "xnnpack_graph_bfbs_generated.h"

namespace etstream::schema_test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes embedded() {
  using Binary = bundled_program::BundledProgramBinarySchema;
  const auto bytes = std::as_bytes(std::span(Binary::data(), Binary::size()));
  return {bytes.begin(), bytes.end()};
}

Schema schema_of(const Bytes& bfbs) {
  auto schema = Schema::from_binary(bfbs);
  REQUIRE_MESSAGE(schema, schema.error().message);
  return std::move(schema).value();
}

/// Returns the binary form of a schema's text.
Bytes compiled(const std::string& text) {
  flatbuffers::IDLOptions options;
  options.binary_schema_builtins = true;
  options.lang_to_generate = flatbuffers::IDLOptions::kCpp;  // which has unions of more than tables
  flatbuffers::Parser parser(options);
  REQUIRE_MESSAGE(parser.Parse(text.c_str()), parser.error_);
  parser.Serialize();
  const auto bytes = std::as_bytes(std::span(parser.builder_.GetBufferPointer(), parser.builder_.GetSize()));
  return {bytes.begin(), bytes.end()};
}

const FieldType& field_of(const Schema& schema, std::string_view table, std::string_view field) {
  const auto table_index = schema.find_table(table);
  REQUIRE(table_index);
  const auto field_index = schema.find_field(*table_index, field);
  REQUIRE(field_index);
  return schema.tables()[*table_index].fields[*field_index];
}

/// Returns a declaration of a binary schema.
const reflection::Object* object_of(const Bytes& bfbs, const char* name) {
  return reflection::GetSchema(bfbs.data())->objects()->LookupByKey(name);
}
const reflection::Field* declared(const Bytes& bfbs, const char* object, const char* field) {
  return object_of(bfbs, object)->fields()->LookupByKey(field);
}

/// Changes a number that `table`, a table of a binary schema, has.
template <class T>
void patch(const void* table, flatbuffers::voffset_t field, T value) {
  auto* const patched = static_cast<flatbuffers::Table*>(const_cast<void*>(table));
  REQUIRE(patched->CheckField(field));
  patched->SetField<T>(field, value, 0);
}

/// Returns whether a packer can use every index and width in `schema`.
bool is_sound(const Schema& schema) {
  const std::size_t tables = schema.tables().size();
  if (schema.root_index() >= tables || (!schema.identifier().empty() && schema.identifier().size() != 4))
    return false;
  for (const TableType& table : schema.tables()) {
    for (std::size_t i = 0; i < table.fields.size(); ++i) {
      const FieldType& field = table.fields[i];
      const bool is_table = field.kind == FieldKind::kTable || field.kind == FieldKind::kTableVector;
      const bool has_width = field.kind == FieldKind::kScalar;
      if (field.id != i || (is_table && field.type >= tables)) return false;
      if (field.kind == FieldKind::kUnion && field.type >= schema.unions().size()) return false;
      if (has_width && field.width != 1 && field.width != 2 && field.width != 4 && field.width != 8)
        return false;
      if (field.alignment == 0 || field.alignment > 65536 || (field.alignment & (field.alignment - 1)) != 0)
        return false;
    }
  }
  for (const UnionType& type : schema.unions()) {
    for (const auto& member : type.members) {
      if (member && member->kind == FieldKind::kTable && member->type >= tables) return false;
    }
  }
  return true;
}

TEST_CASE("a name that the schema has not is not found") {
  const Schema schema = schema_of(embedded());
  CHECK_FALSE(schema.find_table("Program").has_value());
  CHECK_FALSE(schema.find_table("").has_value());
  CHECK_FALSE(schema.find_field(schema.root_index(), "sizes").has_value());
}

TEST_CASE("a schema without a root is corrupt") {
  CHECK(error_of(Schema::from_binary(compiled("table T { x:int; } file_identifier \"TEST\";"))) ==
        "kCorrupt: schema: it declares no root_type");
}

TEST_CASE("what is no binary schema is corrupt") {
  CHECK(error_of(Schema::from_binary({})) == "kCorrupt: schema: not a binary FlatBuffers schema (.bfbs)");
  CHECK(code_of(Schema::from_binary(bytes_of("BFBS"))) == "kCorrupt");
  CHECK(code_of(Schema::from_binary(bytes_of("table T { x:int; } root_type T;"))) == "kCorrupt");
  CHECK(code_of(Schema::from_binary(bytes_of(patterned(5000)))) == "kCorrupt");
  CHECK(code_of(Schema::from_binary(bytes_of(std::string(5000, '\0')))) == "kCorrupt");
}

TEST_CASE("a schema that declares a name twice is corrupt") {
  struct Row {
    std::string text;  // that has N1 and N2
    std::string where;
  };
  const std::vector<Row> rows = {
      {"table N1 {} table N2 {}", "it"},
      {"enum N1 : int { A } table N2 {}", "it"},
      {"table A { N1: int; N2: int; }", "A"},
      {"struct A { N1: int; N2: int; }", "A"},
      {"enum A : int { N1, N2 }", "A"},
      {R"(attribute "N1"; attribute "N2"; table A (N1, N2) {})", "A"},
      {R"(attribute "N1"; attribute "N2"; table A { f: int (N1, N2); })", "f"},
      {R"(attribute "N1"; attribute "N2"; enum A : int (N1, N2) { V })", "A"},
      {"rpc_service N1 { M(T): T; } rpc_service N2 { M(T): T; }", "it"},
      {"rpc_service A { N1(T): T; N2(T): T; }", "A"},
      {R"(attribute "N1"; attribute "N2"; rpc_service A { M(T): T (N1, N2); })", "M"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    std::string bfbs = text_of(compiled("table T {} " + row.text + " root_type T;"));
    REQUIRE(Schema::from_binary(bytes_of(bfbs)));
    const std::size_t at = bfbs.find("N2");
    REQUIRE(at != std::string::npos);
    bfbs.replace(at, 2, "N1");
    CHECK(error_of(Schema::from_binary(bytes_of(bfbs))) ==
          exactly("kCorrupt: schema: " + row.where + " declares 'N1' twice"));
  }
}

TEST_CASE("a truncated schema is an error, or lacks nothing but padding") {
  const Bytes whole = embedded();
  constexpr std::size_t kMostPadding = 8;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // A copy of its own, so that a sanitizer sees a read past its end.
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const auto schema = Schema::from_binary(cut);
    if (size + kMostPadding < whole.size()) {
      REQUIRE_MESSAGE(!schema, size);
    } else if (schema) {
      REQUIRE_MESSAGE(is_sound(*schema), size);
    }
  }
}

TEST_CASE("a schema with any one byte changed is an error or sound") {
  Bytes bfbs = embedded();
  std::uint64_t refused = 0;
  for (std::size_t i = 0; i < bfbs.size(); ++i) {
    if (!testing::is_tried(i)) continue;
    const std::byte before = bfbs[i];
    for (const unsigned value : {0x00U, 0x01U, 0x7fU, 0x80U, 0xffU}) {
      bfbs[i] = static_cast<std::byte>(value);
      const auto schema = Schema::from_binary(bfbs);
      if (!schema) ++refused;
      if (schema) REQUIRE_MESSAGE(is_sound(*schema), i);
    }
    bfbs[i] = before;
  }
  CHECK(refused > 50 * testing::rounds());
}

TEST_CASE("a forced alignment goes up to 65536") {
  const auto opened = [](const std::string& alignment) {
    return Schema::from_binary(
        compiled("table T { d: [ubyte] (force_align: " + alignment + "); } root_type T;"));
  };
  CHECK(field_of(opened("65536").value(), "T", "d").alignment == 65536);
  CHECK(error_of(opened("131072")) ==
        "kCorrupt: schema: field T.d: its force_align is not a power of two up to 65536");
}

TEST_CASE("an alignment is set where it is a power of two from the elements' size to 2^16") {
  Schema schema = schema_of(embedded());
  for (const std::uint64_t alignment : {1U, 2U, 32U, 4096U, 65536U}) {
    CAPTURE(alignment);
    CHECK(schema.set_alignment("BundledProgram", "program", alignment));
    CHECK(field_of(schema, "BundledProgram", "program").alignment == alignment);
  }
  CHECK(schema.set_alignment("Tensor", "sizes", 4));
  CHECK(schema.set_alignment("Tensor", "sizes", 64));
  CHECK(field_of(schema, "Tensor", "sizes").alignment == 64);
}

TEST_CASE("an alignment out of bounds, or of what has none, is refused and changes nothing") {
  struct Row {
    std::string table;
    std::string field;
    std::uint64_t alignment;
  };
  Schema schema = schema_of(embedded());
  for (const Row& row :
       {Row{"BundledProgram", "program", 0}, Row{"BundledProgram", "program", 3},
        Row{"BundledProgram", "program", 48}, Row{"BundledProgram", "program", 131072},
        Row{"BundledProgram", "program", std::uint64_t{1} << 32},
        Row{"BundledProgram", "program", UINT64_MAX}, Row{"Tensor", "sizes", 1}, Row{"Tensor", "sizes", 2},
        Row{"BundledProgram", "version", 8}, Row{"BundledProgram", "method_test_suites", 8},
        Row{"BundledMethodTestSuite", "method_name", 8}, Row{"BundledProgram", "nothing", 8},
        Row{"Nothing", "program", 8}}) {
    CAPTURE(row.table);
    CAPTURE(row.field);
    CAPTURE(row.alignment);
    CHECK(code_of(schema.set_alignment(row.table, row.field, row.alignment)) == "kInvalidArgument");
    CHECK(error_of(schema.set_alignment(row.table, row.field, row.alignment)) ==
          containing(row.table + "." + row.field));
  }
  CHECK(field_of(schema, "BundledProgram", "program").alignment == 32);
  CHECK(field_of(schema, "Tensor", "sizes").alignment == 4);
  CHECK(error_of(schema.set_alignment("Tensor", "sizes", 2)) ==
        "kInvalidArgument: alignment 2 of Tensor.sizes is not a power of two from 4 to 65536");
}

TEST_CASE("a field is added to a table that has none of its name") {
  Schema schema = schema_of(embedded());
  FieldType field;
  field.name = "version";
  CHECK(schema.add_field("Tensor", field));
  CHECK(error_of(schema.add_field("BundledProgram", field)) ==
        "kInvalidArgument: schema: there is no table BundledProgram without a field version");
  CHECK(code_of(schema.add_field("Nothing", field)) == "kInvalidArgument");
}

TEST_CASE("a name has at most 1 MiB, by either rule") {
  FieldType c_string;
  c_string.is_c_string = true;
  FieldType not_empty;
  not_empty.is_not_empty = true;
  const std::string longest(kLongestString, 'x');
  for (const FieldType& field : {c_string, not_empty}) {
    CHECK(unmet_rule(field, longest).empty());
    CHECK(unmet_rule(field, longest + 'x') == "a name of at most 1 MiB");
  }
  CHECK(unmet_rule({}, longest + 'x').empty());
}

TEST_CASE("an identifier has four bytes") {
  const std::string whole = text_of(compiled("table T {} root_type T; file_identifier \"TEST\";"));
  std::string changed = whole;
  changed.replace(changed.find(std::string("\4\0\0\0TEST", 8)), 8, std::string("\3\0\0\0TES\0", 8));
  CHECK(error_of(Schema::from_binary(bytes_of(changed))) ==
        "kCorrupt: schema: its file_identifier is not of 4 bytes");
}

TEST_CASE("a field of unions comes behind one of their types") {
  const auto refusal = [](const char* field, auto patch_field) {
    const Bytes bfbs = compiled("table A {} union U { A } table T { u: U; v: [U]; } root_type T;");
    patch_field(declared(bfbs, "T", field));
    return error_of(Schema::from_binary(bfbs));
  };
  const auto as_bytes = [](flatbuffers::voffset_t part) {
    return [part](const reflection::Field* field) {
      patch<std::int8_t>(field->type(), part, std::int8_t{reflection::UByte});
    };
  };
  CHECK(refusal("u_type", as_bytes(reflection::Type::VT_BASE_TYPE)) ==
        "kCorrupt: schema: field T.u has id 1, which does not fit its neighbours");
  CHECK(refusal("v_type", as_bytes(reflection::Type::VT_ELEMENT)) ==
        "kCorrupt: schema: field T.v has id 3, which does not fit its neighbours");
  CHECK(refusal("u", [](const reflection::Field* field) {
          patch<std::uint16_t>(field, reflection::Field::VT_ID, 0);
        }) == "kCorrupt: schema: field T.u has id 0, which does not fit its neighbours");
}

TEST_CASE("members of unions have numbers from 1 to 255") {
  const Bytes bfbs = compiled("table A {} union U { A = 255 } table T { u: U; } root_type T;");
  CHECK(schema_of(bfbs).unions().at(0).member(255) != nullptr);
  for (const std::int64_t number : {256, 0}) {
    CAPTURE(number);
    const auto* member = reflection::GetSchema(bfbs.data())->enums()->Get(0)->values()->Get(1);
    patch<std::int64_t>(member, reflection::EnumVal::VT_VALUE, number);
    CHECK(error_of(Schema::from_binary(bfbs)) ==
          "kCorrupt: schema: member A of union U is not a table, a struct or a string, of a number from 1 to "
          "255");
  }
}

TEST_CASE("a struct has from 1 to 65535 bytes") {
  const auto opened = [](const std::string& members) {
    return Schema::from_binary(compiled("struct S { " + members + " } union U { S } " +
                                        "table A { s: S; } table B { u: U; } root_type A;"));
  };
  CHECK(field_of(opened("a: byte;").value(), "A", "s").width == 1);
  CHECK(field_of(opened("a: [ubyte: 65535];").value(), "A", "s").width == 65535);
  CHECK(error_of(opened("a: [ubyte: 65535]; b: byte;")) == "kCorrupt: schema: field A.s is no sound struct");
  const std::string large = "struct S { a: [ubyte: 65535]; b: byte; } union U { S } table T { u: U; } ";
  CHECK(error_of(Schema::from_binary(compiled(large + "root_type T;"))) ==
        containing("schema: member S of union U is not a table, a struct or a string"));
  const Bytes none = compiled("struct S { a: byte; } table A { s: S; } root_type A;");
  patch<std::int32_t>(object_of(none, "S"), reflection::Object::VT_BYTESIZE, 0);
  CHECK(error_of(Schema::from_binary(none)) == "kCorrupt: schema: field A.s is no sound struct");
}

TEST_CASE("structs are nested as deep as tables, and no deeper") {
  const auto opened = [](int levels) {
    std::string text = "struct S1 { x: int; } ";
    for (int i = 2; i <= levels; ++i) {
      text += "struct S" + std::to_string(i) + " { x: S" + std::to_string(i - 1) + "; } ";
    }
    return Schema::from_binary(
        compiled(text + "table T { s: S" + std::to_string(levels) + "; } root_type T;"));
  };
  CHECK(opened(64));
  CHECK(error_of(opened(65)) == "kCorrupt: schema: struct S65 is nested in itself, or too deep");
}

TEST_CASE("structs that hold themselves, or members beyond them, are corrupt") {
  const auto patched = [](std::uint16_t offset) {
    const Bytes bfbs =
        compiled("struct B { z: int; } struct A { x: int; y: B; } table T { a: A; } root_type T;");
    patch(declared(bfbs, "A", "y"), reflection::Field::VT_OFFSET, offset);
    return error_of(Schema::from_binary(bfbs));
  };
  CHECK(patched(4) == "no error");
  CHECK(patched(6) == "kCorrupt: schema: member A.y does not fit its struct");
  CHECK(patched(2) == "kCorrupt: schema: member A.y does not fit its struct");
  const Bytes bfbs =
      compiled("struct C { z: int; } struct B { y: C; } struct A { x: B; } table T { a: A; } root_type T;");
  const auto with_type = [&](std::int32_t index) {
    patch(declared(bfbs, "B", "y")->type(), reflection::Type::VT_INDEX, index);
    return error_of(Schema::from_binary(bfbs));
  };
  CHECK(with_type(0) == "kCorrupt: schema: struct A is nested in itself, or too deep");
  CHECK(with_type(4) ==  // there are four objects
        "kUnsupported: schema: member B.y is of a type that etstream does not know in a struct");
}

using Bytes = std::vector<std::byte>;

Schema schema_at(const std::string& path, const std::vector<std::string>& include_folders = {}) {
  const auto binary = compile_schema(path, include_folders);
  REQUIRE_MESSAGE(binary, binary.error().message);
  auto schema = Schema::from_binary(*binary);
  REQUIRE_MESSAGE(schema, schema.error().message);
  return std::move(schema).value();
}

/// Returns every table with its fields, for comparing.
std::string described(const Schema& schema) {
  std::string out = schema.identifier() + " " + schema.root().name;
  for (const TableType& table : schema.tables()) {
    out += "\n" + table.name;
    for (const FieldType& field : table.fields) {
      out += " " + field.name + ":" + std::to_string(static_cast<int>(field.kind)) + "," +
             std::to_string(field.width) + "," + std::to_string(field.alignment);
    }
  }
  return out;
}

TEST_CASE("a schema is compiled to what flatc makes of it") {
  using Binary = bundled_program::BundledProgramBinarySchema;
  const auto flatc = Schema::from_binary(std::as_bytes(std::span(Binary::data(), Binary::size())));
  REQUIRE(flatc);
  CHECK(described(schema_at(kSchemaDir + "/bundled_program.fbs")) == described(*flatc));
}

template <class Binary>
void check_against_flatc(const std::string& name) {
  CAPTURE(name);
  const auto flatcs = ByteSource::file(kFlatcSchemaDir + "/" + name + ".bfbs");
  REQUIRE(flatcs);
  const ByteSource embedded = ByteSource::memory(std::as_bytes(std::span(Binary::data(), Binary::size())));
  CHECK(text_of(embedded) == text_of(*flatcs));
}

TEST_CASE("embedded schemas are what flatc makes") {
  check_against_flatc<bundled_program::BundledProgramBinarySchema>("bundled_program");
  check_against_flatc<flat_tensor::FlatTensorBinarySchema>("flat_tensor");
  check_against_flatc<native_graph::ProgramBinarySchema>("native_graph");
  check_against_flatc<program::ProgramBinarySchema>("program");
  check_against_flatc<segmented_bundle::BundledProgramBinarySchema>("segmented_bundle");
  check_against_flatc<vulkan_graph::VkGraphBinarySchema>("vulkan_graph");
  check_against_flatc<xnnpack_graph::XNNGraphBinarySchema>("xnnpack_graph");
}

TEST_CASE("force_align is kept, also where FlatBuffers 2.0.8 would not take data for it") {
  const TemporaryFolder folder;
  put_file(folder / "s.fbs", "table A { data: [ubyte] (force_align: 4096); }\nroot_type A;");
  CHECK(schema_at(folder / "s.fbs").root().fields.at(0).alignment == 4096);
}

TEST_CASE("included schemas are found next to the file, in the folders, and next to the first of all") {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"}) std::filesystem::create_directory(folder / name);
  put_file(
      folder / "s.fbs",
      "include \"near.fbs\";\ninclude \"far.fbs\";\ntable S { x: Near; y: Far; z: Deep; }\nroot_type S;");
  put_file(folder / "near.fbs", "table Near { a: int; }");
  put_file(folder / "a/far.fbs", "include \"deep.fbs\";\ninclude \"near.fbs\";\ntable Far { a: Near; }");
  put_file(folder / "a/deep.fbs", "table Deep { a: int; }");
  put_file(folder / "b/far.fbs", "table Far { wrong: int; } table Deep { a: int; }");
  const Schema schema = schema_at(folder / "s.fbs", {folder / "a", folder / "b"});
  CHECK(schema.root().name == "S");
  CHECK(schema.find_field(schema.find_table("Far").value(), "a"));
}

TEST_CASE("a binary schema is given as it is") {
  const TemporaryFolder folder;
  const auto binary = compile_schema(kSchemaDir + "/program.fbs");
  REQUIRE(binary);
  put_file(folder / "s", {reinterpret_cast<const char*>(binary->data()), binary->size()});
  CHECK((compile_schema(folder / "s").value() == *binary));
  put_file(folder / "s", {"\0\0\0\0BFBS", 8});
  CHECK(compile_schema(folder / "s").value().size() == 8);
}

TEST_CASE("a schema's flatbuffers are called .bin, or what it says") {
  const TemporaryFolder folder;
  const auto extension = [&](const std::string& words) {
    put_file(folder / "s.fbs", "table A {} root_type A; " + words);
    return load_schema(folder / "s.fbs", {}).value().file_extension;
  };
  CHECK(extension("") == "bin");
  CHECK(extension("file_extension \"\";") == "bin");
  CHECK(extension("file_extension \"x\";") == "x");
}

TEST_CASE("an error in a schema is told with the file and the line that it is in") {
  const TemporaryFolder folder;
  const auto error_in = [&](const std::string& words) {
    put_file(folder / "s.fbs", words);
    return error_of(compile_schema(folder / "s.fbs"));
  };
  CHECK(error_in("table A {\n  a: int\n}") ==
        containing("kCorrupt: " + folder / "s.fbs" + ": line 3: expecting: ;"));
  put_file(folder / "i.fbs", "\n\ntable A { a: Nothing!; }");
  CHECK(error_in("include \"i.fbs\";") == containing("kCorrupt: " + folder / "i.fbs" + ": line 3: "));
  CHECK(error_in("\ninclude \"none.fbs\";") ==
        containing("kCorrupt: " + folder / "s.fbs" + ": line 2: unable to load include file: none.fbs"));
  // Includes of one size are read n (n + 3) / 2 times, which is 256 n for 509 of them.
  std::string many;
  for (int i = 1000; i < 1509; ++i) {
    put_file(folder / std::to_string(i) + ".fbs", "table T" + std::to_string(i) + " {}");
    many += "include \"" + std::to_string(i) + ".fbs\";";
  }
  CHECK(error_in(many + "table A {}") == "no error");
  put_file(folder / "1509.fbs", "table T1509 {}");
  many += "include \"1509.fbs\";";
  CHECK(error_in(many) == containing("the schema includes so many files, or one so often, that reading it"));
  CHECK(error_in(many) == containing("takes more than 256 times its size"));
  std::string spaces;
  for (int i = 0; i < 8192; ++i) spaces += "namespace n" + std::to_string(i) + ";";
  CHECK(compile_schema((put_file(folder / "n.fbs", spaces + "table A {}"), folder / "n.fbs")));
  const auto too_many = containing("the schema has more than 8192 namespaces");
  CHECK(error_in(spaces + "namespace m; table A {}") == too_many);
  put_file(folder / "o.fbs", "namespace o; table O {}");
  CHECK(error_in("include \"n.fbs\"; include \"o.fbs\";") == too_many);
  CHECK(error_in("include \"s.fbs\";\ntable A { b: B; }") == containing("type referenced but not defined"));
  CHECK(error_in("") == containing("input file is empty"));
  CHECK(error_in({"table\0A {}", 10}) == containing("a zero byte at offset 5"));
  CHECK(error_in("struct A (force_align: 64) { a: int; }") ==
        containing("unexpected force_align value '64'"));
  CHECK(error_in("table A { a: ulong = 9223372036854775807; }") == "no error");
  CHECK(error_in("table A { a: ulong = 9223372036854775808; }") ==
        containing("A.a has a default over 2^63 - 1"));
  CHECK(error_of(compile_schema(folder / "none")) == containing("kNotFound: "));
  CHECK(error_of(compile_schema(folder.path())) == containing("kInvalidArgument: "));
  std::filesystem::resize_file(folder / "s.fbs", 16 << 20);
  CHECK(error_of(compile_schema(folder / "s.fbs")) == containing("a zero byte at offset"));
  std::filesystem::resize_file(folder / "s.fbs", (16 << 20) + 1);
  CHECK(error_of(compile_schema(folder / "s.fbs")) == containing("kTooLarge: "));
  std::string loaded;  // by FlatBuffers itself, which takes any size
  CHECK(flatbuffers::LoadFile((folder / "s.fbs").c_str(), false, &loaded));
}

}  // namespace

}  // namespace etstream::schema_test
