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

TEST_CASE(
    "a tensor comes from a .npy or safetensors file, or from raw bytes, in the order that it is given") {
  using Sizes = std::vector<std::int32_t>;
  using Order = std::vector<std::uint8_t>;
  struct Row {
    std::string reference;
    ScalarType type;
    Sizes sizes;
    Order order;
    std::string bytes;
  };
  const Sizes most = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3};
  const CasesFolder folder;
  put_file(folder.folder() / "one.bin", "x");
  put_file(folder.folder() / "empty.bin", "");
  for (const Row& row : std::vector<Row>{
           {R"({"npy": "x.npy"})", ScalarType::kInt16, {2, 1}, {0, 1}, "abcd"},
           {R"({"npy": "x.npy", "dim_order": [1, 0]})", ScalarType::kInt16, {2, 1}, {1, 0}, "abcd"},
           {R"({"safetensors": "f.safetensors", "name": "x"})", ScalarType::kFloat32, {1, 1}, {0, 1}, "wxyz"},
           {R"({"dim_order": [1, 0], "name": "x", "safetensors": "f.safetensors"})",
            ScalarType::kFloat32,
            {1, 1},
            {1, 0},
            "wxyz"},
           {R"({"raw": "x.bin", "dtype": "bfloat16", "shape": [3, 1]})",
            ScalarType::kBFloat16,
            {3, 1},
            {0, 1},
            "123456"},
           {R"({"raw": "x.bin", "dtype": "int8", "dim_order": [1, 0], "shape": [2, 3]})",
            ScalarType::kInt8,
            {2, 3},
            {1, 0},
            "123456"},
           {R"({"raw": "x.bin", "dtype": "int8", "shape": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,2,3]})",
            ScalarType::kInt8, most, contiguous_dim_order(16), "123456"},
           {R"({"raw": "one.bin", "dtype": "int8", "shape": []})", ScalarType::kInt8, {}, {}, "x"},
           {R"({"raw": "empty.bin", "dtype": "int64", "shape": [2, 0]})",
            ScalarType::kInt64,
            {2, 0},
            {0, 1},
            ""},
       }) {
    CAPTURE(row.reference);
    const Tensor tensor = tensor_of(folder, row.reference);
    CHECK(tensor.scalar_type == row.type);
    CHECK(tensor.sizes == row.sizes);
    CHECK(tensor.dim_order == row.order);
    CHECK(text_of(tensor.data) == row.bytes);
    CHECK(tensor.any_order == (row.reference.find("dim_order") == std::string::npos));
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

TEST_CASE("an object of methods gives suites sorted by name, in bytes") {
  const CasesFolder folder;
  CHECK(methods_of(
            suites_of(folder, R"({"forward": [], "encode": [], "é": [], "": [], "Zoom": [], "for": []})")) ==
        Names{"", "Zoom", "encode", "for", "forward", "é"});
  CHECK(suites_of(folder, "{}").empty());
  CHECK(suites_of(folder, "[]").empty());
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

}  // namespace

}  // namespace etstream::case_files_test
