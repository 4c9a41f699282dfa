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

using Shape = std::vector<std::int32_t>;

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

TEST_CASE("every type that a tensor can have is read") {
  const std::pair<std::string, ScalarType> rows[] = {{"BOOL", ScalarType::kBool},
                                                     {"U8", ScalarType::kUInt8},
                                                     {"I8", ScalarType::kInt8},
                                                     {"U16", ScalarType::kUInt16},
                                                     {"I16", ScalarType::kInt16},
                                                     {"U32", ScalarType::kUInt32},
                                                     {"I32", ScalarType::kInt32},
                                                     {"U64", ScalarType::kUInt64},
                                                     {"I64", ScalarType::kInt64},
                                                     {"F16", ScalarType::kFloat16},
                                                     {"BF16", ScalarType::kBFloat16},
                                                     {"F32", ScalarType::kFloat32},
                                                     {"F64", ScalarType::kFloat64},
                                                     {"C64", ScalarType::kComplex64},
                                                     {"F8_E5M2", ScalarType::kFloat8E5M2},
                                                     {"F8_E4M3", ScalarType::kFloat8E4M3FN},
                                                     {"F8_E5M2FNUZ", ScalarType::kFloat8E5M2FNUZ},
                                                     {"F8_E4M3FNUZ", ScalarType::kFloat8E4M3FNUZ}};
  for (const auto& [name, type] : rows) {
    const std::string& dtype = name;  // clang 14 captures no binding
    CAPTURE(dtype);
    const std::string data = patterned(6 * item_size(type));
    const auto index = open(R"({"x":{"dtype":")" + dtype + R"(","shape":[2,3],"data_offsets":[0,)" +
                                std::to_string(data.size()) + "]}}",
                            data);
    REQUIRE_MESSAGE(index, index.error().message);
    REQUIRE(index->size() == 1);
    const CheckpointTensor& tensor = index->at("x");
    CHECK(tensor.type == dtype);
    CHECK(tensor.layout == TensorLayout{type, {2, 3}, {0, 1}});
    CHECK(text_of(tensor.data) == data);
    CHECK(safetensors_dtype(type)->name == dtype);
  }
}

TEST_CASE("types that ExecuTorch has not have a shape, and the size that it says in bits") {
  struct Row {
    std::string dtype;
    std::uint64_t bits;
  };
  for (const Row& row : {Row{"F4", 4}, Row{"F6_E2M3", 6}, Row{"F6_E3M2", 6}, Row{"F8_E8M0", 8}}) {
    const std::string& dtype = row.dtype;
    const std::uint64_t bits = row.bits;
    CAPTURE(dtype);
    const auto with = [&](const std::string& shape, std::size_t bytes) {
      return open(R"({"x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":[0,)" +
                      std::to_string(bytes) + "]}}",
                  patterned(bytes));
    };
    const auto index = with("[2,8]", 2 * bits);
    REQUIRE_MESSAGE(index, index.error().message);
    const CheckpointTensor& tensor = index->at("x");
    CHECK(tensor.type == dtype);
    CHECK_FALSE(tensor.layout.has_value());
    CHECK(tensor.shape == std::vector<std::uint64_t>{2, 8});
    CHECK(text_of(tensor.data) == patterned(2 * bits));
    CHECK(safetensors_dtype(tensor)->name == dtype);
    CHECK(error_of(with("[2,8]", 2 * bits + 1)) ==
          containing("expected " + std::to_string(2 * bits) + " from its shape and " + dtype));
    CHECK(with("[0]", 0));
  }
  CHECK(error_of(open(R"({"x":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", "ab")) ==
        containing("its data is 2 bytes, expected whole bytes, and not 12 bits, from its shape and F4"));
  CHECK(error_of(open(R"({"x":{"dtype":"F8_E8M0","shape":[1000],"data_offsets":[0,3]}})", "abc")) ==
        containing("its data is 3 bytes, expected 1000 from its shape and F8_E8M0"));
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

TEST_CASE("tensors are found by name, in whatever order the file has them") {
  const auto index = open(
      R"({"second": {"shape": [2], "data_offsets": [4, 6], "dtype": "U8"},
          "größe\n": {"dtype": "I16", "shape": [], "data_offsets": [6, 8]},
          "": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]}}   )",
      "abcdefgh");
  REQUIRE_MESSAGE(index, index.error().message);
  REQUIRE(index->size() == 3);
  CHECK(text_of(index->at("").data) == "abcd");
  CHECK(index->at("").layout->sizes == Shape{1, 1});
  CHECK(text_of(index->at("second").data) == "ef");
  CHECK(text_of(index->at("größe\n").data) == "gh");
  CHECK(index->at("größe\n").layout->sizes.empty());
}

TEST_CASE("a file may have no tensors, and tensors no elements") {
  const auto none = open("{}", "");
  REQUIRE_MESSAGE(none, none.error().message);
  CHECK(none->empty());
  const auto empty = open(
      R"({"a":{"dtype":"F32","shape":[0,3],"data_offsets":[0,0]},
          "b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
          "c":{"dtype":"F32","shape":[0],"data_offsets":[2,2]}})",
      "xy");
  REQUIRE_MESSAGE(empty, empty.error().message);
  CHECK(empty->at("a").data.size() == 0);
  CHECK(empty->at("a").layout->sizes == Shape{0, 3});
  CHECK(text_of(empty->at("b").data) == "xy");
  CHECK(empty->at("c").data.size() == 0);
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

std::string repeated_text(std::string_view what, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += what;
  return out;
}

/// Returns the header of one tensor "a".
std::string one(std::string_view members) { return R"({"a":{)" + std::string(members) + "}}"; }

struct BadFile {
  std::string what;
  std::string file;
  std::string error;
};

void check_all_bad(const std::vector<BadFile>& files) {
  for (const BadFile& bad : files) {
    CAPTURE(bad.what);
    const auto index = open_safetensors(source_of(bad.file));
    CHECK(error_of(index) == containing(bad.error));
    CHECK(error_of(index) == containing("kCorrupt: memory: "));
  }
}

TEST_CASE("a file whose header is not there, or no JSON, is corrupt") {
  const std::string in_line_1 = "kCorrupt: memory: line 1: ";
  check_all_bad({
      {"short length", std::string(7, '\0'), "found 0 in a file of 7 bytes"},
      {"nothing but a length", little_endian(3, 8), "found 3 in a file of 8 bytes"},
      {"length past the end", little_endian(3, 8) + "{}", "found 3 in a file of 10 bytes"},
      {"length over 64 bits", little_endian(UINT64_MAX, 8) + "{}",
       "found 18446744073709551615 in a file of 10 bytes"},
      {"length over the limit", little_endian(100'000'001, 8) + "{}", "a header of at most 100000000 bytes"},
      {"no header", safetensors_file("", ""), in_line_1 + "not JSON: "},
      {"not JSON", safetensors_file("{,}", ""), in_line_1 + "not JSON: "},
      {"cut JSON", safetensors_file(R"({"a":{"dtype")", ""), in_line_1 + "not JSON: "},
      {"not UTF-8", safetensors_file("{\"\xff\":1}", ""), in_line_1 + "not JSON: "},
      {"two documents", safetensors_file("{}{}", ""), in_line_1 + "not JSON: "},
      {"an array", safetensors_file("[]", ""), in_line_1 + "expected an object, found an array"},
      {"a number", safetensors_file("1", ""), in_line_1 + "expected an object, found an integer"},
      {"nested metadata", safetensors_file(R"({"__metadata__":{"a":{"b":"c"}}})", ""),
       in_line_1 + "expected a string in __metadata__, found an object"},
      {"metadata of numbers", safetensors_file(R"({"__metadata__":{"a":1}})", ""),
       "in __metadata__, found an integer"},
      {"metadata twice", safetensors_file(R"({"__metadata__":null,"__metadata__":{}})", ""),
       "__metadata__ comes twice"},
      {"metadata a string", safetensors_file(R"({"__metadata__":"a"})", ""),
       "expected an object, found a string"},
  });
}

TEST_CASE("a file with a tensor that makes no sense is corrupt, and the error names the tensor") {
  const std::string place = "kCorrupt: memory: line 1: tensor 'a': ";
  const std::string type = R"("dtype":"U8",)";
  const std::string shape = R"("shape":[2],)";
  const std::string offsets = R"("data_offsets":[0,2])";
  const auto two = [&](std::string_view members) { return safetensors_file(one(members), "xy"); };
  check_all_bad({
      {"not an object", safetensors_file(R"({"a":1})", ""), place + "expected an object, found an integer"},
      {"nothing", two(""), place + "expected dtype, shape and two data_offsets"},
      {"no dtype", two(shape + offsets), place + "expected dtype, shape and two data_offsets"},
      {"no shape", two(type + offsets), place + "expected dtype, shape and two data_offsets"},
      {"no offsets", two(type + R"("shape":[2])"), place + "expected dtype, shape and two data_offsets"},
      {"one offset", two(type + shape + R"("data_offsets":[0])"), place + "expected dtype, shape and two"},
      {"three offsets", two(type + shape + R"("data_offsets":[0,1,2])"),
       place + "expected dtype, shape and two"},
      {"two dtypes", two(type + type + shape + offsets),
       place + "expected each of dtype, shape and data_offsets once"},
      {"two shapes", two(type + shape + shape + offsets), place + "expected each of dtype, shape"},
      {"empty offsets, then others", two(type + shape + R"("data_offsets":[],)" + offsets),
       place + "expected each of dtype, shape"},
      {"65 dimensions", two(type + R"("shape":[2)" + repeated_text(",1", 64) + "]," + offsets),
       place + "expected at most 64 numbers in a row"},
      {"two offsets", two(type + shape + offsets + "," + offsets), place + "expected each of dtype, shape"},
      {"dtype a number", two(R"("dtype":6,)" + shape + offsets),
       place + "expected a string, found an integer"},
      {"shape a number", two(type + R"("shape":2,)" + offsets),
       place + "expected an array, found an integer"},
      {"negative size", two(type + R"("shape":[-2],)" + offsets),
       place + "expected an integer that is not negative"},
      {"half a size", two(type + R"("shape":[2.0],)" + offsets),
       place + "expected an integer that is not negative"},
      {"nested shape", two(type + R"("shape":[[2]],)" + offsets),
       place + "expected an integer that is not negative"},
      {"size over 64 bits", two(type + R"("shape":[18446744073709551616],)" + offsets),
       "an integer does not fit"},
      {"shape overflows", two(type + R"("shape":[4294967296,4294967296,2],)" + offsets),
       place + "its data is 2 bytes, expected over 2^61 - 1 from its shape and U8"},
      {"shape too small", two(type + R"("shape":[1],)" + offsets),
       place + "its data is 2 bytes, expected 1 from"},
      {"shape too large", two(R"("dtype":"I16",)" + shape + offsets),
       place + "its data is 2 bytes, expected 4 from"},
      {"offsets backwards", two(type + shape + R"("data_offsets":[2,0])"),
       place + "data_offsets 2 to 0 are not inside the 2 bytes of data"},
      {"offset outside", two(type + shape + R"("data_offsets":[1,3])"),
       place + "data_offsets 1 to 3 are not inside the 2 bytes of data"},
      {"offset far outside",
       two(type + shape + R"("data_offsets":[9223372036854775805,9223372036854775807])"),
       place + "data_offsets 9223372036854775805 to 9223372036854775807 are not inside"},
  });
}

TEST_CASE("a file whose tensors do not cover its data exactly is corrupt") {
  const auto tensor = [](const char* name, int begin, int end) {
    return text(R"("{}":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}})", name, end - begin, begin,
                end);
  };
  const auto file = [](const std::string& a, const std::string& b) {
    return safetensors_file("{" + a + "," + b + "}", "wxyz");
  };
  check_all_bad({
      {"overlap", file(tensor("a", 0, 3), tensor("b", 2, 4)),
       "tensor data at data offset 2 overlaps other data; expected offset 3"},
      {"the same data twice", file(tensor("a", 0, 4), tensor("b", 0, 4)),
       "data offset 0 overlaps other data"},
      {"one inside another", file(tensor("a", 0, 4), tensor("b", 1, 2)), "data offset 1 overlaps other data"},
      {"gap", file(tensor("a", 0, 1), tensor("b", 2, 4)),
       "tensor data at data offset 2 follows a gap; expected offset 1"},
      {"gap at the start", file(tensor("a", 1, 2), tensor("b", 2, 4)),
       "data offset 1 follows a gap; expected offset 0"},
      {"gap at the end", file(tensor("a", 0, 1), tensor("b", 1, 3)),
       "data ends at data offset 3, the file's at 4"},
      {"data without tensors", safetensors_file("{}", "x"), "data ends at data offset 0, the file's at 1"},
      {"a name twice", file(tensor("a", 0, 2), tensor("a", 2, 4)), "tensor 'a' comes twice"},
  });
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

TEST_CASE("JSON of any depth is refused where it leaves the header's form, not followed") {
  const std::string deep(100'000, '[');
  std::string deep_objects;
  for (int i = 0; i < 100'000; ++i) deep_objects += R"({"a":)";
  const auto file = [](const std::string& header) { return safetensors_file(header, ""); };
  check_all_bad({
      {"arrays", file(deep), "line 1: expected an object, found an array"},
      {"objects", file(deep_objects), "line 1: "},
      {"a tensor", file(R"({"a":)" + deep), "line 1: tensor 'a': expected an object, found an array"},
      {"a shape", file(one(R"("shape":)" + deep)),
       "expected an integer that is not negative, found an array"},
      {"a dtype", file(one(R"("dtype":)" + deep)), "expected a string, found an array"},
      {"offsets", file(one(R"("data_offsets":)" + deep_objects)), "expected an array, found an object"},
      {"metadata", file(R"({"__metadata__":{"a":)" + deep),
       "line 1: expected a string in __metadata__, found an array"},
  });
}

TEST_CASE("a tensor's name is any text in UTF-8, and is compared as what it says") {
  const auto file = [](const std::string& name, const std::string& other) {
    return safetensors_file("{\"" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},")" + other +
                                R"(":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                            "xy");
  };
  const auto index = by_name(source_of(file(R"(\u0000\ud83d\ude00)", R"(\")")));
  REQUIRE_MESSAGE(index, index.error().message);
  CHECK(text_of(index->at(std::string("\0", 1) + "\U0001F600").data) == "x");
  CHECK(text_of(index->at("\"").data) == "y");
  check_all_bad({
      {"an escaped name again", file("a", R"(\u0061)"), "memory: tensor 'a' comes twice"},
      {"half a surrogate", file("a", R"(\ud800)"), "line 1: not JSON: "},
      {"the other half", file("a", R"(\udc00)"), "line 1: not JSON: "},
      {"overlong UTF-8", file("a", "\xC0\x80"), "line 1: not JSON: "},
      {"a surrogate in UTF-8", file("a", "\xED\xA0\x80"), "line 1: not JSON: "},
      {"cut UTF-8", file("a", "\xE6\xA8"), "line 1: not JSON: "},
      {"over U+10FFFF", file("a", "\xF4\x90\x80\x80"), "line 1: not JSON: "},
      {"a control character", file("a", "\n"), "line 1: not JSON: "},
  });
}

TEST_CASE("offsets and sizes that are at the limits of integers, or none, are no way in") {
  const auto with = [](const std::string& shape, const std::string& offsets) {
    return safetensors_file(
        one(R"("dtype":"F64","shape":[)" + shape + R"(],"data_offsets":[)" + offsets + "]"), "12345678");
  };
  check_all_bad({
      {"wraps to 0", with("2305843009213693952", "0,0"), "its data is 0 bytes, expected over 2^61 - 1"},
      {"wraps to 8", with("2305843009213693953", "0,8"), "its data is 8 bytes, expected over 2^61 - 1"},
      {"largest size", with("9223372036854775807", "0,8"), "its data is 8 bytes, expected over 2^61 - 1"},
      {"negative offset", with("1", "-8,0"), "expected an integer that is not negative, found an integer"},
      {"offset over 63 bits", with("1", "0,9223372036854775808"), "found an integer over 63 bits"},
      {"offset over 64 bits", with("1", "0,18446744073709551624"), "does not fit"},
      {"offset as a float", with("1", "0,8.0"), "expected an integer that is not negative"},
      {"offset with an exponent", with("1", "0,8e0"), "expected an integer that is not negative"},
      {"offset in words", with("1", R"("0","8")"),
       "expected an integer that is not negative, found a string"},
      {"null", with("null", "0,8"), "expected an integer that is not negative"},
      {"empty, behind the end", with("0", "9,9"), "data_offsets 9 to 9 are not inside the 8 bytes of data"},
      {"no data of a tensor that has", with("1", "0,0"), "its data is 0 bytes, expected 8"},
  });
  const auto inside = [](const char* offsets) {
    return safetensors_file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},
                                "b":{"dtype":"U8","shape":[0],"data_offsets":)" +
                                std::string(offsets) + "}}",
                            "wxyz");
  };
  check_all_bad({{"empty, inside another", inside("[2,2]"),
                  "tensor data at data offset 2 overlaps other data; expected offset 4"}});
  CHECK(open_safetensors(source_of(inside("[4,4]"))));
}

TEST_CASE("an error in a long header has its line") {
  const auto index = open("{\n\"a\":{\"dtype\":\"U8\",\n\"shape\":[1],\n\"data_offsets\":[0,2]}}", "xy");
  CHECK(error_of(index) == containing("memory: line 4: tensor 'a': its data is 2 bytes"));
}

TEST_CASE("a read error passes through") {
  for (const std::size_t intact : {0U, 8U}) {
    CAPTURE(intact);
    const std::string start = little_endian(100, 8).substr(0, intact);
    const ByteSource file = ByteSource::concatenation({source_of(start), failing(1000, 0)}).value();
    CHECK(code_of(open_safetensors(file)) == "kIo");
    CHECK(error_of(open_safetensors(file)) == containing("the disk is on fire"));
  }
}

}  // namespace
}  // namespace etstream::safetensors_test
