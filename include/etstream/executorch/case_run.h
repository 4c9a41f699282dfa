// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a bundle's test cases in ExecuTorch's runtime.
//
//   const auto file = etstream::ByteSource::file("model.bpte").value();
//   const auto bundle = etstream::BundledProgramFile::open(file).value();
//   const auto loader = etstream::open_program_loader(bundle.program()).value();
//   const auto program = executorch::runtime::Program::load(loader.get());
//   if (!program.ok()) return etstream::Error{etstream::ErrorCode::kCorrupt, "model.bpte"};
//   for (const auto& suite : bundle.suites()) {
//     auto loaded = etstream::LoadedMethod::load(*program, suite.method_name, nullptr, bundle.program());
//     if (!loaded) return loaded.error();
//     const auto first = bundle.test_case(suite, 0).value();
//     const auto run = etstream::run_test_case(loaded->method(), first, 0);
//     if (run) std::puts(run->passed() ? "passed" : "failed");
//   }
#pragma once

#include <executorch/runtime/executor/method.h>

#include <cstddef>
#include <vector>

#include "etstream/bundled_program.h"
#include "etstream/compare.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// The outcome of a test case.
struct TestCaseRun {
  /// The comparison of each output of the method, in order; empty if the test case expects no outputs.
  std::vector<Comparison> outputs;

  /// Returns whether every output was as expected; also true if there was nothing to compare with.
  [[nodiscard]] bool passed() const noexcept;
};

/// Sets the inputs, executes the method, and compares each output with the expected one. `index` is the
/// number of the test case in its suite, for messages. Does not trust `test_case`: before the first value is
/// set, it checks that there are as many values as the method has, of the same kind, dtype and number of
/// dimensions, and no larger. Tensors may have any dim_order: inputs are reordered to the method's, outputs
/// to that of the expected ones.
///
/// Inputs and outputs without a place in the memory plan use memory that this call frees. The method keeps
/// pointers to it, so set them again before you execute the method in another way. One thread at a time may
/// use a method. Memory: inputs and outputs that are not planned, inputs while they are copied, and pieces of
/// 64 KiB of the expected ones.
///
/// Errors, naming method, test case and value: kInvalidArgument for what does not fit the method or what it
/// returned, and for a method that fails while it is executed. Such a method may be run again, but
/// must be loaded again after a kernel has thrown an exception. kUnsupported for outputs that are not in the
/// CPU's memory; read errors; kOutOfMemory.
[[nodiscard]] ETSTREAM_EXPORT Result<TestCaseRun> run_test_case(executorch::runtime::Method& method,
                                                                const MethodTestCase& test_case,
                                                                std::size_t index,
                                                                const Tolerance& tolerance = {});

}  // namespace etstream
