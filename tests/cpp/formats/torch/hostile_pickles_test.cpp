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
          {global("__builtin__", "getattr"), "asks for '__builtin__.getattr'" + in_a_dict, 0},
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
                                    {"S'\n", "has a text with escapes, ''", 0},
                                });
}

// tests/peer/test_torch_files.py compares many more with torch.load.
TEST_CASE("a pickle that makes no sense says what was expected, and where") {
  const std::string floats = storage("FloatStorage", "0", 2);
  const std::string of_state = dict(pickled::text("data") + small_tensor());
  const std::string with_state = global("torch._utils", "_rebuild_parameter_with_state");
  check_all_bad("kUnsupported",
                {{small_tensor() + "Nb", "replaces the content of a tensor, which torch.save never asks for"},
                 {call(with_state, small_tensor() + "NN" + of_state),
                  "replaces the content of a tensor by its attribute 'data', which"}});
  check_all_bad(
      "kCorrupt",
      {{global("torch", "FloatStorage") + ")R", "expected a function or class that may be called"},
       {call(kOrderedDict, "K\1"), "expected items of a dict as argument"},
       {call(global("torch.nn.parameter", "Parameter"), ""), "expected a tensor as argument"},
       {"NQ", "expected the id of a storage: 'storage', class, key, location, elements"},
       {tensor(floats, -1, {2}, {1}), "expected the storage, offset, sizes and strides of a tensor"},
       {tensor(floats, 0, {INT64_MIN}, {1}), "expected sizes and strides that are not negative"},
       {tensor(floats, 0, std::vector<std::int64_t>(65, 1), {}), "expected a tuple of at most 64 sizes"},
       {floats + storage("FloatStorage", "0", 1),
        "expected storage '0' with 2 elements of float32, as before, found 1 element of float32"},
       {"0", "expected an item on the stack, found none"},
       {"t", "expected a mark on the stack, found none"},
       {"N\x86", "expected 2 on the stack, found 1"},
       {"]NNs", "expected a dict on the stack"},
       {"(Nd", "expected keys and values, found an odd number"},
       {"j\xff\xff\xff\xff", "expected the number of a value that was kept, found 4294967295", 5},
       {"\xff", "expected an instruction of a pickle, found byte 0xff"},
       {"\x8d\xff\xff\xff\xff\xff\xff\xff\xff", "expected 18446744073709551615 bytes before its end", 0},
       {"I9223372036854775808\n", "expected an integer of 64 bits, found '9223372036854775808'", 0},
       {"cposix\nsystem", "expected the end of a line, found that of the pickle", 0}});
}

TEST_CASE("a pickle that is cut anywhere is corrupt, and any byte may be another, and the error says where") {
  const std::string pickle = whole(dict(pickled::text("w") + small_tensor() + "U\1nF1.5\n") + "q\1h\1" + "0");
  REQUIRE(read(pickle));
  const auto check_error = [&](const Result<Unpickled>& found) {
    CHECK(error_of(found) == containing("memory: offset "));
    CHECK(found.error().offset.value() >= kOffset);
    CHECK(found.error().offset.value() <= kOffset + pickle.size());
  };
  for (std::size_t at = 0; at < pickle.size(); ++at) {
    CAPTURE(at);
    const auto cut = read(pickle.substr(0, at));
    REQUIRE(code_of(cut) == "kCorrupt");
    check_error(cut);
    std::string changed = pickle;
    for (int value = 0; value < 256; ++value) {
      changed[at] = static_cast<char>(value);
      if (const auto found = read(changed); !found) check_error(found);
    }
  }
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
