// SPDX-License-Identifier: BSD-3-Clause
//
// compile_schema SCHEMA.fbs BINARY.h FIELDS.h: makes the files by which the library knows a schema. BINARY.h
// has the binary schema, as flatc makes it with --bfbs-builtins, in a class <Root>BinarySchema in the
// schema's namespace. FIELDS.h has a struct <Table>Fields for each table, with a BoundField for each field,
// and a struct Fields of them all: the compiler then checks the names that the library uses. It runs while
// the library is built, so that no flatc has to be found.
#include <flatbuffers/idl.h>
#include <flatbuffers/util.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

namespace {

constexpr std::size_t kBytesInLine = 24;

std::string byte_list(std::span<const std::uint8_t> bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i % kBytesInLine == 0) out += "\n     ";
    out += ' ' + std::to_string(bytes[i]) + ',';
  }
  return out;
}

std::string namespace_of(const flatbuffers::StructDef& table) {
  std::string out;
  for (const std::string& part : table.defined_namespace->components) out += (out.empty() ? "" : "::") + part;
  return out;
}

/// Returns the name of a table as the name of a type: "XNNNodeConv" for "_XNNNodeConv".
std::string type_of(const std::string& table) { return table.substr(table.find_first_not_of('_')); }

/// Returns the name of a table as the name of a member: "e_value" for "EValue", "int_" for "Int".
std::string member_of(const std::string& table) {
  const auto is = [](int (*of_kind)(int), char letter) {
    return of_kind(static_cast<unsigned char>(letter)) != 0;
  };
  const std::string type = type_of(table);
  std::string out;
  for (std::size_t i = 0; i < type.size(); ++i) {
    const bool begins_word =
        is(std::isupper, type[i]) && i > 0 &&
        (!is(std::isupper, type[i - 1]) || (i + 1 < type.size() && is(std::islower, type[i + 1])));
    if (begins_word && out.back() != '_') out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(type[i])));
  }
  // The keywords of C++ that names of tables become.
  static constexpr std::string_view kKeywords[] = {"bool", "double", "int", "operator"};
  return std::find(std::begin(kKeywords), std::end(kKeywords), out) == std::end(kKeywords) ? out : out + '_';
}

std::string table_fields(const flatbuffers::StructDef& table) {
  const std::string type = type_of(table.name) + "Fields";
  std::string out = "struct " + type +
                    " : BoundTable {\n"
                    "  static constexpr std::string_view kName = \"" +
                    table.name +
                    "\";\n"
                    "  explicit " +
                    type + "(const Schema& schema) : BoundTable(schema, kName) {}\n";
  for (const flatbuffers::FieldDef* field : table.fields.vec) {
    out += "  BoundField " + field->name + " = field(\"" + field->name + "\");\n";
  }
  return out + "};\n\n";
}

std::string fields_header(const flatbuffers::Parser& parser) {
  std::string tables;
  std::string members;
  std::string bound;
  for (const flatbuffers::StructDef* table : parser.structs_.vec) {
    if (table->fixed) continue;
    const std::string member = member_of(table->name);
    tables += table_fields(*table);
    bound += (bound.empty() ? "" : ", ") + member + "(schema)";
    members += "  " + type_of(table->name) + "Fields " + member + ";\n";
  }
  const std::string name = namespace_of(*parser.root_struct_def_);
  return "// Made by compile_schema.\n"
         "#pragma once\n\n"
         "#include <string_view>\n\n"
         "#include \"flatbuffer/table_reader.h\"\n\n"
         "namespace " +
         name + " {\n\n" + tables +
         "/// The fields of all tables, bound to a schema, which outlives them.\n"
         "struct Fields {\n"
         "  explicit Fields(const Schema& schema) : " +
         bound + " {}\n" + members +
         "};\n\n"
         "}  // namespace " +
         name + "\n";
}

std::string binary_header(const flatbuffers::StructDef& root, std::span<const std::uint8_t> bytes) {
  return "// Made by compile_schema.\n"
         "#pragma once\n\n"
         "#include <cstddef>\n\n"
         "namespace " +
         namespace_of(root) +
         " {\n\n"
         "struct " +
         root.name +
         "BinarySchema {\n"
         "  static const unsigned char* data() noexcept { return kBytes; }\n"
         "  static std::size_t size() noexcept { return sizeof kBytes; }\n\n"
         " private:\n"
         "  alignas(8) static constexpr unsigned char kBytes[] = {" +
         byte_list(bytes) +
         "\n"
         "  };\n"
         "};\n\n"
         "}  // namespace " +
         namespace_of(root) + "\n";
}

int fail(const std::string& file, const std::string& why) {
  std::fprintf(stderr, "compile_schema: %s: %s\n", file.c_str(), why.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return fail("usage", "compile_schema SCHEMA.fbs BINARY.h FIELDS.h");
  const std::string schema = argv[1];
  std::string source;
  if (!flatbuffers::LoadFile(schema.c_str(), false, &source)) return fail(schema, "can't be read");

  flatbuffers::IDLOptions options;
  options.binary_schema_builtins = true;
  options.lang_to_generate = flatbuffers::IDLOptions::kBinary;
  // This keeps the folders of sources out of the output.
  options.project_root = flatbuffers::StripFileName(schema);
  flatbuffers::Parser parser(options);
  const char* include_folders[] = {options.project_root.c_str(), nullptr};
  if (!parser.Parse(source.c_str(), include_folders, schema.c_str())) {
    return fail(schema, parser.error_);
  }
  if (!parser.root_struct_def_) return fail(schema, "has no root_type");
  parser.Serialize();
  const std::span<const std::uint8_t> bytes(parser.builder_.GetBufferPointer(), parser.builder_.GetSize());
  const std::string headers[] = {binary_header(*parser.root_struct_def_, bytes), fields_header(parser)};
  for (int i = 0; i < 2; ++i) {
    const char* const output = argv[2 + i];
    if (!flatbuffers::SaveFile(output, headers[i], false)) return fail(output, "can't be written");
  }
  return 0;
}
