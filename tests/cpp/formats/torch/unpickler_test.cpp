// SPDX-License-Identifier: BSD-3-Clause
#include "formats/torch/unpickler.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "test_errors.h"
#include "test_sources.h"
#include "test_torch_files.h"

namespace etstream::unpickler_test {
namespace {

using pickled::call;
using std::string_literals::operator""s;
using pickled::dict;
using pickled::global;
using pickled::integer;
using pickled::numbers;
using pickled::small_tensor;
using pickled::storage;
using pickled::tensor;
using pickled::tuple;
using pickled::whole;

constexpr std::uint64_t kOffset = 1000;  // of pickles in the file
const std::string kOrderedDict = global("collections", "OrderedDict");

Result<Unpickled> read(const std::string& pickle) { return unpickle(source_of(pickle), kOffset); }

std::string shown(const Unpickled& pickle, const PickleValue& value);

std::string shown_items(const Unpickled& pickle, const PickleValue& value) {
  std::string out;
  for (const PickleValue& item : pickle.containers.at(static_cast<std::size_t>(value.number))) {
    out += (out.empty() ? "" : " ") + shown(pickle, item);
  }
  return out;
}

/// Returns a value as a test compares it: "{'a' 1}", "(tensor 0)".
std::string shown(const Unpickled& pickle, const PickleValue& value) {
  switch (value.kind) {
    case PickleValue::Kind::kOther:
      return "other";
    case PickleValue::Kind::kBool:
      return value.number != 0 ? "true" : "false";
    case PickleValue::Kind::kInteger:
      return std::to_string(value.number);
    case PickleValue::Kind::kText:
      return quote(pickle.texts.at(static_cast<std::size_t>(value.number)));
    case PickleValue::Kind::kTuple:
      return "(" + shown_items(pickle, value) + ")";
    case PickleValue::Kind::kList:
      return "[" + shown_items(pickle, value) + "]";
    case PickleValue::Kind::kDict:
      return "{" + shown_items(pickle, value) + "}";
    case PickleValue::Kind::kGlobal:
      return "global";
    case PickleValue::Kind::kStorage:
      return "storage " + std::to_string(value.number);
    case PickleValue::Kind::kTensor:
      return "tensor " + std::to_string(value.number);
    case PickleValue::Kind::kOpaque:
      return "opaque";
  }
  return "no kind";
}

/// Returns the result of reading a pickle of this value alone.
std::string value_of(const std::string& value) {
  const auto pickle = read(whole(value));
  REQUIRE_MESSAGE(pickle, pickle.error().message);
  return shown(*pickle, pickle->root);
}

TEST_CASE("every instruction that makes numbers, texts and containers is known") {
  struct Row {
    std::string value;
    std::string is;
  };
  const std::vector<Row> rows = {
      {"N", "other"},
      {"\x88", "true"},
      {"\x89", "false"},
      {"K\xff", "255"},
      {"M\xff\xff", "65535"},
      {"J\xfe\xff\xff\xff", "-2"},
      {"I-12\n", "-12"},
      {"L-12L\n", "-12"},
      {"I9223372036854775807\n", "9223372036854775807"},
      {"\x8a\0"s, "0"},
      {"\x8a\1\xff", "-1"},
      {"\x8a\2\xff\0"s, "255"},
      {"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", "9223372036854775807"},
      {"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\1", "other"},
      {"\x8b\1\0\0\0\7"s, "7"},
      {"G12345678", "other"},
      {"F1.5\n", "other"},
      {"X\2\0\0\0ab"s, "'ab'"},
      {"\x8c\2\xc3\xb6", "'ö'"},
      {"\x8d\1\0\0\0\0\0\0\0a"s, "'a'"},
      {"U\1q", "'q'"},
      {"T\1\0\0\0q"s, "'q'"},
      {"Vq\n", "'q'"},
      {"S'q'\n", "'q'"},
      {"S\"q\"\n", "'q'"},
      {"S''\n", "''"},
      {"C\1q", "other"},
      {"B\1\0\0\0q"s, "other"},
      {"\x8e\1\0\0\0\0\0\0\0q"s, "other"},
      {"\x96\1\0\0\0\0\0\0\0q"s, "other"},
      {")", "()"},
      {"]", "[]"},
      {"}", "{}"},
      {"\x8f", "[]"},
      {"(K\1K\2t", "(1 2)"},
      {"(K\1K\2l", "[1 2]"},
      {"(K\1K\2d", "{1 2}"},
      {"(K\1\x91", "[1]"},
      {"K\1\x85", "(1)"},
      {"K\1K\2\x86", "(1 2)"},
      {"K\1K\2K\3\x87", "(1 2 3)"},
      {"]K\1a", "[1]"},
      {"](K\1K\2e", "[1 2]"},
      {"\x8f(K\1\x90", "[1]"},
      {"}K\1K\2s", "{1 2}"},
      {"}(K\1K\2u", "{1 2}"},
      {"\x96\0\0\0\0\0\0\0\0(K\1e"s, "other"},
      {"K\1NN00", "1"},
      {"K\1(K\2K\3" + "1"s, "1"},
      {"K\1(0", "1"},
      {"(K\1K\2"
       "0l"s,
       "[1]"},
      {"K\1" + "2\x86"s, "(1 1)"},
      {"]q\5K\1ah\5\x86", "([1] [1])"},
      {"]r\5\1\0\0K\1aj\5\1\0\0\x86"s, "([1] [1])"},
      {"]p5\nK\1ag5\n\x86", "([1] [1])"},
      {"]\x94K\1ah\0\x86"s, "([1] [1])"},
      {kOrderedDict + ")R", "{}"},
      {kOrderedDict + ")\x81", "{}"},
      {kOrderedDict + "](K\1K\2\x86" + "e\x85R", "{1 2}"},
      {kOrderedDict + "}K\1K\2s\x85R", "{1 2}"},
      {kOrderedDict + "](K\1K\2e\x85\x85R", "{1 2}"},
      {kOrderedDict + ")R(K\1K\2u", "{1 2}"},
      {kOrderedDict + ")RK\1b", "{}"},
      {global("collections", "Counter") + "}K\1K\2s\x85R", "{1 2}"},
      {global("collections", "defaultdict") + global("__builtin__", "dict") + "\x85R", "{}"},
      {global("collections", "defaultdict") + "N}K\1K\2s\x86R", "{1 2}"},
      {global("collections", "defaultdict") + ")R", "{}"},
      {global("torch", "Size") + "K\1K\2\x86\x85R", "(1 2)"},
      {global("__builtin__", "set") + "](K\1e\x85R", "[1]"},
      {global("builtins", "frozenset") + ")R", "[]"},
      {"\x8c\x0b" + "collections\x8c\x0bOrderedDict\x93)R"s, "{}"},
      {global("torch", "device") + "U\3cpu\x85R", "other"},
      {global("_codecs", "encode") + "U\1aU\6latin1\x86R", "other"},
      {global("torch", "float16"), "global"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.value);
    CHECK(value_of(row.value) == row.is);
  }
}

TEST_CASE("a pickle says its protocol, which is at most 5, and may come in frames") {
  for (const char protocol : {'\0', '\1', '\2', '\3', '\4', '\5'}) CHECK(read("\x80"s + protocol + "N."));
  CHECK(read("N."));
  CHECK(read("\x80\4\x95" + little_endian(2, 8) + "N."));
  CHECK(error_of(read("\x80\6N.")) ==
        exactly("kUnsupported: memory: offset 1000: pickle: is of protocol 6, expected at most 5"));
}

// tests/peer/test_torch_files.py compares what torch makes of all kinds of tensors, and of random pickles.
TEST_CASE("buffers, what old releases of torch called, and tensors of 64 dimensions are tensors") {
  const std::string parts = storage("FloatStorage", "0", 2) + integer(0) + numbers({2}) + numbers({1});
  const std::vector<std::int64_t> most(64, 1);
  for (const std::string& value :
       {small_tensor(), call(global("torch.nn.parameter", "Buffer"), small_tensor()),
        call(global("torch._utils", "_rebuild_tensor"), parts),
        tensor(storage("FloatStorage", "0", 2), 0, most, most)}) {
    CHECK(value_of(value) == "tensor 0");
  }
}

}  // namespace
}  // namespace etstream::unpickler_test
