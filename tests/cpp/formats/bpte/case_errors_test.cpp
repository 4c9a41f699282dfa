// SPDX-License-Identifier: BSD-3-Clause
//
// Bad files of test cases, each with its error.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "case_folder.h"
#include "test_errors.h"

namespace etstream::case_errors_test {
namespace {

struct BadFile {
  std::string json;
  std::string error;  // without the path of the JSON file; PATH/ stands for the folder
};

void check_all_bad(const std::vector<BadFile>& files) {
  const CasesFolder folder;
  for (const BadFile& bad : files) {
    CAPTURE(bad.json);
    std::string expected = bad.error;
    const std::string stand_in = "PATH/";
    for (auto at = expected.find(stand_in); at != std::string::npos; at = expected.find(stand_in)) {
      expected.replace(at, stand_in.size(), folder.folder() / "");
    }
    CHECK(error_of(folder.read(bad.json)) == exactly(expected));
  }
}

std::string invalid(std::string_view place_and_message) {
  return "kInvalidArgument: PATH/cases.json: line " + std::string(place_and_message);
}

/// Returns one case of the method "forward" with `values` as inputs.
std::string with_inputs(std::string_view values) {
  return "{\"forward\": [{\"inputs\":\n[" + std::string(values) + "], \"expected_outputs\": []}]}";
}

// Errors that a person makes are in tests/cli/cases/names_what_is_wrong.sh.
TEST_CASE("what is not JSON, or has a part of another kind, is told with its line") {
  const CasesFolder folder;
  const std::string start = "kCorrupt: " + folder.path() + ": line ";
  CHECK(error_of(folder.read("{")) == containing(start + "1: not JSON: "));
  CHECK(error_of(folder.read("")) == containing("cases.json: is empty"));
  CHECK(error_of(folder.read("<html><body>Not Found")) == containing("cases.json: is an HTML page"));
  CHECK(error_of(folder.read("{\n\"forward\": [\n}")) == containing(start + "3: not JSON: "));
  CHECK(error_of(folder.read("[{\"method\": 1}]")) == containing("expected a string, found an integer"));
  CHECK(error_of(folder.read("[{\"cases\": []}]")) == containing("a suite needs method and cases"));
  CHECK(error_of(folder.read("{\"a\": [{\"inputs\": 1}]}")) ==
        containing("method 'a': test case 0: expected an array, found an integer"));
}

TEST_CASE("a file of another shape is refused with the place that is wrong") {
  check_all_bad({
      {"\"forward\"", invalid("1: expected an object of methods, or an array of suites, found a string")},
      {"{\n\"forward\": {}}", invalid("2: method 'forward': expected an array, found an object")},
      {"{\"a\": [], \"forward\": [{\"inputs\": [], \"expected_outputs\": []},\n{\"expected_outputs\": []}]}",
       invalid("2: method 'forward': test case 1: a test case needs inputs")},
      {"{\"forward\": [{\"inputs\": [],\n\"inputs\": []}]}",
       invalid("2: method 'forward': test case 0: 'inputs' comes twice")},
      {"{\"forward\": [{\"inputs\": [[]]}]}",
       invalid("1: method 'forward': test case 0: input 0: expected a number, true, false, null, or an "
               "object that gives a tensor, found an array")},
      {"{\"forward\": [{\"inputs\": [1], \"expected_outputs\":\n[\n1, {}]}]}",
       invalid("3: method 'forward': test case 0: expected output 1: a tensor is given by one of npy, "
               "safetensors and raw, not by none")},
      {"[{\"method\": \"a\", \"method\": \"b\"}]", invalid("1: method 'a': 'method' comes twice")},
      {"[{\"method\": \"a\", \"cases\": [], \"cases\": []}]", invalid("1: method 'a': 'cases' comes twice")},
      {"[{\"method\": \"a\", \"inputs\": []}]",
       invalid("1: method 'a': expected method or cases, found a key 'inputs'")},
      {"[{\"method\": \"a\", \"cases\": {}}]", invalid("1: method 'a': expected an array, found an object")},
  });
}

TEST_CASE("an error is not blamed on the test case or the method before, nor on one that is not there") {
  check_all_bad({
      {"[1]", invalid("1: expected an object, found an integer")},
      {"{\"forward\": [{\"inputs\": [], \"expected_outputs\": []}, 5]}",
       invalid("1: method 'forward': test case 1: expected an object, found an integer")},
      {"[{\"method\": \"a\", \"cases\": [{\"inputs\": [], \"expected_outputs\": []}]}, 5]",
       invalid("1: expected an object, found an integer")},
      {"[{\"method\": \"a\", \"cases\": [{\"inputs\": [], \"expected_outputs\": []}], \"more\": 1}]",
       invalid("1: method 'a': expected method or cases, found a key 'more'")},
  });
}

TEST_CASE("a value that is no value is refused with its place") {
  const std::string place = "2: method 'forward': test case 0: input 0: ";
  const std::string keys =
      "expected each of npy, safetensors, name, raw, dtype, shape, dim_order and double at most once, found "
      "a key ";
  check_all_bad({
      {with_inputs("{\"double\": 1.5}"),
       invalid(place + "expected a string, found a number with point or exponent")},
      {with_inputs("{\"double_bits\": \"12345678123456789\"}"),
       invalid(place + "double_bits '12345678123456789' is not a hexadecimal number of 64 bits")},
      {with_inputs("{\"double_bits\": \"\"}"),
       invalid(place + "double_bits '' is not a hexadecimal number of 64 bits")},
      {with_inputs("{\"npy\": 1}"), invalid(place + "expected a string, found an integer")},
      {with_inputs("{\"npy\": \"x.npy\", \"npy\": \"x.npy\"}"), invalid(place + keys + "'npy'")},
      {with_inputs("{\"shape\": [], \"shape\": []}"), invalid(place + keys + "'shape'")},
      {with_inputs("{}"),
       invalid(place + "a tensor is given by one of npy, safetensors and raw, not by none")},
      {with_inputs("{\"npy\": \"x.npy\", \"raw\": \"x.bin\"}"),
       invalid(place + "a tensor is given by one of npy, safetensors and raw, not by several")},
      {with_inputs("{\"safetensors\": \"f.safetensors\"}"),
       invalid(place + "safetensors and name go together")},
      {with_inputs("{\"npy\": \"x.npy\", \"name\": \"x\"}"),
       invalid(place + "safetensors and name go together")},
      {with_inputs("{\"raw\": \"x.bin\", \"dtype\": \"int8\"}"),
       invalid(place + "raw, dtype and shape go together")},
      {with_inputs("{\"npy\": \"x.npy\", \"shape\": [2]}"),
       invalid(place + "raw, dtype and shape go together")},
      {with_inputs("{\"raw\": \"x.bin\", \"dtype\": \"int8\", \"shape\": 6}"),
       invalid(place + "expected an array, found an integer")},
      {with_inputs("{\"raw\": \"x.bin\", \"dtype\": \"int8\", \"shape\": [6.0]}"),
       invalid(place + "expected an integer, found a number with point or exponent")},
      {with_inputs("{\"raw\": \"x.bin\", \"dtype\": \"int8\", \"shape\": [-6]}"),
       invalid(place + "a dimension has size -6, expected 0 to 2147483647")},
      {with_inputs(
           "{\"raw\": \"x.bin\", \"dtype\": \"int8\", \"shape\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2,3]}"),
       invalid(place + "a tensor has 17 dimensions, ExecuTorch's have at most 16")},
      {with_inputs("{\"raw\": \"x.bin\", \"dtype\": \"int8\", \"shape\": [5]}"),
       invalid(place + "PATH/x.bin: is 6 bytes, expected 5 for the shape and dtype given")},
  });
}

TEST_CASE("a double and a tensor in one value are refused") {
  const CasesFolder folder;
  CHECK(code_of(folder.read(with_inputs("{\"double\": \"nan\", \"npy\": \"x.npy\"}"))) == "kInvalidArgument");
  CHECK(code_of(folder.read(with_inputs("{\"shape\": [1], \"double\": \"nan\"}"))) == "kInvalidArgument");
}

TEST_CASE("a tensor's file that is missing or bad is named, with the value that asked for it") {
  struct Row {
    std::string reference;
    std::string code;
    std::string error;
  };
  const std::vector<Row> rows = {
      {R"({"npy": ""})", "kInvalidArgument", "it is a folder"},
      {R"({"npy": "x.bin"})", "kCorrupt", "x.bin: not a .npy file: expected at least 8 bytes at offset 0"},
      {R"({"npy": "big.npy"})", "kUnsupported", "big.npy: elements of type '>i2' are big-endian"},
      {R"({"safetensors": "f.safetensors", "name": "y"})", "kNotFound",
       "f.safetensors: there is no tensor 'y' among its 3"},
      {R"({"safetensors": "f.safetensors", "name": "scale"})", "kUnsupported",
       "f.safetensors: tensor 'scale' is of type 'F8_E8M0', which ExecuTorch has no tensors of"},
      {R"({"safetensors": "f.safetensors", "name": "wide"})", "kUnsupported",
       "tensor 'wide' is of type 'U8 [0, 2147483648]', which ExecuTorch has no tensors of"},
      {R"({"safetensors": "bad.safetensors", "name": "x"})", "kCorrupt",
       "bad.safetensors: line 1: not JSON: "},
      {R"({"safetensors": "gone.safetensors", "name": "x"})", "kNotFound", "gone.safetensors': No such file"},
      {R"({"raw": "gone.bin", "dtype": "int8", "shape": [1]})", "kNotFound",
       "gone.bin': No such file or directory"},
  };
  const CasesFolder folder;
  const std::string place = folder.path() + ": line 2: method 'forward': test case 0: input 0: ";
  for (const Row& row : rows) {
    CAPTURE(row.reference);
    const auto suites = folder.read(with_inputs(row.reference));
    CHECK(code_of(suites) == exactly(row.code));
    CHECK(error_of(suites) == containing(place));
    CHECK(error_of(suites) == containing(row.error));
  }
}

TEST_CASE("a path with a zero byte does not open the file whose name is before it") {
  const CasesFolder folder;
  CHECK_FALSE(folder.read(with_inputs("{\"npy\": \"x.npy\\u0000.old\"}")));
}

}  // namespace

}  // namespace etstream::case_errors_test
