// SPDX-License-Identifier: BSD-3-Clause
//
// JSON of random flatbuffers, which must give the same bytes again. Each case is made from its seed alone.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/text.h"
#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/json/json_value_reader.h"
#include "flatbuffer/json/json_writer.h"
#include "flatbuffer/random_schema.h"
#include "flatbuffer/random_tree.h"
#include "flatbuffer/schema_packer.h"
#include "flatbuffer/value_tree.h"
#include "written_plan.h"

namespace etstream::testing::json_round_trip_test {
namespace {

std::uint64_t cases() { return 50 * rounds(); }

std::uint64_t count(std::string_view json, std::string_view what) {
  std::uint64_t n = 0;
  for (std::size_t at = json.find(what); at != std::string::npos; at = json.find(what, at + 1)) ++n;
  return n;
}

std::string json_of(const FlatbufferView& view, const JsonOptions& options) {
  std::vector<std::byte> out;
  const auto sink = open_memory_sink(out);
  const auto written = write_json(view, options, *sink);
  if (!written) FAIL(written.error().message);
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

TEST_CASE("random_flatbuffers_become_json_and_the_same_bytes_again") {
  std::string folder = (std::filesystem::temp_directory_path() / "etstream-json-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()));
  std::string all;
  for (std::uint64_t seed = 1; seed <= cases(); ++seed) {
    CAPTURE(seed);
    SeededRandom random(seed);
    const std::string schema_text = random_schema(random);
    CAPTURE(schema_text);
    const auto binary = compile_schema(schema_text);
    const Schema schema = Schema::from_binary(binary).value();
    const TableTree tree = random_tree(*reflection::GetSchema(binary.data()), random);
    TreeReader values(tree);
    const auto file = bytes_of(pack(schema, values).value());

    const auto view = FlatbufferView::open(schema, ByteSource::memory(file), "file");
    REQUIRE(view);
    JsonOptions options{.compact = random.one_in(2), .defaults = random.one_in(2), .references = {}};
    if (random.one_in(4)) {
      std::ofstream(folder + "/original", std::ios::binary)
          .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
      options.references = JsonReferences{.file = "original", .offset = 0, .over = random.below(100)};
    }
    const std::string json = json_of(*view, options);
    if (json.size() < 10000) CAPTURE(json);
    all += json;

    const auto source = ByteSource::memory(std::as_bytes(std::span(json)));
    const auto reader = JsonValueReader::parse(schema, source, folder);
    if (!reader) FAIL(reader.error().message);
    const auto again = pack(schema, **reader);
    if (!again) FAIL(again.error().message);
    REQUIRE(difference(bytes_of(*again), file) == "");
  }
  std::filesystem::remove_all(folder);
  for (const std::string what :
       {"\"nan\"", "\"nan:", "\"-inf\"", "-0.0", "\"M0\"", "\"N1\"", "\"base64\"", "\"file\"", "\"m0\"", "[]",
        "\"\"", "true", "18446744073709551615", "-9223372036854775808", "e-300"}) {
    CAPTURE(what);
    CHECK(50 * count(all, what) + 150 > cases());  // some are in few cases
  }
}

}  // namespace
}  // namespace etstream::testing::json_round_trip_test
