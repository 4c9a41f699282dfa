// SPDX-License-Identifier: BSD-3-Clause
//
// Runs every test case of every method in a bundle on ExecuTorch:  run_bundle MODEL.bpte [ATOL RTOL]
//
// Exits with 0 if every output is as expected, 1 if not, 2 for a wrong command line.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <cstdio>
#include <cstdlib>

#include "etstream/bundled_program.h"
#include "etstream/executorch/program_loader.h"
#include "etstream/tensor.h"
#include "etstream/verify.h"

namespace {

using etstream::ByteSource;
using etstream::Result;
using executorch::extension::Module;
using executorch::extension::TensorPtr;
using executorch::runtime::EValue;

/// Maps the program where it lies, if it lies there aligned, and reads it into memory otherwise.
Result<std::unique_ptr<executorch::runtime::DataLoader>> open_loader(const ByteSource& program) {
  auto mapped = etstream::open_mapped_program_loader(program);
  if (mapped || mapped.error().code != etstream::ErrorCode::kUnsupported) return mapped;
  return etstream::open_program_loader(program);
}

/// Returns a copy of a tensor for ExecuTorch, with its elements in the order that the method has.
Result<TensorPtr> input_of(const etstream::Tensor& tensor, const executorch::runtime::TensorInfo& wanted) {
  const auto order = wanted.dim_order();
  const auto moved = etstream::with_dim_order(tensor, {order.begin(), order.end()});
  if (!moved) return moved.error();
  std::vector<std::uint8_t> data(static_cast<std::size_t>(moved->data.size()));
  const auto read = moved->data.read_at(0, std::as_writable_bytes(std::span(data)));
  if (!read) return read.error();
  return executorch::extension::make_tensor_ptr(
      moved->sizes, std::move(data), moved->dim_order, {},
      static_cast<executorch::aten::ScalarType>(moved->scalar_type));
}

/// Returns an output for compare(). The elements stay in the method's memory.
etstream::Value output_of(const EValue& value) {
  if (!value.isTensor()) return {};
  const auto& tensor = value.toTensor();
  const auto* const data = static_cast<const std::byte*>(tensor.const_data_ptr());
  return etstream::Tensor{static_cast<etstream::ScalarType>(tensor.scalar_type()),
                          {tensor.sizes().begin(), tensor.sizes().end()},
                          {tensor.dim_order().begin(), tensor.dim_order().end()},
                          ByteSource::memory({data, tensor.nbytes()})};
}

/// Runs a test case. Returns whether each output is as expected, and prints how close it is.
Result<bool> run_case(Module& module, const std::string& method, const etstream::MethodTestCase& test_case,
                      const etstream::Tolerance& tolerance) {
  const auto refused = [&](executorch::runtime::Error error) {
    return etstream::Error{etstream::ErrorCode::kUnsupported,
                           method + ": ExecuTorch says " + executorch::runtime::to_string(error)};
  };
  const auto meta = module.method_meta(method);
  if (!meta.ok()) return refused(meta.error());
  std::vector<TensorPtr> tensors;
  std::vector<EValue> inputs;
  for (const etstream::Value& input : test_case.inputs) {
    if (const auto* const tensor = std::get_if<etstream::Tensor>(&input)) {
      const auto made = input_of(*tensor, *meta->input_tensor_meta(inputs.size()));
      if (!made) return made.error();
      inputs.emplace_back(*tensors.emplace_back(*made));
    } else if (const auto* const integer = std::get_if<std::int64_t>(&input)) {
      inputs.emplace_back(*integer);
    } else if (const auto* const truth = std::get_if<bool>(&input)) {
      inputs.emplace_back(*truth);
    } else if (const auto* const number = std::get_if<double>(&input)) {
      inputs.emplace_back(*number);
    }
  }
  const auto outputs = module.execute(method, inputs);
  if (!outputs.ok()) return refused(outputs.error());
  bool passed = true;
  for (std::size_t i = 0; i < test_case.expected_outputs.size(); ++i) {
    const auto compared =
        etstream::compare(test_case.expected_outputs[i], output_of((*outputs)[i]), tolerance);
    if (!compared) return compared.error();
    std::printf("  output %zu: %s\n", i, etstream::summary(*compared).c_str());
    passed = passed && compared->passed();
  }
  return passed;
}

/// Returns whether all test cases passed.
Result<bool> run_bundle(const char* path, const etstream::Tolerance& tolerance) {
  const auto file = ByteSource::file(path);
  if (!file) return file.error();
  // ExecuTorch may crash where the program is not sound, or a test case does not fit.
  const auto findings = etstream::verify(*file);
  if (!findings) return findings.error();
  if (const auto sound = require_sound(path, *findings); !sound) return sound.error();
  const auto bundle = etstream::BundledProgramFile::open(*file);
  if (!bundle) return bundle.error();
  auto loader = open_loader(bundle->program());
  if (!loader) return loader.error();
  Module module(*std::move(loader));
  std::uint32_t cases = 0;
  std::uint32_t passed = 0;
  for (const auto& suite : bundle->suites()) {
    for (std::uint32_t i = 0; i < suite.test_cases; ++i, ++cases) {
      const auto test_case = bundle->test_case(suite, i);
      if (!test_case) return test_case.error();
      std::printf("%s, case %u:\n", suite.method_name.c_str(), i);
      const auto result = run_case(module, suite.method_name, *test_case, tolerance);
      if (!result) return result.error();
      passed += *result ? 1U : 0U;
    }
  }
  std::printf("%u of %u test cases passed\n", passed, cases);
  return passed == cases;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) return std::fputs("usage: run_bundle MODEL.bpte [ATOL RTOL]\n", stderr), 2;
  etstream::Tolerance tolerance;
  if (argc == 4) tolerance = etstream::tolerance_of(std::atof(argv[2]), std::atof(argv[3]));
  const auto passed = run_bundle(argv[1], tolerance);
  if (!passed) return std::fprintf(stderr, "error: %s\n", full_message(passed.error()).c_str()), 1;
  return *passed ? 0 : 1;
}
