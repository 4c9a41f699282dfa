// SPDX-License-Identifier: BSD-3-Clause
//
// compile_schema SCHEMA.fbs OUT.h: makes the file by which the library embeds a schema. OUT.h has the binary
// schema, as flatc makes it with --bfbs-builtins, in a class <Root>BinarySchema in the schema's namespace. It
// runs while the library is built, so that no flatc has to be found.
#include <flatbuffers/idl.h>
#include <flatbuffers/util.h>

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

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

std::string header(const flatbuffers::StructDef& root, std::span<const std::uint8_t> bytes) {
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
  if (argc != 3) return fail("usage", "compile_schema SCHEMA.fbs OUT.h");
  const std::string schema = argv[1];
  const std::string output = argv[2];
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
  if (!flatbuffers::SaveFile(output.c_str(), header(*parser.root_struct_def_, bytes), false)) {
    return fail(output, "can't be written");
  }
  return 0;
}
