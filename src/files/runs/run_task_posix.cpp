// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/match.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "files/runs/output_run.h"
#include "files/runs/run_task.h"
#include "files/runs/unnamed_file_posix.h"

namespace etstream {
namespace {

using Json = nlohmann::json;
using End = MethodRun::End;

/// Spells a number exactly, and also infinities and NaN, which JSON has no words for.
Json double_json(double number) {
  char digits[40];
  std::snprintf(digits, sizeof(digits), "%a", number);
  return {{"double", digits}};
}

Json shape_json(ScalarType type, const std::vector<std::int32_t>& sizes,
                const std::vector<std::uint8_t>& dim_order) {
  return {{"dtype", name_of(type)}, {"sizes", sizes}, {"dim_order", dim_order}};
}

/// Makes an input of a method, at its bounds; returns nothing for a kind that can't be made. If it
/// `is_short`, a tensor of integers (tokens, positions) whose sizes may change has one.
std::optional<Json> made_json(const ValueInfo& input, bool is_short) {
  return match(
      input,
      [&](const TensorInfo& tensor) {
        std::vector<std::int32_t> sizes = tensor.sizes;
        if (is_short && tensor.dynamism != ShapeDynamism::kStatic && !is_floating_point(tensor.scalar_type)) {
          std::ranges::fill(sizes, 1);
        }
        return std::optional(shape_json(tensor.scalar_type, sizes, tensor.dim_order));
      },
      [](std::int64_t integer) { return std::optional(Json(integer)); },
      [](bool truth) { return std::optional(Json(truth)); },
      [](double number) { return std::optional(double_json(number)); },
      [](const OtherInfo& other) {
        return other.kind == "Null" ? std::optional(Json(nullptr)) : std::optional<Json>();
      });
}

Result<Json> given_json(const Value& input, const ByteSource& file) {
  return match(
      input, [](std::monostate) -> Result<Json> { return Json(nullptr); },
      [&](const Tensor& tensor) -> Result<Json> {
        Json out = shape_json(tensor.scalar_type, tensor.sizes, tensor.dim_order);
        const auto offset = tensor.data.size() == 0 ? 0 : tensor.data.offset_in(file);
        if (!offset) return make_error(ErrorCode::kUnsupported, "a test tensor is not in the bundle's file");
        out["offset"] = *offset;
        out["size"] = tensor.data.size();
        return out;
      },
      [](std::int64_t integer) -> Result<Json> { return Json(integer); },
      [](bool truth) -> Result<Json> { return Json(truth); },
      [](double number) -> Result<Json> { return double_json(number); });
}

/// Makes an output that worker.py describes; returns the problem with one that no test case can hold.
Result<Value> output_of(const Json& told, int outputs) {
  if (told.is_null()) return Value(std::monostate());
  if (told.is_boolean()) return Value(told.get<bool>());
  if (told.is_number_integer()) return Value(told.get<std::int64_t>());
  if (told.contains("double")) {
    return Value(std::strtod(told["double"].get<std::string>().c_str(), nullptr));
  }
  if (told.contains("other")) {
    return make_error(ErrorCode::kUnsupported, "is a {}, which no test case can hold",
                      quote(told["other"].get<std::string>()));
  }
  const auto type = find_scalar_type(told["dtype"].get<std::string>());
  if (!type) {
    return make_error(ErrorCode::kUnsupported, "is of the unknown dtype {}",
                      quote(told["dtype"].get<std::string>()));
  }
  auto sizes = told["sizes"].get<std::vector<std::int32_t>>();
  auto order = contiguous_dim_order(sizes.size());
  return Value(Tensor{*type, std::move(sizes), std::move(order),
                      source_of_descriptor(outputs, told["offset"], told["size"])});
}

/// Compares outputs with the expected ones. Error: kIo.
Result<void> compare_outputs(const Json& told, int outputs, const RunTask& task, const Tolerance& tolerance,
                             MethodRun& run) {
  if (told.size() != task.expected.size()) {
    run.end = End::kOtherOutputs;
    run.reason = text("{}, expected {}", counted(told.size(), "output"), task.expected.size());
    return {};
  }
  for (std::size_t i = 0; i < told.size(); ++i) {
    ETSTREAM_TRY(add_output(run, task.expected[i], output_of(told[i], outputs), tolerance));
  }
  return {};
}

std::optional<End> end_named(const std::string& name) {
  for (const End end :
       {End::kOk, End::kRefused, End::kSignal, End::kOutOfTime, End::kOutOfMemory, End::kNotRun}) {
    if (name_of(end) == name) return end;
  }
  return std::nullopt;
}

}  // namespace

std::vector<RunTask> tasks_of(const MethodInfo& method, std::uint64_t seed) {
  const auto inputs = [&](bool is_short) {
    Json out = Json::array();
    for (const ValueInfo& input : method.inputs) {
      auto made = made_json(input, is_short);
      const auto* const other = std::get_if<OtherInfo>(&input);
      out.push_back(made ? *std::move(made) : Json{{"kind", other ? other->kind : ""}});
    }
    return out.dump();
  };
  RunTask task{method.name, "no tensors", inputs(false), "", {}, inputs(true)};
  if (task.shortest == task.inputs) task.shortest.clear();
  const bool has_tensor = std::ranges::any_of(
      method.inputs, [](const ValueInfo& input) { return std::holds_alternative<TensorInfo>(input); });
  if (!has_tensor) return {task};
  std::vector<RunTask> out(3, task);
  out[0].fill = out[0].inputs_name = "zeros";
  out[1].fill = out[1].inputs_name = "ones";
  out[2].fill = "random";
  out[2].inputs_name = text("random (seed {})", seed);
  return out;
}

Result<RunTask> task_of(const std::string& method, std::size_t number, const MethodTestCase& test_case,
                        const ByteSource& file) {
  Json inputs = Json::array();
  for (const Value& input : test_case.inputs) {
    ETSTREAM_ASSIGN(inputs.emplace_back(), given_json(input, file));
  }
  return RunTask{method, text("test case {}", number), inputs.dump(), "", test_case.expected_outputs};
}

Result<RunAnswer> read_answer(const std::string& line, const RunTask& task, int outputs,
                              const Tolerance& tolerance) {
  // worker.py leaves out members without a value.
  const Json told = Json::parse(line, nullptr, false);
  const auto end = told.is_object() && told.contains("end") ? end_named(told["end"]) : std::nullopt;
  if (!end)
    return make_error(ErrorCode::kIo, "no answer of the process that runs the program: {}", quote(line));
  RunAnswer out;
  MethodRun& run = out.run;
  run.method = task.method;
  run.inputs = task.inputs_name;
  run.end = *end;
  if (*end == End::kRefused && !task.fill.empty() && told.value("loaded", false))
    run.end = End::kInputsRefused;
  run.error = told.value("error", 0U);
  run.signal = told.value("signal", "");
  run.reason = told.value("reason", "");
  if (run.reason.empty() && run.error == 0) run.reason = told.value("said", "");
  if (told.contains("failed_at")) out.failed_at.emplace(told["failed_at"][0], told["failed_at"][1]);
  if (told.contains("outputs")) {
    ETSTREAM_TRY(compare_outputs(told["outputs"], outputs, task, tolerance, run));
  }
  return out;
}

}  // namespace etstream
