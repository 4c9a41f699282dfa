// SPDX-License-Identifier: BSD-3-Clause
//
// Tasks for worker.py, and its answers, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "etstream/bundled_program.h"
#include "etstream/byte_source.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/verify.h"

namespace etstream {

/// A method with inputs to run it on.
struct RunTask {
  std::string method;
  std::string inputs_name;  // as MethodRun::inputs
  std::string inputs;       // JSON
  std::string fill;         // of tensors without data: "zeros", "ones", "random"; "" where all have data
  std::vector<Value> expected;
  std::string shortest = {};  // inputs with one element in tensors of integers whose sizes may change
};

/// Makes the tasks for a method without test cases.
[[nodiscard]] std::vector<RunTask> tasks_of(const MethodInfo& method, std::uint64_t seed);

/// Makes the task of a test case whose tensors lie in `file`, which worker.py has. Error: kUnsupported if
/// they lie elsewhere.
[[nodiscard]] Result<RunTask> task_of(const std::string& method, std::size_t number,
                                      const MethodTestCase& test_case, const ByteSource& file);

/// The way in which the worker's process ended.
struct RunAnswer {
  MethodRun run;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> failed_at;  // a chain, and an instruction in it
};

/// Reads an answer. The bytes of outputs are in the open file `outputs`. Error: kIo for an invalid answer.
[[nodiscard]] Result<RunAnswer> read_answer(const std::string& line, const RunTask& task, int outputs,
                                            const Tolerance& tolerance);

}  // namespace etstream
