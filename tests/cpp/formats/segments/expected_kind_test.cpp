// SPDX-License-Identifier: BSD-3-Clause
//
// Errors about a file of another kind than the expected one name its kind.
#include "formats/segments/file_kind.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "test_errors.h"
#include "test_sources.h"

namespace etstream::expected_kind_test {
namespace {

using namespace std::string_literals;

const Expected kProgram = {"a program (ET12)", {FileKind::kProgram}};
const Expected kCases = {"test cases as JSON", {}, JsonContent::kTestCases};

std::string explained(const ByteSource& file, const Expected& expected,
                      ErrorCode code = ErrorCode::kCorrupt) {
  return full_message(explain(file, expected, Error{code, "it is broken"}));
}

TEST_CASE("a file of another kind is called what it is, with what takes it") {
  struct Row {
    std::string bytes;
    std::string message;
  };
  const std::vector<Row> rows = {
      {"\x20\0\0\0ET12more"s, "it is broken"},
      {"\x20\0\0\0BP08more"s,
       "memory: is a bundled program (BP08), expected a program (ET12); take the program out of a bundle "
       "first"},
      {"\x20\0\0\0BPS1more"s, "is a segmented bundle (BPS1), expected"},
      {"\x20\0\0\0FT01more"s, "is tensor data (FT01), expected a program (ET12); read it as a checkpoint"},
      {"GGUF\3\0\0\0\0"s, "is GGUF, expected"},
      {"NFAT\1\0\0\0\0"s,
       "is a fat container (NFAT), expected a program (ET12); take a payload out of it first"},
      {R"({"metadata": {"total_size": 1}, "weight_map": {}})", "is the index of a checkpoint, expected"},
      {R"({"version": 0, "execution_plan": [{"inputs": [0]}]})",
       "is a program's description in JSON, expected"},
      {"\xef\xbb\xbf\n {\"model_type\": \"llama\"}", "is the config.json of a model, expected"},
      {R"({"forward": [{"inputs": []}]})", "is JSON with test cases, expected a program (ET12)"},
      {R"([{"method": "forward", "cases": [{"inputs": []}]}])", "is JSON with test cases, expected"},
      {R"({"any": "thing"})", "it is broken; it is JSON"},
      {"[1, 2]", "it is broken; it is JSON"},
      {"{}", "it is broken; it is JSON"},
      {"[]", "it is broken; it is JSON"},
      {"{" + std::string(1010, ' ') + "\"weight_map\":{}}", "is the index of a checkpoint, expected"},
      {"{" + std::string(1011, ' ') + "\"weight_map\":{}}", "it is broken; it is JSON"},
      {"{\xff\xff\xff more bytes", "it is broken"},
      {"<html></html>", "is an HTML page"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.message);
    CHECK(doctest::String(explained(source_of(row.bytes), kProgram).c_str()) == containing(row.message));
  }
}

TEST_CASE("what is wrong with JSON of the right kind is what is said") {
  CHECK(explained(source_of(R"({"error": [{"inputs": 3}]})"), kCases, ErrorCode::kInvalidArgument) ==
        "it is broken");
  CHECK(explained(source_of("\"text\""), kCases, ErrorCode::kInvalidArgument) == "it is broken");
  CHECK(explained(source_of(R"({"weight_map": {}})"), {"JSON", {}, JsonContent::kOther}) == "it is broken");
  CHECK(explained(source_of(R"({"weight_map": {}})"), kCases, ErrorCode::kInvalidArgument) ==
        "memory: is the index of a checkpoint, expected test cases as JSON; read it as a checkpoint");
}

TEST_CASE("a part of a file is not called anything, nor is a file that can't be read") {
  const ByteSource bundle = source_of("----\x20\0\0\0BP08more"s);
  CHECK(explained(bundle.slice(4, 12).value(), kProgram) == "it is broken");
  CHECK(explained(failing(1000, 0), kProgram) == "it is broken");
  const auto cut = ByteSource::concatenation({source_of(R"({"weight_map": {}})"), failing(1000, 0)});
  CHECK(explained(cut.value(), kProgram) == "it is broken");
}

TEST_CASE("a page is called one whatever error it gave") {
  CHECK(
      doctest::String(explained(source_of("<html></html>"), kProgram, ErrorCode::kInvalidArgument).c_str()) ==
      containing("is an HTML page"));
}

}  // namespace
}  // namespace etstream::expected_kind_test
