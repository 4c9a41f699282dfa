// SPDX-License-Identifier: BSD-3-Clause
//
// A bundle's test cases, run by ExecuTorch's runtime.
//
//   const auto file = etstream::ByteSource::file("model.bpte").value();
//   const auto bundle = etstream::BundledProgramFile::open(file).value();
//   const auto loader = etstream::open_program_loader(bundle.program()).value();
//   const auto program = executorch::runtime::Program::load(loader.get());
//   if (!program.ok()) return etstream::Error{etstream::ErrorCode::kCorrupt, "model.bpte"};
//   for (const auto& suite : bundle.suites()) {
//     auto loaded = etstream::LoadedMethod::load(*program, suite.method_name).value();
//     const auto first = bundle.test_case(suite, 0).value();
//     const auto run = etstream::run_test_case(loaded.method(), first, 0);
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

struct TestCaseRun {
  /// One an output of the method, in their order; none where the test case expects none.
  std::vector<Comparison> outputs;

  /// Whether every output was as expected: true too where there was nothing to compare with.
  [[nodiscard]] bool passed() const noexcept;
};

/// Sets the inputs, executes, and compares each output with what is expected of it. `index` is the number of
/// the test case in its suite, for messages. Trusts nothing in `test_case`: values must be as many, of the
/// kind, the dtype and the number of dimensions that the method has, and no larger, before the first is set.
/// Tensors may have any order of dimensions: inputs are brought into the method's, outputs into that of what
/// is expected.
///
/// Inputs and outputs that the memory plan has no place for lie in memory of this call's: afterwards the
/// method keeps pointers to what is no longer there, so set them again before it is executed in another way.
/// One thread at a time may use a method. Memory: inputs and outputs that are not planned, inputs while they
/// are copied, and pieces of 64 KiB of the expected ones.
///
/// Errors, naming method, test case and value: kInvalidArgument for what does not fit the method or what it
/// gave, and for a method that fails as it is executed; it may be run again, but after a kernel has thrown an
/// exception it has to be loaded again. kUnsupported for outputs that are not in the CPU's memory; those of
/// reading; kOutOfMemory.
[[nodiscard]] ETSTREAM_EXPORT Result<TestCaseRun> run_test_case(executorch::runtime::Method& method,
                                                                const MethodTestCase& test_case,
                                                                std::size_t index,
                                                                const Tolerance& tolerance = {});

}  // namespace etstream
