// SPDX-License-Identifier: BSD-3-Clause
//
// Flatbuffers in flatc's order, compared with the output of FlatBuffers' own parser of JSON, which flatc
// uses.
#include <doctest/doctest.h>
#include <flatbuffers/idl.h>

#include <string>
#include <vector>

#include "flatbuffer/edited_values.h"
#include "flatbuffer/json/generate_text.h"
#include "flatbuffer/schema_packer.h"
#include "random_schema.h"
#include "random_tree.h"
#include "written_plan.h"

namespace etstream::testing::flatc_order_test {
namespace {

std::uint64_t cases() { return 400 * rounds(); }

/// Returns what the parser builds from the text that it generates for `file`; nothing if it refuses the
/// schema or the text, because of an alignment over 32, or a string that is not UTF-8.
std::vector<std::byte> parsed_again(const std::string& schema_text, const std::vector<std::byte>& file) {
  flatbuffers::Parser parser;
  if (!parser.Parse(schema_text.c_str())) return {};
  std::string json;
  if (!generate_text(parser, file.data(), json) || !parser.Parse(json.c_str())) return {};
  const auto built = std::as_bytes(std::span(parser.builder_.GetBufferPointer(), parser.builder_.GetSize()));
  return {built.begin(), built.end()};
}

TEST_CASE("random_flatbuffers_in_flatcs_order_are_its_parsers") {
  std::uint64_t compared = 0;
  std::uint64_t others = 0;
  for (std::uint64_t seed = 1; seed <= cases(); ++seed) {
    CAPTURE(seed);
    SeededRandom random(seed);
    const std::string schema_text = random_schema(random);
    CAPTURE(schema_text);
    // Children come in the order of the JSON, whose text is written in the order of declaration. The packer
    // leaves out deprecated fields.
    if (schema_text.find("id:") != std::string::npos) continue;
    if (schema_text.find("deprecated") != std::string::npos) continue;
    const auto binary = compile_schema(schema_text);
    const Schema schema = Schema::from_binary(binary).value();
    const TableTree tree = random_tree(*reflection::GetSchema(binary.data()), random);
    TreeReader values(tree);
    const auto expected = parsed_again(schema_text, bytes_of(pack(schema, values).value()));
    if (expected.empty()) continue;
    ++compared;

    const auto view = FlatbufferView::open(schema, ByteSource::memory(expected), "file");
    REQUIRE(view);
    EditedValues reader(*view, view->root().value());
    const auto ours = bytes_of(pack(schema, reader, {.order = ObjectOrder::kFlatc}).value());
    REQUIRE(difference(ours, expected) == "");
    if (bytes_of(pack(schema, reader).value()) != expected) ++others;
  }
  CHECK(54 * compared > cases());
  CHECK(115 * others > cases());
}

}  // namespace
}  // namespace etstream::testing::flatc_order_test
