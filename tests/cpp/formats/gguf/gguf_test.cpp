// SPDX-License-Identifier: BSD-3-Clause
#include "formats/gguf/gguf.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "test_errors.h"
#include "test_paths.h"
#include "test_sources.h"
#include "test_tensor_files.h"

namespace etstream::gguf_test {
namespace {

using namespace std::string_literals;
using Shape = std::vector<std::uint64_t>;

std::string u32(std::uint64_t n) { return little_endian(n, 4); }
std::string u64(std::uint64_t n) { return little_endian(n, 8); }
std::string string(std::string_view words) { return u64(words.size()) + std::string(words); }

constexpr std::uint32_t kUInt8 = 0;
constexpr std::uint32_t kUInt16 = 2;
constexpr std::uint32_t kUInt32 = 4;
constexpr std::uint32_t kInt32 = 5;
constexpr std::uint32_t kString = 8;
constexpr std::uint32_t kArray = 9;
constexpr std::uint32_t kUInt64 = 10;

/// Returns an entry of the metadata.
std::string entry(std::string_view key, std::uint32_t type, const std::string& value) {
  return string(key) + u32(type) + value;
}

/// Returns an array's value.
std::string array(std::uint32_t type, std::uint64_t count, const std::string& elements) {
  return u32(type) + u64(count) + elements;
}

/// Returns a tensor's description, whose sizes are in the file's order.
std::string info(std::string_view name, const Shape& sizes, std::uint32_t type, std::uint64_t offset) {
  std::string out = string(name) + u32(sizes.size());
  for (const std::uint64_t size : sizes) out += u64(size);
  return out + u32(type) + u64(offset);
}

std::string gguf_file(const std::vector<std::string>& metadata, const std::vector<std::string>& infos,
                      std::string_view data, std::uint64_t alignment = 32, std::uint32_t version = 3) {
  std::string out = "GGUF" + u32(version) + u64(infos.size()) + u64(metadata.size());
  for (const std::string& each : metadata) out += each;
  for (const std::string& each : infos) out += each;
  out.append((alignment - out.size() % alignment) % alignment, '\0');
  return out + std::string(data);
}

Result<GgufFile> open(const std::string& file) { return open_gguf(source_of(file)); }

GgufFile opened(const std::string& file) {
  auto out = open(file);
  REQUIRE_MESSAGE(out, out.error().message);
  return std::move(out).value();
}

TEST_CASE("what gguf-py wrote is read") {
  const auto source = ByteSource::file(kGoldenDir + "/gguf/expected.gguf");
  REQUIRE_MESSAGE(source, source.error().message);
  const auto file = open_gguf(*source);
  REQUIRE_MESSAGE(file, file.error().message);
  CHECK(file->version == 3);
  CHECK(file->alignment == 64);
  CHECK_FALSE(file->split.has_value());
  const std::uint64_t data = file->tensors.at(0).data.offset_in(*source).value();
  CHECK(data % 64 == 0);
  std::string found;
  for (const GgufTensor& tensor : file->tensors) {
    found += tensor.name + " " + tensor.type +
             (tensor.scalar_type ? " " + std::string(name_of(*tensor.scalar_type)) : "");
    for (const std::uint64_t size : tensor.shape) found += text(" {}", size);
    found += text(": {} from {}\n", tensor.data.size(), tensor.data.offset_in(*source).value() - data);
  }
  CHECK(found == R"(plain.float32 F32 float32 2 3: 24 from 0
plain.float16 F16 float16 2 3: 12 from 64
plain.float64 F64 float64 2 3: 48 from 128
plain.int8 I8 int8 2 3: 6 from 192
plain.int16 I16 int16 2 3: 12 from 256
plain.int32 I32 int32 2 3: 24 from 320
plain.int64 I64 int64 2 3: 48 from 384
blocks.BF16 BF16 bfloat16 2 64: 256 from 448
blocks.Q4_0 Q4_0 2 64: 72 from 704
blocks.Q8_0 Q8_0 2 64: 136 from 832
line I8 int8 5: 5 from 1024
cube I16 int16 1 2 3 4: 48 from 1088
)");
  CHECK(text_of(file->tensors[3].data) == "\xFE\xFF\x00\x01\x02\x03"s);
  CHECK(text_of(file->tensors[10].data) == "\x00\x01\x02\x03\x04"s);
}

TEST_CASE("every type has the size that ggml gives its blocks") {
  struct Row {
    std::uint32_t number;
    std::string type;
    std::uint64_t elements;
    std::uint64_t bytes;
  };
  const std::vector<Row> rows = {
      {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
      {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
      {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
      {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
      {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
      {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
      {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
      {40, "NVFP4", 64, 36},    {41, "Q1_0", 128, 18},    {42, "Q2_0", 64, 18},
  };
  std::size_t row = 0;
  for (std::uint32_t number = 0; number < 64; ++number) {
    CAPTURE(number);
    if (row == rows.size() || rows[row].number != number) {
      CHECK(opened(gguf_file({}, {info("x", {0}, number, 0)}, "")).tensors[0].type ==
            "GGML_TYPE_" + std::to_string(number));
      continue;
    }
    const std::string data = patterned(6 * rows[row].bytes);
    const GgufFile file = opened(gguf_file({}, {info("x", {2 * rows[row].elements, 3}, number, 0)}, data));
    CHECK(file.tensors[0].type == rows[row].type);
    CHECK(file.tensors[0].shape == Shape{3, 2 * rows[row].elements});
    CHECK(text_of(file.tensors[0].data) == data);
    CHECK(file.tensors[0].scalar_type.has_value() == (rows[row].elements == 1));
    ++row;
  }
  CHECK(row == rows.size());
}

TEST_CASE("tensors may be none, of no dimensions, of no elements, in another order than their data") {
  CHECK(opened(gguf_file({}, {}, "", 1)).tensors.empty());
  const std::string data = "abcd" + std::string(28, '\0') + "ef";
  const GgufFile file = opened(gguf_file(
      {}, {info("größe\n", {2}, 24, 32), info("", {}, 0, 0), info("none", {3, 0}, 0, 64)}, data, 32, 2));
  CHECK(file.version == 2);
  CHECK(file.alignment == 32);
  REQUIRE(file.tensors.size() == 3);
  CHECK(file.tensors[0].name == "größe\n");
  CHECK(text_of(file.tensors[0].data) == "ef");
  CHECK(text_of(file.tensors[1].data) == "abcd");
  CHECK(file.tensors[1].shape.empty());
  CHECK(file.tensors[2].data.size() == 0);
  CHECK(file.tensors[2].shape == Shape{0, 3});
}

TEST_CASE("of the metadata the alignment and the split fields are read, and the rest is passed over") {
  std::string nested = array(kUInt8, 3, "abc");
  for (int depth = 2; depth <= 8; ++depth) nested = array(kArray, 1, nested);
  const std::vector<std::string> metadata = {
      entry("tokens", kArray, array(kString, 3, string("a") + string("") + string("\xff"))),
      entry("general.alignment", kUInt32, u32(8)),
      entry("", kUInt8, "x"),
      entry("nested", kArray, nested),
      entry("empty", kArray, array(kArray, 0, "")),
      entry("split.count", kUInt16, little_endian(3, 2)),
      entry("split.tensors.count", kInt32, u32(5)),
      entry("split.no", kUInt16, little_endian(2, 2)),
      entry("i16", 3, "xy"),
      entry("bool", 7, "\1"),
      entry("two", kArray, array(kArray, 2, array(kUInt64, 1, u64(1)) + array(kString, 1, string("x")))),
      entry("general.alignment.", kUInt32, u32(7)),
  };
  const std::string data = "a" + std::string(7, '\0') + "b";
  const GgufFile file = opened(gguf_file(metadata, {info("a", {1}, 24, 0), info("b", {1}, 24, 8)}, data, 8));
  CHECK(file.alignment == 8);
  REQUIRE(file.split.has_value());
  CHECK(file.split->number == 2);
  CHECK(file.split->count == 3);
  CHECK(file.split->tensors == 5);
  CHECK(text_of(file.tensors[0].data) == "a");
  CHECK(text_of(file.tensors[1].data) == "b");
  // `llama-gguf-split --merge` leaves this count.
  CHECK_FALSE(opened(gguf_file({entry("split.count", kUInt16, little_endian(0, 2))}, {}, "")).split);
  CHECK_FALSE(opened(gguf_file({entry("split.count", kUInt16, little_endian(1, 2))}, {}, "")).split);
  CHECK(opened(gguf_file({entry("general.alignment", kUInt64, u64(64))}, {}, "")).alignment == 64);
}

TEST_CASE("a split's numbers are of any unsigned type, and how many tensors it has of any signed one too") {
  const auto with_tensors = [](std::uint32_t type, const std::string& number) {
    return open(
        gguf_file({entry("split.count", kUInt8, "\2"), entry("split.no", kUInt8, std::string(1, '\0')),
                   entry("split.tensors.count", type, number)},
                  {}, ""));
  };
  const std::pair<std::uint32_t, int> signed_types[] = {{1, 1}, {3, 2}, {kInt32, 4}, {11, 8}};
  for (const auto& [type, size] : signed_types) {
    CHECK(with_tensors(type, little_endian(7, size))->split->tensors == 7);
    const std::uint64_t largest = (std::uint64_t{1} << (8 * size - 1)) - 1;
    CHECK(with_tensors(type, little_endian(largest, size))->split->tensors == largest);
    CHECK(error_of(with_tensors(type, little_endian(std::uint64_t{1} << (8 * size - 1), size))) ==
          containing("expected split.tensors.count to be 0 or more, found a negative number"));
  }
  CHECK(with_tensors(kUInt8, "\xff")->split->tensors == 255);
  const GgufFile most = opened(
      gguf_file({entry("split.count", kUInt32, u32(65535)), entry("split.no", kUInt32, u32(65534))}, {}, ""));
  CHECK(most.split->count == 65535);
}

TEST_CASE("names may be as long as the limits, and metadata may end the file") {
  CHECK(open(gguf_file({entry(std::string(65535, 'k'), kUInt8, "x")},
                       {info(std::string(65536, 'n'), {0}, 24, 0)}, "")));
  CHECK(open(gguf_file({entry("k", kUInt64, u64(0))}, {}, "", 1)));
  CHECK(open(gguf_file({entry("k", kString, string("abc"))}, {}, "", 1)));
}

TEST_CASE(
    "a tensor of a type that is not known has all bytes up to the next one, or to the end of the file") {
  const std::string data = patterned(32 * 4);
  const GgufFile file = opened(gguf_file({},
                                         {info("last", {100, 3}, 99, 96), info("f", {8}, 0, 64),
                                          info("none", {0, 3}, 98, 32), info("first", {7}, 99, 0)},
                                         data));
  REQUIRE(file.tensors.size() == 4);
  CHECK(file.tensors[0].type == "GGML_TYPE_99");
  CHECK(file.tensors[0].shape == Shape{3, 100});
  CHECK_FALSE(file.tensors[0].scalar_type.has_value());
  CHECK(text_of(file.tensors[0].data) == data.substr(96));
  CHECK(text_of(file.tensors[1].data) == data.substr(64, 32));
  CHECK(file.tensors[2].data.size() == 0);
  CHECK(text_of(file.tensors[3].data) == data.substr(0, 64));
  CHECK(error_of(open(gguf_file({}, {info("a", {7}, 99, 0), info("b", {7}, 99, 0)}, data))) ==
        containing("tensor 'b': its data at data offset 0 overlaps other data, which ends at 1"));
}

TEST_CASE("a key of the metadata that comes twice is refused, wherever it does") {
  const std::string one = entry("tokenizer.x", kUInt8, "x");
  const std::string message = "kCorrupt: memory: the metadata has key 'tokenizer.x' twice";
  CHECK(error_of(open(gguf_file({one, entry("a", kUInt8, "x"), entry("b", kUInt8, "x"),
                                 entry("tokenizer.x", kString, string("y"))},
                                {}, ""))) == containing(message));
  // The first two are compared before the third is read, which has no known type.
  const std::string bad = entry("b", 99, "x");
  CHECK(error_of(open(gguf_file({one, one, bad}, {}, ""))) == containing(message));
  CHECK(error_of(open(gguf_file({one, entry("a", kUInt8, "x"), bad}, {}, ""))) ==
        containing("expected a metadata type up to 12, found 99"));
}

TEST_CASE("a GGUF file's data stays in the file, whatever its size") {
  const auto storage = std::make_shared<RecordingStorage>(std::uint64_t{1} << 40);
  const std::string head = gguf_file({}, {info("x", {std::uint64_t{1} << 30, 1024}, 24, 0)}, "");
  const auto source = ByteSource::concatenation({source_of(head), ByteSource(storage)}).value();
  const auto file = open_gguf(source);
  REQUIRE_MESSAGE(file, file.error().message);
  CHECK(file->tensors[0].data.size() == std::uint64_t{1} << 40);
  for (const auto& [offset, size] : storage->read()) CHECK(offset + size <= 4096);
}

struct BadGguf {
  std::string what;
  std::string file;
  std::string error;
};

void check_all_bad(const std::vector<BadGguf>& files) {
  for (const BadGguf& bad : files) {
    CAPTURE(bad.what);
    CHECK(error_of(open(bad.file)) == containing(bad.error));
  }
}

TEST_CASE("a file that does not begin as GGUF does is refused") {
  const std::string at = "kCorrupt: memory: offset ";
  const auto head = [](std::uint32_t version, std::uint64_t tensors, std::uint64_t metadata) {
    return "GGUF" + u32(version) + u64(tensors) + u64(metadata);
  };
  check_all_bad({
      {"empty", "", "kUnsupported: memory: is empty"},
      {"another magic", "GGML" + u32(3), at + "0: expected \"GGUF\""},
      {"no counts", "GGUF" + u32(3) + u32(0), at + "8: expected 8 bytes inside the 12 bytes there are"},
      {"version 1", head(1, 0, 0), "kUnsupported: memory: offset 4: expected GGUF version 2 or 3, found 1"},
      {"version 0", head(0, 0, 0), "expected GGUF version 2 or 3, found 0"},
      {"big-endian", head(0x03000000, 0, 0), "kUnsupported: memory: offset 4: the file is big-endian"},
      {"too many tensors", head(3, UINT64_MAX, 0),
       at + "8: expected at most 0 tensors in the 8 bytes that are left, found 18446744073709551615"},
      {"too many tensors by a byte", head(3, 3, 0) + std::string(63, '\0'),
       at + "8: expected at most 2 tensors in the 71 bytes that are left, found 3"},
      {"too many tensors by one", head(3, 4, 0) + std::string(64, '\0'),
       at + "8: expected at most 3 tensors in the 72 bytes that are left, found 4"},
      {"too much metadata by one", head(3, 0, 3) + std::string(26, '\0'),
       at + "16: expected at most 2 metadata entries in the 26 bytes that are left, found 3"},
  });
}

TEST_CASE("a file with metadata that makes no sense is refused") {
  const std::string at = "kCorrupt: memory: offset ";
  const auto with = [](const std::string& metadata) {
    return gguf_file({metadata}, {}, std::string(16, '\0'));
  };
  std::string nested = array(kUInt8, 0, "");
  for (int depth = 2; depth <= 9; ++depth) nested = array(kArray, 1, nested);
  const std::string alignment = entry("general.alignment", kUInt32, u32(32));
  const std::string split = entry("split.count", kUInt16, little_endian(2, 2));
  check_all_bad({
      {"long key", with(u64(UINT64_MAX) + "abc"),
       at + "24: expected at most 48 bytes in the 48 bytes that are left"},
      {"key over the limit", with(string(std::string(65536, 'k')) + u32(kUInt8) + "x"),
       at + "24: expected a key of at most 65535 bytes, found 65536"},
      {"unknown type", with(entry("k", 13, u64(0))), at + "33: expected a metadata type up to 12, found 13"},
      {"unknown type of none", with(entry("k", kArray, array(13, 0, ""))),
       at + "37: expected a metadata type up to 12, found 13"},
      {"long string", with(entry("k", kString, u64(1000) + "abc")),
       at + "37: expected at most 35 bytes in the 35 bytes that are left, found 1000"},
      {"long array", with(entry("k", kArray, array(kUInt64, std::uint64_t{1} << 61, ""))),
       at + "49: expected 2305843009213693952 values of 8 bytes inside the "},
      {"array of arrays by one",
       "GGUF" + u32(3) + u64(0) + u64(1) + entry("k", kArray, array(kArray, 4, std::string(36, 'x'))),
       at + "41: expected at most 3 array elements in the 36 bytes that are left, found 4"},
      {"deep arrays", with(entry("k", kArray, nested)), "arrays are more than 8 deep"},
      {"alignment of 0", with(entry("general.alignment", kUInt32, u32(0))),
       at + "53: expected a power of two as general.alignment, found 0"},
      {"alignment as a string", with(entry("general.alignment", kString, string("32"))),
       at + "49: expected general.alignment as an unsigned integer, found type 8"},
      {"negative alignment", with(entry("general.alignment", 5, u32(32))),
       "as an unsigned integer, found type 5"},
      {"two alignments", gguf_file({alignment, alignment}, {}, ""), at + "57: general.alignment comes twice"},
      {"split without a number", with(split), at + "47: split.count is 2: expected split.no too"},
      {"a number that is no file's",
       gguf_file({split, entry("split.no", kUInt16, little_endian(2, 2))}, {}, ""),
       "expected split.no below split.count, which is 2, found 2"},
      {"a negative number of tensors", with(entry("split.tensors.count", kInt32, u32(UINT32_MAX))),
       "expected split.tensors.count to be 0 or more, found a negative number"},
      {"split into too many", with(entry("split.count", kUInt32, u32(65536))),
       at + "47: expected at most 65535 as split.count, found 65536"},
      {"cut in a value", "GGUF" + u32(3) + u64(0) + u64(1) + entry("general.alignment", kUInt32, "ab"),
       at + "53: expected 4 bytes inside the 55 bytes there are"},
  });
}

TEST_CASE("a file with a GGUF tensor that makes no sense is refused") {
  const std::string at = "kCorrupt: memory: offset ";
  const auto one = [](const std::string& tensor) { return gguf_file({}, {tensor}, std::string(64, 'd')); };
  const std::uint64_t huge = std::uint64_t{1} << 32;
  check_all_bad({
      {"name not there", one(u64(1000) + "x" + std::string(20, '\0')), at + "24: expected at most "},
      {"name over the limit", one(info(std::string(65537, 'n'), {1}, 24, 0)),
       at + "24: expected a tensor's name of at most 65536 bytes, found 65537"},
      {"name not UTF-8", one(info("a\xff", {1}, 24, 0)),
       at + "24: tensor 'a\\xff': expected a name in UTF-8"},
      {"five dimensions", one(info("x", {1, 1, 1, 1, 1}, 24, 0)),
       at + "33: tensor 'x': expected at most 4 dimensions, found 5"},
      {"unknown type without data", one(info("x", {32}, 4, 64)),
       at + "64: tensor 'x': expected 1 bytes of GGML_TYPE_4 at data offset 64, found 64 bytes of data"},
      {"half a block", one(info("x", {48}, 2, 0)),
       at + "45: tensor 'x': expected rows of a multiple of 32 elements for Q4_0, found 48"},
      {"too many elements", one(info("x", {huge, huge}, 24, 0)),
       at + "53: tensor 'x': has over 2^64 - 1 elements or bytes"},
      {"offset between", one(info("x", {1}, 24, 16)),
       at + "49: tensor 'x': expected a data offset that is a multiple of 32, found 16"},
      {"data outside", one(info("x", {65}, 24, 0)),
       at + "64: tensor 'x': expected 65 bytes of I8 at data offset 0, found 64 bytes of data"},
      {"offset far outside", one(info("x", {64}, 24, UINT64_MAX - 31)),
       "expected 64 bytes of I8 at data offset 18446744073709551584, found 64"},
      {"no data", "GGUF" + u32(3) + u64(1) + u64(0) + info("x", {1}, 24, 0),
       at + "57: tensor 'x': expected 1 bytes of I8 at data offset 0, found 0 bytes of data"},
  });
}

TEST_CASE("GGUF tensors that have a name or data in common are refused") {
  const auto two = [](const std::string& a, const std::string& b) {
    return gguf_file({}, {a, b}, std::string(128, 'd'));
  };
  const std::string at = "kCorrupt: memory: offset 96: tensor ";
  check_all_bad({
      {"a name twice", two(info("x", {1}, 24, 0), info("x", {1}, 24, 32)),
       "kCorrupt: memory: tensor 'x': it comes twice"},
      {"overlap", two(info("a", {33}, 24, 0), info("b", {1}, 24, 32)),
       at + "'b': its data at data offset 32 overlaps other data, which ends at 33"},
      {"overlap in another order", two(info("a", {1}, 24, 32), info("b", {33}, 24, 0)),
       at + "'a': its data at data offset 32 overlaps"},
      {"one inside another", two(info("a", {128}, 24, 0), info("b", {8}, 24, 64)),
       "'b': its data at data offset 64 overlaps other data, which ends at 128"},
  });
  // A repeated name is found even if it comes before the next comparison of all names, or at once.
  for (const std::size_t again : {1U, 5U, 999U}) {
    std::vector<std::string> infos;
    for (std::size_t i = 0; i < again; ++i) infos.push_back(info(text("x{}", i), {0}, 24, 0));
    CHECK(open(gguf_file({}, infos, "")));
    infos.push_back(infos[again / 2]);
    CHECK(error_of(open(gguf_file({}, infos, ""))) == containing("it comes twice"));
  }
  const std::string bad = info("y", {1, 1, 1, 1, 1}, 24, 0);
  const std::string one = info("x", {0}, 24, 0);
  CHECK(error_of(open(gguf_file({}, {one, one, bad}, ""))) == containing("it comes twice"));
  CHECK(error_of(open(gguf_file({}, {one, bad}, ""))) == containing("expected at most 4 dimensions"));
}

TEST_CASE("a file of zeros that says it has a tensor in every 24 bytes is refused at its second tensor") {
  const std::uint64_t size = std::uint64_t{1} << 40;
  const auto storage = std::make_shared<RecordingStorage>(size);
  const std::string head = "GGUF" + u32(3) + u64(size / 24) + u64(0);
  const auto file = ByteSource::concatenation({source_of(head), ByteSource(storage)}).value();
  CHECK(error_of(open_gguf(file)) == containing("tensor '': it comes twice"));
  CHECK(storage->read().size() <= 2);
}

TEST_CASE("a read error in a GGUF file passes through") {
  const std::string file =
      gguf_file({entry("k", kString, string(std::string(9000, 'k')))}, {info("x", {1}, 24, 0)}, "d");
  for (const std::size_t intact : {std::size_t{0}, std::size_t{8}, file.size() - 40}) {
    CAPTURE(intact);
    const auto source =
        ByteSource::concatenation({source_of(file.substr(0, intact)), failing(100000, 0)}).value();
    CHECK(error_of(open_gguf(source)) == containing("kIo: the disk is on fire"));
  }
}

}  // namespace
}  // namespace etstream::gguf_test
