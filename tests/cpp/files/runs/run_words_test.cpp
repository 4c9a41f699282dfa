// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "etstream/verify.h"

namespace etstream::run_words_test {
namespace {

using End = MethodRun::End;

std::string words(const MethodRun& run) { return summary(run); }

MethodRun ended(End end) {
  MethodRun out;
  out.method = "forward";
  out.inputs = "ones";
  out.end = end;
  return out;
}

TEST_CASE("each end of a run has its words, with where it ended and why") {
  CHECK(words(ended(End::kOk)) == "forward, ones: ok");
  CHECK(words(ended(End::kOutOfTime)) == "forward, ones: out of time");
  CHECK(words(ended(End::kNotRun)) == "forward, ones: not run");
  MethodRun run = ended(End::kRefused);
  run.reason = "shapes differ";
  CHECK(words(run) == "forward, ones: failed: shapes differ");
  run.error = 0x14;
  CHECK(words(run) == "forward, ones: refused: ExecuTorch says OperatorMissing (0x14): shapes differ");
  run.error = 0x7f;
  run.instruction = 3;
  run.callee = "aten::add.out";
  CHECK(
      words(run) ==
      "forward, ones: refused in aten::add.out (instruction 3): ExecuTorch says error (0x7f): shapes differ");
  run = ended(End::kSignal);
  run.signal = "SIGSEGV";
  CHECK(words(run) == "forward, ones: ended by SIGSEGV");
  run.instruction = 0;
  run.callee = "delegate B";
  CHECK(words(run) == "forward, ones: ended by SIGSEGV in delegate B (instruction 0)");
  run.end = End::kOutOfMemory;
  CHECK(words(run) == "forward, ones: out of memory in delegate B (instruction 0)");
}

TEST_CASE("the first output that is not as expected is told of") {
  Comparison wrong;
  wrong.elements = 4;
  wrong.mismatches = 1;
  wrong.first = wrong.worst = Mismatch{2, 1.0, 2.0};
  MethodRun run = ended(End::kOtherOutputs);
  const OutputRun right{.comparison = Comparison{}};
  const OutputRun list{.problem = "is a list"};
  run.outputs = {right, {.comparison = wrong}, list};
  const std::string told = words(run);
  CHECK(told.starts_with("forward, ones: output 1: "));
  CHECK(told.find("output 2") == std::string::npos);
  run.outputs = {right, {}, list, {.comparison = wrong}};
  CHECK(words(run) == "forward, ones: output 2 is a list");
  run.outputs.clear();
  run.reason = "1 output, expected 2";
  CHECK(words(run) == "forward, ones: other outputs: 1 output, expected 2");
}

TEST_CASE("an output is told with its file, and as what it is") {
  CHECK(summary(OutputRun{.problem = "is a list", .file = "o-1.bin"}, 1) == "output 1 (o-1.bin) is a list");
  CHECK(summary(OutputRun{}, 2) == "output 2 is not compared, as it is no tensor");
  CHECK(summary(OutputRun{.comparison = Comparison{}}, 0).starts_with("output 0: 0 elements agree; "));
}

TEST_CASE("ends have names for software") {
  for (const auto& [end, name] :
       {std::pair{End::kOk, "ok"}, std::pair{End::kOtherOutputs, "other_outputs"},
        std::pair{End::kRefused, "refused"}, std::pair{End::kInputsRefused, "inputs_refused"},
        std::pair{End::kSignal, "signal"}, std::pair{End::kOutOfTime, "out_of_time"},
        std::pair{End::kOutOfMemory, "out_of_memory"}, std::pair{End::kNotRun, "not_run"}}) {
    CHECK(name_of(end) == name);
  }
}

}  // namespace
}  // namespace etstream::run_words_test
