// SPDX-License-Identifier: BSD-3-Clause
#include "files/runs/output_run.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/tensor.h"
#include "etstream/verify.h"

namespace etstream {
namespace {

Result<Comparison> compare_output(const Value& expected, Result<Value> actual, const Tolerance& tolerance) {
  ETSTREAM_ASSIGN(Value given, std::move(actual));
  const auto* const wanted = std::get_if<Tensor>(&expected);
  if (auto* const tensor = std::get_if<Tensor>(&given); tensor && wanted && tensor->sizes == wanted->sizes) {
    ETSTREAM_ASSIGN(given, with_dim_order(*tensor, wanted->dim_order));
  }
  return compare(expected, given, tolerance);
}

}  // namespace

Result<void> add_output(MethodRun& run, const Value& expected, Result<Value> actual,
                        const Tolerance& tolerance, std::string file) {
  auto compared = compare_output(expected, std::move(actual), tolerance);
  if (!compared && compared.error().code == ErrorCode::kIo) return std::move(compared).error();
  OutputRun& output = run.outputs.emplace_back();
  output.file = std::move(file);
  if (compared) {
    output.comparison = *std::move(compared);
  } else {
    output.problem = full_message(compared.error());
  }
  if (!output.ok()) run.end = MethodRun::End::kOtherOutputs;
  return {};
}

namespace {

using End = MethodRun::End;

std::string where(const MethodRun& run) {
  return run.instruction ? text(" in {} (instruction {})", printable(run.callee), *run.instruction) : "";
}

/// Describes the first output that differs from the expected one.
std::string first_other(const std::vector<OutputRun>& outputs) {
  const auto other = std::ranges::find_if(outputs, [](const OutputRun& output) { return !output.ok(); });
  if (other == outputs.end()) return "other outputs";
  return summary(*other, static_cast<std::size_t>(other - outputs.begin()));
}

std::string end_text(const MethodRun& run) {
  switch (run.end) {
    case End::kOk:
      return "ok";
    case End::kOtherOutputs:
      return first_other(run.outputs);
    case End::kRefused:
    case End::kInputsRefused: {
      const std::string_view name = executorch_error_name(run.error);
      if (run.error == 0) return text("failed{}", where(run));
      return text("refused{}: ExecuTorch says {} (0x{:02x})", where(run), name.empty() ? "error" : name,
                  run.error);
    }
    case End::kSignal:
      return text("ended by {}{}", run.signal, where(run));
    case End::kOutOfTime:
      return "out of time";
    case End::kOutOfMemory:
      return text("out of memory{}", where(run));
    case End::kNotRun:
      return "not run";
  }
  return {};
}

}  // namespace

std::string summary(const MethodRun& run) {
  return text("{}, {}: {}{}{}", printable(run.method), run.inputs, end_text(run),
              run.reason.empty() ? "" : ": ", printable(run.reason));
}

Advice advice_of(const MethodRun& run, std::string_view tolerance) {
  if (run.end == End::kInputsRefused) {
    return {"no error of the file, as these inputs are made up: verify a bundle with test cases; ",
            AdviceTerm::kBundleTestCases};
  }
  const bool differs = std::ranges::any_of(
      run.outputs, [](const OutputRun& output) { return output.comparison && !output.comparison->passed(); });
  return differs ? Advice{text("{} accepts such differences", tolerance)} : Advice();
}

std::string summary(const OutputRun& output, std::size_t index) {
  const std::string name =
      text("output {}{}", index, output.file.empty() ? "" : text(" ({})", printable(output.file)));
  if (output.comparison) return text("{}: {}", name, summary(*output.comparison));
  return text("{} {}", name, output.problem.empty() ? "is not compared, as it is no tensor" : output.problem);
}

std::string_view name_of(MethodRun::End end) noexcept {
  // The names in the order of MethodRun::End.
  static constexpr std::string_view kNames[] = {"ok",     "other_outputs", "refused",       "inputs_refused",
                                                "signal", "out_of_time",   "out_of_memory", "not_run"};
  return kNames[static_cast<std::size_t>(end)];
}

std::string_view executorch_error_name(std::uint32_t error) noexcept {
  struct Named {
    std::uint32_t error;
    std::string_view name;
  };
  static constexpr Named kNames[] = {
      {0x01, "Internal"},
      {0x02, "InvalidState"},
      {0x03, "EndOfMethod"},
      {0x04, "AlreadyLoaded"},
      {0x10, "NotSupported"},
      {0x11, "NotImplemented"},
      {0x12, "InvalidArgument"},
      {0x13, "InvalidType"},
      {0x14, "OperatorMissing"},
      {0x15, "RegistrationExceedingMaxKernels"},
      {0x16, "RegistrationAlreadyRegistered"},
      {0x20, "NotFound"},
      {0x21, "MemoryAllocationFailed"},
      {0x22, "AccessFailed"},
      {0x23, "InvalidProgram"},
      {0x24, "InvalidExternalData"},
      {0x25, "OutOfResources"},
      {0x30, "DelegateInvalidCompatibility"},
      {0x31, "DelegateMemoryAllocationFailed"},
      {0x32, "DelegateInvalidHandle"},
  };
  const auto* const found = std::ranges::find(kNames, error, &Named::error);
  return found == std::end(kNames) ? std::string_view() : found->name;
}

}  // namespace etstream
