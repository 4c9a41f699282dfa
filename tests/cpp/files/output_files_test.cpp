// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/verify.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "etstream/bundled_program.h"
#include "formats/tensor/npy.h"
#include "golden_bundles.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_paths.h"
#include "test_sources.h"

namespace etstream::output_files_test {
namespace {

namespace fs = std::filesystem;

Tensor tensor_of(ScalarType type, std::vector<std::int32_t> sizes, std::string_view bytes) {
  auto order = contiguous_dim_order(sizes.size());
  return {type, std::move(sizes), std::move(order), source_of(bytes)};
}

/// A bundle, and a folder for outputs.
struct Example {
  TemporaryFolder folder;
  ByteSource file;
  std::string outputs = folder / "outputs";

  explicit Example(std::vector<MethodTestSuite> suites, BundleFormat format = BundleFormat::kBp08) {
    fs::create_directory(outputs);
    BundledProgram bundle;
    bundle.program = ByteSource::file(kGoldenDir + "/every_dtype/program.pte").value();
    bundle.method_test_suites = std::move(suites);
    BundledProgramFileOptions options;
    options.format = format;
    options.unchecked = true;
    REQUIRE(write_file(bundle, folder / "a.bpte", options));
    file = ByteSource::file(folder / "a.bpte").value();
  }

  void put(const std::string& name, std::string_view content) const {
    fs::create_directories(fs::path(outputs + "/" + name).parent_path());
    put_file(outputs + "/" + name, content);
  }
  Result<OutputFindings> run(const OutputComparisonOptions& options = {}) const {
    return compare_outputs(file, outputs, options);
  }
  /// Returns the findings, with the folder as "OUT".
  doctest::String told(const OutputComparisonOptions& options = {}) const {
    const auto found = run(options);
    std::string out;
    if (!found) {
      out = full_message(found.error());
    } else {
      for (const MethodRun& each : found->runs) {
        out += summary(each) + "\n";
      }
      for (const Finding& error : found->errors) out += "error: " + full_message(error) + "\n";
      for (const Finding& warning : found->warnings) out += "warning: " + full_message(warning) + "\n";
    }
    for (std::size_t at = 0; (at = out.find(folder.path(), at)) != std::string::npos;) {
      out.replace(at, folder.path().size(), "F");
    }
    return exactly(out);
  }
};

MethodTestCase expecting(std::vector<Value> values) { return {{}, std::move(values)}; }

/// One method with one case, which expects two tensors of bytes.
std::vector<MethodTestSuite> one_case() {
  return {{"forward",
           {expecting({tensor_of(ScalarType::kUInt8, {2, 2}, "abcd"),
                       tensor_of(ScalarType::kInt16, {1}, std::string_view("\1\0", 2))})}}};
}

std::vector<MethodTestSuite> two_cases() {
  return {{"forward",
           {expecting({tensor_of(ScalarType::kUInt8, {2}, "ab")}),
            expecting({tensor_of(ScalarType::kUInt8, {2}, "cd")})}}};
}

TEST_CASE("a run has the beginning of a long method's name, as many cases may have it") {
  std::vector<MethodTestSuite> suites = one_case();
  suites[0].method_name = std::string(300, 'm');
  const Example example(std::move(suites));
  example.put("out-0.bin", "abcd");
  const auto found = example.run();
  REQUIRE_MESSAGE(found, found.error().message);
  CHECK(found->runs.at(0).method == std::string(200, 'm'));
}

TEST_CASE("a file of another size is a problem that tells the bytes, the shape and the dtype") {
  const Example example(one_case());
  example.put("out-0.bin", "abc");
  example.put("out-1.bin", std::string_view("\1\0\0", 3));
  CHECK(example.run()->problems() == 2);
  CHECK(example.told() ==
        "forward, test case 0: output 0 (F/outputs/out-0.bin) has 3 bytes, expected 4: uint8 [2, 2]\n");
}

TEST_CASE("an output without a file, or with several, is a problem") {
  const Example example(one_case());
  example.put("out-1.bin", std::string_view("\1\0", 2));
  CHECK(example.told() == "forward, test case 0: output 0 has no file in 'F/outputs'\n");
  example.put("out-0.bin", "abcd");
  example.put("out-0.raw", "abcd");
  CHECK(example.told() ==
        "forward, test case 0: output 0 has several files: 'F/outputs/out-0.bin', 'F/outputs/out-0.raw'\n");
}

TEST_CASE("files of two runs are no outputs of one case") {
  const Example example(one_case());
  example.put("new-0.bin", "abcd");
  example.put("old-1.bin", std::string_view("\1\0", 2));
  CHECK(example.told() ==
        "forward, test case 0: ok\n"
        "error: F/outputs: forward, test case 0 has files of several runs: 'new-N', 'old-N'\n");
  CHECK(!example.run()->as_expected());
}

TEST_CASE("each case has a number in its names, or a folder") {
  const Example named(two_cases());
  named.put("output_0_0.raw", "ab");
  named.put("output_1_0.raw", "cd");
  CHECK(named.told() == "forward, test case 0: ok\nforward, test case 1: ok\n");
  const Example folders(two_cases());
  folders.put("0/0000.bin", "ab");
  folders.put("01/output_0.bin", "ce");
  const std::string other = "1 of 2 elements not as expected";
  CHECK(folders.told() == containing("forward, test case 0: ok\nforward, test case 1: output 0 "));
  CHECK(folders.told() == containing(other));
  folders.put("2/0000.bin", "ab");
  folders.put("1/output_1_0.bin", "ab");
  folders.put("1/notes.txt", "ab");
  folders.put("1/output_0.raw/file", "ab");
  CHECK(folders.told() == containing("error: F/outputs/2/0000.bin: is an output of no test case of"));
  CHECK(folders.told() == containing("warning: F/outputs: not compared, as outputs have other names: "
                                     "'1/notes.txt', '1/output_0.raw', '1/output_1_0.bin'"));
  const Example labels(two_cases());
  labels.put("forward_0_output_0.bin", "ab");
  labels.put("forward_1_output_0.bin", "cd");
  CHECK(labels.run()->as_expected());
  labels.put("backward_0_output_0.bin", "ab");
  CHECK(labels.told() ==
        containing("error: F/outputs/backward_0_output_0.bin: is an output of no test case"));
}

TEST_CASE("a name without a case is of the only one, or of the chosen one") {
  const Example example(two_cases());
  example.put("out-0.bin", "cd");
  CHECK(error_of(example.run()) == containing("out-0.bin: may be an output of forward, test case 0 or of "
                                              "forward, test case 1"));
  std::vector<MethodTestSuite> more = two_cases();
  more[0].test_cases.push_back(more[0].test_cases[0]);
  const Example three(std::move(more));
  three.put("out-0.bin", "cd");
  CHECK(three.told() ==
        "F/outputs/out-0.bin: may be an output of forward, test case 0 or of forward, test case 1, or of 1 "
        "more; choose one of them, or use names with the number of the case");
  CHECK(example.told({.test_case = 1}) == "forward, test case 1: ok\n");
  CHECK(example.told({.test_case = 0}) == containing("2 of 2 elements not as expected"));
  CHECK(error_of(example.run({.test_case = 2})) == containing("no test case 2, found 2 of 'forward'"));
}

TEST_CASE("a method is chosen, and the files of others are left alone") {
  std::vector<MethodTestSuite> suites = {{"a", {expecting({tensor_of(ScalarType::kUInt8, {1}, "x")})}},
                                         {"b", {expecting({tensor_of(ScalarType::kUInt8, {1}, "y")})}},
                                         {"b", {expecting({tensor_of(ScalarType::kUInt8, {1}, "z")})}}};
  const Example example(suites);
  example.put("a_0_output_0.bin", "-");
  example.put("b_0_output_0.bin", "y");
  example.put("suite-2_0_output_0.bin", "z");
  CHECK(example.told({.method = "b"}) == "b, test case 0: ok\nb, test case 1: ok\n");
  CHECK(!example.run()->as_expected());
  CHECK(error_of(example.run({.method = "c"})) ==
        containing("no test case of method 'c', found 1 of 'a', 2 of 'b'"));
  const Example numbers(suites);
  numbers.put("output_0_0.raw", "y");
  CHECK(error_of(numbers.run()) == containing("may be an output of a, test case 0 or of b, test case 0"));
  CHECK(numbers.told({.method = "b", .test_case = 0}) == "b, test case 0: ok\n");
}

TEST_CASE("an array has the dtype and the shape of the output, and is read in its order") {
  const Example example(one_case());
  const auto array = [](const Tensor& tensor) { return *npy_header(tensor) + text_of(tensor.data); };
  example.put("out-0.npy", array(tensor_of(ScalarType::kUInt8, {2, 2}, "abcd")));
  example.put("out-1.npy", array(tensor_of(ScalarType::kInt16, {1}, std::string_view("\1\0", 2))));
  CHECK(example.run()->as_expected());
  example.put("out-0.npy", array(tensor_of(ScalarType::kUInt8, {4}, "abcd")));
  CHECK(example.told() == containing("output 0 (F/outputs/out-0.npy) has shape [4], expected [2, 2]"));
  example.put("out-0.npy", array(tensor_of(ScalarType::kInt8, {2, 2}, "abcd")));
  CHECK(example.told() == containing("output 0 (F/outputs/out-0.npy) is int8, expected uint8"));
  example.put("out-0.npy", "abcd");
  CHECK(example.told() ==
        containing("output 0 (F/outputs/out-0.npy) is not readable: F/outputs/out-0.npy: not "
                   "a .npy file"));
  CHECK(example.run()->problems() == 1);
}

TEST_CASE("raw bytes lie in the order of the expected ones, and an array in that of its indices") {
  Tensor expected = tensor_of(ScalarType::kUInt8, {2, 2}, "acbd");
  expected.dim_order = {1, 0};
  const Example example({{"forward", {expecting({expected})}}});
  example.put("out-0.bin", "acbd");
  CHECK(example.run()->as_expected());
  fs::remove(example.outputs + "/out-0.bin");
  const Tensor contiguous = tensor_of(ScalarType::kUInt8, {2, 2}, "abcd");
  example.put("out-0.npy", *npy_header(contiguous) + "abcd");
  CHECK(example.run()->as_expected());
}

TEST_CASE("values that are no tensors, and cases without outputs, are said not to be compared") {
  const Example example(
      {{"forward", {expecting({std::int64_t{3}, tensor_of(ScalarType::kUInt8, {1}, "x")}), expecting({})}}});
  example.put("output_0_1.raw", "x");
  CHECK(example.told() ==
        "forward, test case 0: ok\nforward, test case 1: ok\n"
        "warning: F/a.bpte: output 0 of forward, test case 0 is not compared, as it is no tensor\n"
        "warning: F/a.bpte: forward, test case 1 expects no outputs, so that none are compared\n");
  CHECK(example.run()->as_expected());
  CHECK(error_of(example.run({.test_case = 1})) == containing("expect no tensors"));
}

TEST_CASE("the outputs of every dtype are compared as the expected ones lie") {
  const BundledProgram golden = read_golden(kGoldenDir + "/every_dtype");
  std::vector<MethodTestSuite> suites = golden.method_test_suites;
  for (MethodTestCase& test_case : suites[0].test_cases) test_case.expected_outputs = test_case.inputs;
  const Example example(suites);
  std::size_t outputs = 0;
  for (const MethodTestSuite& suite : suites) {
    for (std::size_t i = 0; i < suite.test_cases.size(); ++i) {
      const auto& values = suite.test_cases[i].expected_outputs;
      for (std::size_t k = 0; k < values.size(); ++k, ++outputs) {
        const auto* const tensor = std::get_if<Tensor>(&values[k]);
        if (tensor == nullptr) continue;
        example.put(suite.method_name + "_" + std::to_string(i) + "_output_" + std::to_string(k) + ".bin",
                    text_of(tensor->data));
      }
    }
  }
  REQUIRE(outputs > 20);
  CHECK_MESSAGE(example.run()->as_expected(), example.told());
}

}  // namespace
}  // namespace etstream::output_files_test
