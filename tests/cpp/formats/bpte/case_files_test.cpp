// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/bundled_program.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "case_folder.h"
#include "formats/bpte/case_files.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_sources.h"
#include "test_tensor_files.h"

namespace etstream::case_files_test {
namespace {

using Names = std::vector<std::string>;

std::vector<MethodTestSuite> suites_of(const CasesFolder& folder, std::string_view json) {
  auto suites = folder.read(json);
  REQUIRE_MESSAGE(suites, suites.error().message);
  return std::move(suites).value();
}

Names methods_of(const std::vector<MethodTestSuite>& suites) {
  Names out;
  for (const MethodTestSuite& suite : suites) out.push_back(suite.method_name);
  return out;
}

/// Returns "3, 0x1.8p+0, true, null, tensor": doubles in hexadecimal, so that every bit counts.
std::string spelled(const std::vector<Value>& values) {
  struct Speller {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(const Tensor&) const { return "tensor"; }
    std::string operator()(std::int64_t value) const { return std::to_string(value); }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(double value) const {
      std::array<char, 64> buffer{};
      std::snprintf(buffer.data(), buffer.size(), "%a", value);
      return buffer.data();
    }
  };
  std::string out;
  for (const Value& value : values) out += (out.empty() ? "" : ", ") + std::visit(Speller{}, value);
  return out;
}

/// Returns the inputs of the one test case that has `values`.
std::vector<Value> inputs_of(const CasesFolder& folder, const std::string& values) {
  const auto suites =
      suites_of(folder, R"({"forward": [{"inputs": [)" + values + R"(], "expected_outputs": []}]})");
  REQUIRE(suites.size() == 1);
  REQUIRE(suites[0].test_cases.size() == 1);
  return suites[0].test_cases[0].inputs;
}

Tensor tensor_of(const CasesFolder& folder, const std::string& reference) {
  const std::vector<Value> inputs = inputs_of(folder, reference);
  REQUIRE(inputs.size() == 1);
  REQUIRE(std::holds_alternative<Tensor>(inputs[0]));
  return std::get<Tensor>(inputs[0]);
}

TEST_CASE(
    "integers, doubles to the last bit, those that JSON has no word for, true, false and null are values") {
  const CasesFolder folder;
  const std::string same = "0, -1, 9223372036854775807, -9223372036854775808, true, false, null";
  const std::pair<std::string, std::string> rows[] = {
      {same, same},
      {"1.0, 1e2, 0.1, -0.0", "0x1p+0, 0x1.9p+6, 0x1.999999999999ap-4, -0x0p+0"},
      {"5e-324, -1.7976931348623157e308, 9007199254740993.0",
       "0x0.0000000000001p-1022, -0x1.fffffffffffffp+1023, 0x1p+53"},
      {R"({"double": "inf"}, {"double": "-inf"}, {"double": "nan"})", "inf, -inf, nan"},
      {R"({"double_bits": "3ff8000000000000"}, {"double_bits": "0"})", "0x1.8p+0, 0x0p+0"}};
  for (const auto& [json, values] : rows) CHECK(spelled(inputs_of(folder, json)) == values);
  const auto nan = inputs_of(folder, R"({"double_bits": "fff8000000000001"})");
  CHECK(std::bit_cast<std::uint64_t>(std::get<double>(nan[0])) == 0xfff8000000000001U);
}

TEST_CASE("a tensor comes from a .npy file") {
  const CasesFolder folder;
  const Tensor tensor = tensor_of(folder, R"({"npy": "x.npy"})");
  CHECK(tensor.scalar_type == ScalarType::kInt16);
  CHECK(tensor.sizes == std::vector<std::int32_t>{2, 1});
  CHECK(tensor.dim_order == std::vector<std::uint8_t>{0, 1});
  CHECK(text_of(tensor.data) == "abcd");
}

TEST_CASE("a tensor comes from a safetensors file, whatever order its keys are in") {
  const CasesFolder folder;
  for (const std::string reference : {R"({"safetensors": "f.safetensors", "name": "x"})",
                                      R"({"name": "x", "safetensors": "f.safetensors"})"}) {
    CAPTURE(reference);
    const Tensor tensor = tensor_of(folder, reference);
    CHECK(tensor.scalar_type == ScalarType::kFloat32);
    CHECK(tensor.sizes == std::vector<std::int32_t>{1, 1});
    CHECK(tensor.dim_order == std::vector<std::uint8_t>{0, 1});
    CHECK(text_of(tensor.data) == "wxyz");
  }
}

TEST_CASE("a tensor comes from raw bytes with a dtype and a shape") {
  const CasesFolder folder;
  const Tensor tensor = tensor_of(folder, R"({"raw": "x.bin", "dtype": "bfloat16", "shape": [3, 1]})");
  CHECK(tensor.scalar_type == ScalarType::kBFloat16);
  CHECK(tensor.sizes == std::vector<std::int32_t>{3, 1});
  CHECK(text_of(tensor.data) == "123456");
}

TEST_CASE("a tensor may have no dimensions, or no elements") {
  const CasesFolder folder;
  put_file(folder.folder() / "one.bin", "x");
  put_file(folder.folder() / "empty.bin", "");
  const Tensor scalar = tensor_of(folder, R"({"raw": "one.bin", "dtype": "int8", "shape": []})");
  CHECK(scalar.sizes.empty());
  CHECK(scalar.dim_order.empty());
  const Tensor empty = tensor_of(folder, R"({"raw": "empty.bin", "dtype": "int64", "shape": [2, 0]})");
  CHECK(empty.sizes == std::vector<std::int32_t>{2, 0});
  CHECK(empty.data.size() == 0);
}

TEST_CASE("a tensor has the dimension order that it is given") {
  const CasesFolder folder;
  for (const std::string reference :
       {R"({"npy": "x.npy", "dim_order": [1, 0]})",
        R"({"dim_order": [1, 0], "safetensors": "f.safetensors", "name": "x"})",
        R"({"raw": "x.bin", "dtype": "int8", "dim_order": [1, 0], "shape": [2, 3]})"}) {
    CAPTURE(reference);
    const Tensor tensor = tensor_of(folder, reference);
    CHECK(tensor.dim_order == std::vector<std::uint8_t>{1, 0});
    CHECK(!tensor.any_order);
  }
}

TEST_CASE(
    "an array's elements keep their indices in the order that it is given, raw bytes are in it already") {
  const CasesFolder folder;
  put_file(folder.folder() / "m.npy", npy_file(npy_dict("|u1", "(2, 3)"), "abcdef"));
  put_file(folder.folder() / "f.npy", npy_file(npy_dict("|u1", "(2, 3)", "True"), "abcdef"));
  put_file(folder.folder() / "m.safetensors",
           safetensors_file(R"({"x":{"dtype":"U8","shape":[2,3],"data_offsets":[0,6]}})", "abcdef"));
  const auto bytes_of = [&](const std::string& reference) {
    return text_of(tensor_of(folder, reference).data);
  };
  CHECK(bytes_of(R"({"npy": "m.npy", "dim_order": [1, 0]})") == "adbecf");
  CHECK(bytes_of(R"({"npy": "f.npy", "dim_order": [1, 0]})") == "abcdef");
  CHECK(bytes_of(R"({"npy": "f.npy", "dim_order": [0, 1]})") == "acebdf");
  CHECK(bytes_of(R"({"safetensors": "m.safetensors", "name": "x", "dim_order": [1, 0]})") == "adbecf");
  CHECK(bytes_of(R"({"raw": "x.bin", "dtype": "uint8", "shape": [2, 3], "dim_order": [1, 0]})") == "123456");
  for (const std::string reference :
       {R"({"npy": "f.npy"})", R"({"raw": "x.bin", "dtype": "int8", "shape": [2, 3]})"}) {
    CHECK(tensor_of(folder, reference).any_order);
  }
}

TEST_CASE("a tensor has up to 16 dimensions") {
  const CasesFolder folder;
  const Tensor tensor =
      tensor_of(folder, R"({"raw": "x.bin", "dtype": "int8", "shape": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,2,3]})");
  CHECK(tensor.sizes.size() == 16);
  CHECK(tensor.dim_order == contiguous_dim_order(16));
}

TEST_CASE("paths are relative to the JSON file, absolute ones are taken as they are") {
  const CasesFolder folder;
  std::filesystem::create_directory(folder.folder() / "below");
  put_file(folder.folder() / "below/y.bin", "y");
  CHECK(text_of(tensor_of(folder, R"({"raw": "below/y.bin", "dtype": "int8", "shape": [1]})").data) == "y");
  CHECK(text_of(tensor_of(folder, R"({"raw": "./below/../x.bin", "dtype": "int8", "shape": [6]})").data) ==
        "123456");
  const std::string absolute = folder.folder() / "x.bin";
  CHECK(text_of(tensor_of(folder, R"({"raw": ")" + absolute + R"(", "dtype": "int8", "shape": [6]})").data) ==
        "123456");
}

TEST_CASE("a JSON file in the current folder refers to what is there") {
  const CasesFolder folder;
  put_file(folder.path(), R"({"forward": [{"inputs": [{"npy": "x.npy"}], "expected_outputs": []}]})");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.folder().path());
  const auto suites = read_test_cases("cases.json");
  std::filesystem::current_path(before);
  REQUIRE_MESSAGE(suites, suites.error().message);
  CHECK(suites->size() == 1);
}

TEST_CASE("an object of methods gives suites sorted by name, in bytes") {
  const CasesFolder folder;
  CHECK(methods_of(
            suites_of(folder, R"({"forward": [], "encode": [], "é": [], "": [], "Zoom": [], "for": []})")) ==
        Names{"", "Zoom", "encode", "for", "forward", "é"});
  CHECK(suites_of(folder, "{}").empty());
  CHECK(suites_of(folder, "[]").empty());
}

TEST_CASE("a list of suites keeps its order, and a method may come twice") {
  const CasesFolder folder;
  const auto suites = suites_of(folder, R"([
      {"method": "forward", "cases": [{"inputs": [1], "expected_outputs": []}]},
      {"cases": [{"inputs": [2], "expected_outputs": []}, {"inputs": [3], "expected_outputs": []}], "method": "encode"},
      {"method": "forward", "cases": []}])");
  CHECK(methods_of(suites) == Names{"forward", "encode", "forward"});
  CHECK(suites[0].test_cases.size() == 1);
  CHECK(suites[1].test_cases.size() == 2);
  CHECK(spelled(suites[1].test_cases[1].inputs) == "3");
  CHECK(suites[2].test_cases.empty());
}

TEST_CASE("a suite's files are named by its method if that is a plain word that no suite before has") {
  std::vector<BundledProgramFile::Suite> suites;
  for (const std::string& name :
       {std::string("azAZ09_"), std::string(64, 'n'), std::string(65, 'n'), std::string("azAZ09_"),
        std::string("`"), std::string("{"), std::string("@"), std::string("["), std::string("/"),
        std::string(":"), std::string()}) {
    suites.push_back({name, 0, 0});
  }
  Names expected = {"azAZ09_", std::string(64, 'n')};
  for (std::size_t i = 2; i < suites.size(); ++i) expected.push_back("suite-" + std::to_string(i));
  CHECK(suite_labels(suites) == expected);
}

TEST_CASE(
    "inputs and expected outputs go where they belong, in either order, and the outputs may be absent") {
  const CasesFolder folder;
  const auto suites = suites_of(folder, R"({"forward": [
      {"inputs": [1, 2], "expected_outputs": [true]},
      {"expected_outputs": [], "inputs": [0.5]}, {"inputs": [3]}]})");
  REQUIRE(suites.size() == 1);
  REQUIRE(suites[0].test_cases.size() == 3);
  CHECK(spelled(suites[0].test_cases[0].inputs) == "1, 2");
  CHECK(spelled(suites[0].test_cases[0].expected_outputs) == "true");
  CHECK(spelled(suites[0].test_cases[1].inputs) == "0x1p-1");
  CHECK(suites[0].test_cases[1].expected_outputs.empty());
  CHECK(suites[0].test_cases[2].expected_outputs.empty());
}

}  // namespace

}  // namespace etstream::case_files_test
