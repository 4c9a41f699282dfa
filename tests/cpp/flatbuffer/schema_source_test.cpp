// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/schema_source.h"

#include <doctest/doctest.h>
#include <flatbuffers/util.h>

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "bundled_program_bfbs_generated.h"
#include "etstream/byte_source.h"
#include "flat_tensor_bfbs_generated.h"
#include "flatbuffer/schema.h"
#include "native_graph_bfbs_generated.h"
#include "program_bfbs_generated.h"
#include "segmented_bundle_bfbs_generated.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_paths.h"
#include "test_sources.h"
#include "vulkan_graph_bfbs_generated.h"
#include "xnnpack_graph_bfbs_generated.h"

namespace etstream::schema_source_test {
namespace {

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
}  // namespace etstream::schema_source_test
