// SPDX-License-Identifier: BSD-3-Clause
//
// JSON of real files: ours gives their bytes again, and flatc's the same values.
#include <doctest/doctest.h>
#include <flatbuffers/idl.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "bundled_program_bfbs_generated.h"
#include "etstream/program.h"
#include "etstream/sink.h"
#include "flatbuffer/edited_values.h"
#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/json/json_value_reader.h"
#include "flatbuffer/json/json_writer.h"
#include "flatbuffer/schema_packer.h"
#include "golden_bundles.h"
#include "program_bfbs_generated.h"
#include "test_errors.h"
#include "test_paths.h"
#include "test_sources.h"

namespace etstream::json_flatbuffer_test {
namespace {

struct RealFile {
  std::string path;
  std::string_view schema;  // binary
  std::string bytes;        // of the flatbuffer
};

std::string read_file(const std::string& path) { return text_of(ByteSource::file(path).value()); }

template <class Binary>
std::string_view binary() {
  return {reinterpret_cast<const char*>(Binary::data()), Binary::size()};
}

std::vector<RealFile> real_files() {
  std::vector<RealFile> out;
  const auto add_program = [&](const std::string& path) {
    if (!std::filesystem::exists(path) || std::filesystem::file_size(path) < 100) return;
    const auto program = ProgramFile::open(ByteSource::file(path).value());
    if (!program) return;
    out.push_back({path, binary<program::ProgramBinarySchema>(),
                   read_file(path).substr(0, static_cast<std::size_t>(program->flatbuffer_size()))});
  };
  for (const std::string& folder : golden_folders()) {
    out.push_back({folder + "/expected.bpte", binary<bundled_program::BundledProgramBinarySchema>(),
                   read_file(folder + "/expected.bpte")});
    add_program(folder + "/program.pte");
  }
  add_program(kExamplesDir + "/model.pte");
  return out;
}

std::string written(const Result<FilePlan>& plan) {
  REQUIRE_MESSAGE(plan, plan.error().message);
  std::vector<std::byte> out;
  REQUIRE(write(*plan, *open_memory_sink(out)));
  return text_of(out);
}

std::string packed(const Schema& schema, std::string_view json) {
  const auto reader = read_json_values(schema, source_of(json), "");
  REQUIRE_MESSAGE(reader, reader.error().message);
  return written(pack(schema, **reader));
}

/// Returns the values of a flatbuffer in the packer's order. A program's extended header is none of them.
std::string packed_again(const FlatbufferView& view) {
  EditedValues reader(view, view.root().value());
  return written(pack(view.schema(), reader));
}

TEST_CASE("json of a real file becomes its bytes again") {
  int bundles = 0;
  int programs = 0;
  for (const RealFile& file : real_files()) {
    CAPTURE(file.path);
    const Schema schema = Schema::from_binary(std::as_bytes(std::span(file.schema))).value();
    const auto view = FlatbufferView::open(schema, source_of(file.bytes), file.path);
    REQUIRE(view);
    const bool is_bundle = schema.identifier() == "BP08";
    (is_bundle ? bundles : programs) += 1;
    const std::string expected = is_bundle ? file.bytes : packed_again(*view);
    for (const JsonOptions& options : {JsonOptions{}, JsonOptions{.compact = true, .defaults = true},
                                       JsonOptions{.references = JsonReferences{file.path, 0, 64}}}) {
      std::vector<std::byte> json;
      REQUIRE(write_json(*view, options, *open_memory_sink(json)));
      CHECK((packed(schema, text_of(json)) == expected));
    }
  }
  CHECK(bundles >= 5);
  CHECK(programs >= 2);
}

TEST_CASE("the json that flatc writes of a real file is read as the same values") {
  int compared = 0;
  for (const RealFile& file : real_files()) {
    CAPTURE(file.path);
    const Schema schema = Schema::from_binary(std::as_bytes(std::span(file.schema))).value();
    const auto view = FlatbufferView::open(schema, source_of(file.bytes), file.path);
    REQUIRE(view);
    flatbuffers::IDLOptions options;
    options.strict_json = true;
    options.output_default_scalars_in_json = true;
    flatbuffers::Parser parser(options);
    REQUIRE(
        parser.Deserialize(reinterpret_cast<const std::uint8_t*>(file.schema.data()), file.schema.size()));
    std::string json;
    REQUIRE(generate_text(parser, file.bytes.data(), json));
    // The text that it writes for those is no JSON.
    if (json.find(": nan") != std::string::npos || json.find(": inf") != std::string::npos) continue;
    CHECK((packed(schema, json) == packed_again(*view)));
    ++compared;
  }
  CHECK(compared >= 6);
}

TEST_CASE("the json that ExecuTorch writes of a program is read") {
  const auto view_of_json = [](std::string_view json) {
    const Schema schema =
        Schema::from_binary(std::as_bytes(std::span(binary<program::ProgramBinarySchema>()))).value();
    return packed(schema, json);
  };
  // ExecuTorch's _DataclassEncoder writes numbers for enums, lists for bytes, null for absent fields, and
  // unions first.
  const std::string theirs = view_of_json(R"({
    "version": 0, "execution_plan": [{"name": "forward", "container_meta_type": {"encoded_inp_str": "",
    "encoded_out_str": ""}, "values": [{"val": {"scalar_type": 6, "storage_offset": 0, "sizes": [2, 3],
    "dim_order": [0, 1], "requires_grad": false, "layout": 0, "data_buffer_idx": 1, "allocation_info": null,
    "shape_dynamism": 1, "extra_tensor_info": null}, "val_type": "Tensor"},
    {"val": {"double_val": "inf"}, "val_type": "Double"}, {"val": {}, "val_type": "Null"}],
    "inputs": [0], "outputs": [], "chains": [], "operators": [], "delegates": [],
    "non_const_buffer_sizes": [0, 48]}], "constant_buffer": [{"storage": [1, 2, 255]}],
    "backend_delegate_data": [], "segments": [], "constant_segment": null})");
  const std::string ours = view_of_json(R"({
    "execution_plan": [{"name": "forward", "container_meta_type": {"encoded_inp_str": "", "encoded_out_str": ""},
    "values": [{"val_type": "Tensor", "val": {"scalar_type": "FLOAT", "sizes": [2, 3], "dim_order": "AAE=",
    "data_buffer_idx": 1, "shape_dynamism": "DYNAMIC_BOUND"}}, {"val_type": "Double", "val": {"double_val": "inf"}},
    {"val_type": "Null", "val": {}}], "inputs": [0], "outputs": [], "chains": [], "operators": [],
    "delegates": [], "non_const_buffer_sizes": [0, 48]}], "constant_buffer": [{"storage": "AQL/"}],
    "backend_delegate_data": [], "segments": []})");
  CHECK((theirs == ours));
}

TEST_CASE("every float reads back as it was") {
  std::uint32_t state = 1;
  const auto next = [&] { return state = state * 1664525U + 1013904223U; };
  for (int i = 0; i < 200'000; ++i) {
    const bool is_float = i % 2 == 0;
    const unsigned width = is_float ? 4 : 8;
    const std::uint64_t bits = is_float ? next() : std::uint64_t{next()} << 32 | next();
    const std::string spelled = json_float(bits, width);
    CAPTURE(spelled);
    if (spelled.front() == '"') {
      REQUIRE(parse_special_float(std::string_view(spelled).substr(1, spelled.size() - 2), width) == bits);
      continue;
    }
    const double read = std::strtod(spelled.c_str(), nullptr);
    REQUIRE((is_float ? std::bit_cast<std::uint32_t>(static_cast<float>(read))
                      : std::bit_cast<std::uint64_t>(read)) == bits);
  }
}

TEST_CASE("base64 is that of RFC 4648, and nothing else") {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
      {"\xfb\xff", "+/8="},
      {{"\x00\x10\x83\x10\x51\x87\x20\x92\x8b\x30\xd3\x8f\x41\x14\x93\x51\x55\x97\x61\x96\x9b\x71\xd7\x9f"
        "\x82\x18\xa3\x92\x59\xa7\xa2\x9a\xab\xb2\xdb\xaf\xc3\x1c\xb3\xd3\x5d\xb7\xe3\x9e\xbb\xf3\xdf\xbf",
        48},
       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"},
  };
  for (const auto& row : rows) {
    const std::string& plain = row.first;
    const std::string& encoded = row.second;
    CAPTURE(plain);
    std::string out = "before";
    append_base64(std::as_bytes(std::span(plain)), out);
    CHECK(out == "before" + encoded);
    std::vector<std::byte> decoded = bytes_of("before");
    CHECK(decode_base64(encoded, decoded));
    CHECK(text_of(decoded) == "before" + plain);
  }
  std::vector<std::byte> decoded = bytes_of("before");
  for (const char* wrong : {"Z", "Zg", "Zg=", "Zg==Zg==", "Z===", "====", "Zh==", "Zo==", "Zm9=", "Zm+=",
                            "Zg= ", "Zm9-", "=g==", "=m8=", "Z=8=", "Zm=v", "Zm9vY", "Zm9vZ*8=",
                            "Zm\xff"
                            "v"}) {
    CAPTURE(wrong);
    CHECK_FALSE(decode_base64(wrong, decoded));
    CHECK(text_of(decoded) == "before");
  }
}

}  // namespace
}  // namespace etstream::json_flatbuffer_test
