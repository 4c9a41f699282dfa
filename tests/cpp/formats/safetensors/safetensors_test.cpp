// SPDX-License-Identifier: BSD-3-Clause
#include "formats/safetensors/safetensors.h"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "test_errors.h"
#include "test_sources.h"
#include "test_tensor_files.h"

namespace etstream::safetensors_test {
namespace {

Result<std::map<std::string, CheckpointTensor>> by_name(const ByteSource& file) {
  auto tensors = open_safetensors(file);
  if (!tensors) return tensors.error();
  std::map<std::string, CheckpointTensor> out;
  for (CheckpointTensor& tensor : tensors->tensors) out[tensor.name] = std::move(tensor);
  return out;
}

Result<std::map<std::string, CheckpointTensor>> open(std::string_view header, std::string_view data) {
  return by_name(source_of(safetensors_file(header, data)));
}

TEST_CASE("a type that is not known is kept by its name, with its shape") {
  const auto index = open(R"({"x":{"dtype":"F2","shape":[3],"data_offsets":[0,2]}})", "ab");
  REQUIRE_MESSAGE(index, index.error().message);
  CHECK(index->at("x").type == "F2");
  CHECK_FALSE(index->at("x").layout.has_value());
  CHECK(index->at("x").shape == std::vector<std::uint64_t>{3});
  CHECK(text_of(index->at("x").data) == "ab");
  CHECK(error_of(safetensors_dtype(index->at("x"))) == containing("tensor 'x' is of type F2"));
}

TEST_CASE("sizes go beyond 32 bits, and the data stays in the file") {
  const auto storage = std::make_shared<RecordingStorage>(std::uint64_t{1} << 40);
  const std::string header =
      R"({"x":{"dtype":"U8","shape":[1099511627776],"data_offsets":[0,1099511627776]}})";
  const auto file =
      ByteSource::concatenation({source_of(safetensors_file(header, "")), ByteSource(storage)}).value();
  const auto index = by_name(file);
  REQUIRE_MESSAGE(index, index.error().message);
  CHECK(index->at("x").data.size() == std::uint64_t{1} << 40);
  CHECK_FALSE(index->at("x").layout.has_value());
  CHECK(index->at("x").type == "U8");
  CHECK(index->at("x").shape == std::vector<std::uint64_t>{std::uint64_t{1} << 40});
  CHECK(safetensors_dtype(index->at("x"))->name == "U8");
  CHECK(storage->read().empty());
}

TEST_CASE("a file that safetensors' own library would not read is corrupt, and the error says where") {
  // tests/peer/test_safetensors.py compares random headers with that library.
  const std::string type = R"("dtype":"U8",)";
  const std::string shape = R"("shape":[2],)";
  const std::string offsets = R"("data_offsets":[0,2])";
  const auto one = [](const std::string& members) {
    return safetensors_file(R"({"a":{)" + members + "}}", "xy");
  };
  const auto two = [](const char* name, int begin, int end) {
    return safetensors_file(text(R"({{"a":{{"dtype":"U8","shape":[2],"data_offsets":[0,2]}},)"
                                 R"("{}":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}}}})",
                                 name, end - begin, begin, end),
                            "wxyz");
  };
  const std::pair<std::string, std::string> rows[] = {
      {std::string(7, '\0'), "found 0 in a file of 7 bytes"},
      {little_endian(3, 8) + "{}", "found 3 in a file of 10 bytes"},
      {little_endian(UINT64_MAX, 8) + "{}", "found 18446744073709551615 in a file of 10 bytes"},
      {safetensors_file(R"({"a":{"dtype")", ""), "line 1: not JSON: "},
      {safetensors_file("[]", ""), "line 1: expected an object, found an array"},
      {safetensors_file(R"({"__metadata__":{"a":1}})", ""), "a string in __metadata__, found an integer"},
      {safetensors_file(R"({"a":)" + std::string(100'000, '['), ""), "tensor 'a': expected an object"},
      {one(type + shape + R"("data_offsets":[0])"), "expected dtype, shape and two data_offsets"},
      {one(type + shape + shape + offsets), "expected each of dtype, shape and data_offsets once"},
      {one(type + R"("shape":[2)" + repeated_text(",1", 64) + "]," + offsets), "expected at most 64 numbers"},
      {one(type + R"("shape":[18446744073709551616],)" + offsets), "an integer does not fit"},
      {one(type + R"("shape":[2305843009213693952,1],)" + offsets), "expected over 2^61 - 1 from its shape"},
      {one(R"("dtype":"F64","shape":[2305843009213693953],)" + offsets), "expected over 2^61 - 1 from"},
      {one(R"("dtype":"I16",)" + shape + offsets),
       "line 1: tensor 'a': its data is 2 bytes, expected 4 from"},
      {one(type + shape + R"("data_offsets":[2,0])"), "data_offsets 2 to 0 are not inside the 2 bytes"},
      {one(type + shape + R"("data_offsets":[1,3])"), "data_offsets 1 to 3 are not inside the 2 bytes"},
      {two("a", 2, 4), "tensor 'a' comes twice"},
      {two(R"(\u0061)", 2, 4), "tensor 'a' comes twice"},
      {two("b", 1, 4), "tensor data at data offset 1 overlaps other data; expected offset 2"},
      {two("b", 3, 4), "tensor data at data offset 3 follows a gap; expected offset 2"},
      {two("b", 2, 3), "data ends at data offset 3, the file's at 4"},
  };
  for (const auto& [file, error] : rows) {
    const auto found = error_of(open_safetensors(source_of(file)));
    CHECK(found == containing("kCorrupt: memory: "));
    CHECK(found == containing(error));
  }
}

TEST_CASE("a header may be as long as the limit, and no longer, whatever the file's size") {
  const auto file_with = [](std::uint64_t length) {
    return ByteSource::concatenation({source_of(little_endian(length, 8)), failing(200'000'000, 0)}).value();
  };
  // The header is read, which fails here.
  CHECK(error_of(open_safetensors(file_with(100'000'000))) == containing("the disk is on fire"));
  CHECK(error_of(open_safetensors(file_with(100'000'001))) ==
        containing("not a safetensors file: expected the length of a header of at most 100000000 bytes"));
}

TEST_CASE("an error in a long header has its line") {
  const auto index = open("{\n\"a\":{\"dtype\":\"U8\",\n\"shape\":[1],\n\"data_offsets\":[0,2]}}", "xy");
  CHECK(error_of(index) == containing("memory: line 4: tensor 'a': its data is 2 bytes"));
}

}  // namespace
}  // namespace etstream::safetensors_test
