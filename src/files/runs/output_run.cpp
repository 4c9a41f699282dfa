// SPDX-License-Identifier: BSD-3-Clause
#include "files/runs/output_run.h"

#include <utility>
#include <variant>

#include "core/base/try.h"
#include "etstream/dim_order.h"

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

}  // namespace etstream
