// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "formats/torch/unpickler.h"
#include "test_errors.h"
#include "test_sources.h"
#include "test_torch_files.h"

namespace etstream::hostile_pickles_test {
namespace {

using pickled::call;
using pickled::dict;
using pickled::global;
using pickled::integer;
using pickled::small_tensor;
using pickled::storage;
using pickled::tensor;
using pickled::tuple;
using pickled::whole;
using std::string_literals::operator""s;

constexpr std::uint64_t kOffset = 1000;  // of pickles in the file
const std::string kOrderedDict = global("collections", "OrderedDict");

Result<Unpickled> read(const std::string& pickle) { return unpickle(source_of(pickle), kOffset); }

struct BadPickle {
  std::string value;
  std::string error;
  std::size_t length = 1;  // of the instruction at its end, which is refused; 0 for all of it
};

void check_all_bad(const std::string& code, const std::vector<BadPickle>& pickles) {
  for (const BadPickle& bad : pickles) {
    CAPTURE(bad.value);
    const std::size_t length = bad.length == 0 ? bad.value.size() : bad.length;
    const std::uint64_t at = kOffset + whole("").size() - 1 + bad.value.size() - length;
    const std::string place = ": memory: offset " + std::to_string(at) + ": pickle: ";
    CHECK(error_of(read(whole(bad.value))) == containing(code + place + bad.error));
  }
}

TEST_CASE("other classes and functions are refused by name, however a pickle asks for them") {
  const std::string only = ", and etstream knows tensors and containers only; it never executes a pickle: ";
  const std::string in_a_dict = only + "keep the tensors in a dict by name, and save that with torch.save";
  check_all_bad(
      "kUnsupported",
      {
          {global("posix", "system"), "asks for 'posix.system'" + in_a_dict, 0},
          {"\x8c\5posix\x8c\6system\x93", "asks for 'posix.system'" + in_a_dict},
          {global("builtins", "eval"), "asks for 'builtins.eval'" + in_a_dict, 0},
          {global("__builtin__", "getattr"), "asks for '__builtin__.getattr'" + in_a_dict, 0},
          {global("torch", "load"), "asks for 'torch.load'" + in_a_dict, 0},
          {global("numpy", "float32"), "asks for 'numpy.float32'" + in_a_dict, 0},
          {global("collections", "OrderedDict.__init__"), "asks for 'collections.OrderedDict.__init__'", 0},
          {global("numpy.core.multiarray", "scalar"), "asks for 'numpy.core.multiarray.scalar'", 0},
          {global("torch.nn.modules.linear", "Linear"),
           "asks for 'torch.nn.modules.linear.Linear'" + only +
               "take the module's state_dict(), and save that with torch.save",
           0},
          {global("a\x1b[2J", "b"), R"(asks for 'a\x1b[2J.b')", 0},
      });
  const std::string objects = ", which makes other objects than tensors and containers; etstream never";
  check_all_bad("kUnsupported", {
                                    {"(i", "has instruction 0x69" + objects},
                                    {"(No", "has instruction 0x6f" + objects},
                                    {"P", "has instruction 0x50" + objects},
                                    {"\x82", "has instruction 0x82" + objects},
                                    {"\x83", "has instruction 0x83" + objects},
                                    {"\x84", "has instruction 0x84" + objects},
                                    {"NNN\x92", "has instruction 0x92" + objects},
                                    {"\x97", "has instruction 0x97" + objects},
                                    {"N\x98", "has instruction 0x98" + objects},
                                    {"Vgr\\u00f6\n", R"(has a text with escapes, 'gr\u00f6')", 0},
                                    {"S'\\x41'\n", R"(has a text with escapes, ''\x41'')", 0},
                                    {"Sbare\n", "has a text with escapes, 'bare'", 0},
                                    {"S'\n", "has a text with escapes, ''", 0},
                                });
}

TEST_CASE("a known class or function is called as what it is, or not at all") {
  const std::string may_be = "expected a function or class that may be called";
  const std::string called = "expected a class or function and its arguments on the stack";
  const std::string from_type = global("torch._tensor", "_rebuild_from_type_v2");
  const std::string of_type = "expected a function, a class and the arguments of a tensor";
  check_all_bad("kCorrupt",
                {
                    {global("torch", "FloatStorage") + ")R", may_be},
                    {global("torch", "float32") + ")R", may_be},
                    {kOrderedDict + "K\1R", called},
                    {"U\1a)R", called},
                    {small_tensor() + ")R", called},
                    {")R", "expected 2 on the stack, found 1"},
                    {call(global("torch._utils", "_rebuild_parameter"), "K\1"), "expected a tensor as arg"},
                    {call(global("torch.nn.parameter", "Parameter"), ""), "expected a tensor as argument"},
                    {call(kOrderedDict, "K\1"), "expected items of a dict as argument"},
                    {call(kOrderedDict, "](K\1e"), "expected a key and a value as an item of a dict"},
                    {call(kOrderedDict, "]K\1\x85" + "a"s), "expected a key and a value as an item"},
                    {call(from_type, ""), of_type},
                    {call(from_type, kOrderedDict + global("torch", "Tensor")), of_type},
                    {call(from_type, "N" + global("torch", "Tensor") + ")"), of_type},
                    {call(from_type, kOrderedDict + "N)"), of_type},
                    {call(from_type, from_type + global("torch", "Tensor") + ")"), of_type},
                    {call(from_type, kOrderedDict + kOrderedDict + ")"), of_type},
                    {call(from_type, kOrderedDict + global("torch", "Tensor") + "]"), of_type},
                });
}

TEST_CASE("storages and tensors that make no sense are corrupt") {
  const std::string wrong_id = "expected the id of a storage: 'storage', class, key, location, elements";
  const auto id = [](const std::string& tag, const std::string& type, const std::string& key,
                     const std::string& elements) {
    return tuple(tag + type + key + pickled::text("cpu") + elements) + "Q";
  };
  const std::string tag = pickled::text("storage");
  const std::string type = global("torch", "FloatStorage");
  check_all_bad("kCorrupt", {
                                {"NQ", wrong_id},
                                {")Q", wrong_id},
                                {"Q", "expected an item on the stack, found none"},
                                {tuple(tag + type + tag + tag) + "Q", wrong_id},
                                {id("U\1s", type, tag, "K\1"), wrong_id},
                                {id(tag, kOrderedDict, tag, "K\1"), wrong_id},
                                {id(tag, "N", tag, "K\1"), wrong_id},
                                {id(tag, type, "K\1", "K\1"), wrong_id},
                                {id(tag, type, tag, "N"), wrong_id},
                                {id(tag, type, tag, integer(-1)), wrong_id},
                            });
  const std::string v2 = global("torch._utils", "_rebuild_tensor_v2");
  const std::string floats = storage("FloatStorage", "0", 2);
  const std::string parts = "expected the storage, offset, sizes and strides of a tensor";
  const std::string sizes = "expected a tuple of at most 64 sizes or strides of a tensor";
  const std::string signs = "expected sizes and strides that are not negative";
  const std::vector<std::int64_t> many(65, 1);
  check_all_bad("kCorrupt", {
                                {call(v2, ""), parts},
                                {call(v2, floats + "K\1" + ")"), parts},
                                {call(v2, "NK\1))"), parts},
                                {call(v2, floats + "N))"), parts},
                                {tensor(floats, -1, {2}, {1}), parts},
                                {tensor(floats, 0, {-2}, {1}), signs},
                                {tensor(floats, 0, {2}, {-1}), signs},
                                {tensor(floats, 0, {INT64_MIN}, {1}), signs},
                                {call(v2, floats + "K\1(Nt)"), signs},
                                {call(v2, floats + "K\1N)"), sizes},
                                {call(v2, floats + "K\1)}"), sizes},
                                {tensor(floats, 0, many, {}), sizes},
                                {tensor(floats, 0, {}, many), sizes},
                            });
  const std::string v3 = global("torch._utils", "_rebuild_tensor_v3");
  check_all_bad("kCorrupt", {{call(v3, floats + "K\1))\x89}"), parts}});
}

TEST_CASE("what replaces the content of a tensor, or says a storage again in another way, is refused") {
  const std::string replaces = "replaces the content of a tensor";
  const std::string data = dict(pickled::text("data") + small_tensor());
  const std::string with_state = global("torch._utils", "_rebuild_parameter_with_state");
  check_all_bad(
      "kUnsupported",
      {
          {small_tensor() + "Nb", replaces + ", which torch.save never asks for"},
          {storage("FloatStorage", "0", 2) + "Nb", replaces},
          {call(with_state, small_tensor() + "NN" + data), replaces + " by its attribute 'data', which"},
          {call(with_state, small_tensor() + "NN" + tuple("N" + data)), replaces + " by its attribute"},
      });
  const std::string first = storage("FloatStorage", "0", 2);
  const std::string as_before = "expected storage '0' with 2 elements of float32, as before, found ";
  check_all_bad("kCorrupt",
                {
                    {first + storage("IntStorage", "0", 2), as_before + "2 elements of int32"},
                    {first + storage("FloatStorage", "0", 1), as_before + "1 element of float32"},
                    {first + storage("UntypedStorage", "0", 2), as_before + "2 elements of uint8"},
                });
  CHECK(read(whole(first + first + storage("FloatStorage", "1", 0) + storage("IntStorage", "1", 0))));
}

TEST_CASE("a stack, marks and a memo that do not have what is asked for are corrupt") {
  const std::string item = "expected an item on the stack, found none";
  const std::string mark = "expected a mark on the stack, found none";
  const std::string kept = "expected the number of a value that was kept, found ";
  check_all_bad("kCorrupt", {
                                {"0", item},
                                {"2", item},
                                {"N(2", item},
                                {"q\1", item, 2},
                                {"(q\1", item, 2},
                                {"\x94", item},
                                {"b", item},
                                {"1", mark},
                                {"t", mark},
                                {"Nl", mark},
                                {"d", mark},
                                {"u", mark},
                                {"]e", mark},
                                {"\x90", mark},
                                {"\x91", mark},
                                {"N\x86", "expected 2 on the stack, found 1"},
                                {"N(N\x86", "expected 2 on the stack, found 1"},
                                {"NN\x87", "expected 3 on the stack, found 2"},
                                {"a", "expected 1 on the stack, found 0"},
                                {"}Na", "expected a list on the stack"},
                                {"(Ne", "expected a list on the stack"},
                                {"]NNs", "expected a dict on the stack"},
                                {"}(Nu", "expected keys and values, found an odd number"},
                                {"(Nd", "expected keys and values, found an odd number"},
                                {"NN\x93", "expected the names of a module and a class on the stack"},
                                {"NU\1a\x93", "expected the names of a module and a class on the stack"},
                                {"U\1aN\x93", "expected the names of a module and a class on the stack"},
                                {"h\1", kept + "1", 2},
                                {"Nq\1h\2", kept + "2", 2},
                                {"j\xff\xff\xff\xff", kept + "4294967295", 5},
                                {"g-1\n", kept + "-1", 4},
                                {"\xff", "expected an instruction of a pickle, found byte 0xff"},
                                {"\0"s, "expected an instruction of a pickle, found byte 0x0"},
                            });
  CHECK(error_of(read(".")) == exactly("kCorrupt: memory: offset 1000: pickle: " + item));
  CHECK(error_of(read("N(.")) == exactly("kCorrupt: memory: offset 1002: pickle: " + item));
}

TEST_CASE("lengths and numbers beyond all bounds are corrupt, and nothing is allocated for them") {
  const std::string end = " before its end at 1012, found ";  // 12 bytes are the pickle
  const auto of_12_bytes = [](std::string value) { return value + std::string(9 - value.size(), 'x'); };
  check_all_bad(
      "kCorrupt",
      {
          {of_12_bytes("\x8c\xff"), "expected 255 bytes" + end + "8", 0},
          {of_12_bytes("\x8a\xff"), "expected 255 bytes" + end + "8", 0},
          {of_12_bytes("X\xff\xff\xff\xff"), "expected 4294967295 bytes" + end + "5", 0},
          {of_12_bytes("B\xff\xff\xff\xff"), "expected 4294967295 bytes" + end + "5", 0},
          {of_12_bytes("\x8b\xff\xff\xff\xff"), "expected 4294967295 bytes" + end + "5", 0},
          {"\x8d\xff\xff\xff\xff\xff\xff\xff\xff", "expected 18446744073709551615 bytes" + end + "1", 0},
          {"\x8e\xff\xff\xff\xff\xff\xff\xff\xff", "expected 18446744073709551615 bytes" + end + "1", 0},
          {"\x96\xff\xff\xff\xff\xff\xff\xff\x7f", "expected 9223372036854775807 bytes" + end + "1", 0},
          {"I9223372036854775808\n", "expected an integer of 64 bits, found '9223372036854775808'", 0},
          {"L-9223372036854775809L\n", "expected an integer of 64 bits, found '-9223372036854775809'", 0},
          {"I\n", "expected an integer of 64 bits, found ''", 0},
          {"I1 \n", "expected an integer of 64 bits, found '1 '", 0},
          {"Ix\n", "expected an integer of 64 bits, found 'x'", 0},
          {"Nr\xff\xff\xff\xff" + "g4294967296\n"s, "expected the number of a value", 12},
          {"cposix", "expected the end of a line, found that of the pickle", 0},
          {"cposix\nsystem", "expected the end of a line, found that of the pickle", 0},
      });
}

TEST_CASE("a pickle that is cut anywhere is corrupt, and the error says where") {
  const std::string pickle = whole(dict(pickled::text("w") + small_tensor() + "U\1nF1.5\n") + "q\1h\1a0");
  const std::string value = whole(dict(pickled::text("w") + small_tensor() + "U\1nF1.5\n") + "q\1h\1" + "0");
  REQUIRE(read(value));
  CHECK_FALSE(read(pickle));
  for (std::size_t size = 0; size < value.size(); ++size) {
    CAPTURE(size);
    const auto cut = read(value.substr(0, size));
    CHECK(code_of(cut) == "kCorrupt");
    CHECK(error_of(cut) == containing("memory: offset "));
    REQUIRE_FALSE(cut);
    CHECK(cut.error().offset.value() >= kOffset);
    CHECK(cut.error().offset.value() <= kOffset + size);
  }
}

std::string repeated_text(const std::string& what, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += what;
  return out;
}

TEST_CASE("containers in each other, of any depth and in circles, take no more than their instructions") {
  constexpr int kMany = 40'000;
  for (const std::string& value :
       {"]q\1h\1a"s, "}q\1U\1ah\1s"s, "]q\1](h\1h\1eq\2h\2a0"s,
        repeated_text("](", kMany) + repeated_text("e", kMany),
        repeated_text("}U\1a", kMany) + "N" + repeated_text("s", kMany),
        repeated_text("(", kMany) + "N" + repeated_text("t", kMany), "N"s + repeated_text("\x85", kMany)}) {
    const auto pickle = read(whole(value));
    REQUIRE_MESSAGE(pickle, pickle.error().message);
    CHECK(pickle->containers.size() <= value.size());
  }
}

TEST_CASE("a pickle can't have containers of nothing, or the same things, over and over") {
  constexpr int kMany = 400'000;
  const std::string pairs = "](" + repeated_text("K\1K\2\x86", 20'000) + "e\x85q\2";
  const std::string sizes = "(" + repeated_text("K\1", 64) + "tq\2";
  const std::string arguments = "(" + storage("FloatStorage", "0", 1) + "K\1h\2h\2tq\3";
  const std::string rebuild = global("torch._utils", "_rebuild_tensor_v2") + "q\1";
  for (const std::string& value :
       {repeated_text("]", kMany), repeated_text(")", kMany), "N" + repeated_text("\x85", kMany),
        kOrderedDict + "q\1" + pairs + repeated_text("h\1h\2R0", kMany),
        rebuild + sizes + arguments + repeated_text("h\1h\3R0", kMany),
        rebuild + "(" + storage("FloatStorage", "0", 1) + "K\1))tq\3" + repeated_text("h\1h\3R0", kMany)}) {
    const auto pickle = read(whole(value));
    CHECK(error_of(pickle) == containing("kCorrupt: memory: offset "));
    CHECK(error_of(pickle) ==
          containing(": pickle: expected containers and tensors in proportion to its bytes, "
                     "found the same over and over"));
  }
  for (const std::string one : {"N", "(", "\x88"}) {
    CHECK(error_of(read(whole(repeated_text(one, 1'100'000)))) ==
          containing("expected at most 1048576 items on the stack, found more"));
  }
}

TEST_CASE("a pickle of more than 64 MiB is refused before it is read") {
  CHECK(error_of(unpickle(failing(kLargestPickle + 1, 0), 7)) ==
        exactly("kTooLarge: fill: offset 7: expected a pickle of at most 67108864 bytes, found 67108865"));
  CHECK(error_of(unpickle(failing(kLargestPickle, 0), 7)) == containing("the disk is on fire"));
}

}  // namespace
}  // namespace etstream::hostile_pickles_test
