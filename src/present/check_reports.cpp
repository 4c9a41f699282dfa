// SPDX-License-Identifier: BSD-3-Clause
//
// The reports of checks and comparisons: findings, runs of methods, differences of files.
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "core/base/match.h"
#include "core/base/text.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream {
namespace {

std::string_view name_of(DiffEntry::Kind kind) {
  static constexpr std::string_view kNames[] = {"content", "layout", "tolerated"};
  return kNames[static_cast<std::size_t>(kind)];
}

Json number_to_json(const Number& number) {
  return match(
      number, [](double value) { return number_or_text(value); },
      [](std::complex<double> value) {
        return Json::list(number_or_text(value.real()), number_or_text(value.imag()));
      },
      [](auto integer) { return Json(integer); });
}

Json mismatch_to_json(const Comparison& comparison, const std::optional<Mismatch>& mismatch) {
  if (!mismatch) return {};
  const std::vector<std::int64_t> place = place_of(comparison, mismatch->index);
  return ETSTREAM_MEMBERS(mismatch->index, place, number_to_json(mismatch->expected),
                          number_to_json(mismatch->actual));
}

Json output_to_json(const OutputRun& output, std::size_t index) {
  Json out = {{"ok", output.ok()},
              {"message", summary(output, index)},
              {"file", unless_empty(output.file)},
              {"problem", unless_empty(output.problem)}};
  if (!output.comparison) return out;
  const Comparison& found = *output.comparison;
  if (found.layout) {
    out.update({{"dtype", name_of(found.layout->scalar_type)}, {"shape", found.layout->sizes}});
  }
  const auto place = [&](double error, std::uint64_t index_of) {
    return error > 0 ? Json(place_of(found, index_of)) : Json();
  };
  out.update(ETSTREAM_MEMBERS(found.elements, found.equal, found.mismatches, found.not_finite,
                              number_or_text(found.largest_absolute_error),
                              number_or_text(found.largest_relative_error),
                              number_or_text(found.mean_absolute_error)));
  if (found.layout && found.largest_absolute_error > 0) {
    out.update(ETSTREAM_MEMBERS(number_or_text(found.signal_to_noise), number_or_text(found.cosine),
                                found.same_largest));
  }
  out.update({{"largest_absolute_place", place(found.largest_absolute_error, found.largest_absolute_index)},
              {"largest_relative_place", place(found.largest_relative_error, found.largest_relative_index)},
              {"first", mismatch_to_json(found, found.first)},
              {"worst", mismatch_to_json(found, found.worst)}});
  return out;
}

}  // namespace

// Json finds these by their arguments, so they are in no namespace of their own.
static void to_json(Json& out, const MethodRun& run) {
  Json outputs;
  for (std::size_t i = 0; i < run.outputs.size(); ++i) outputs.push_back(output_to_json(run.outputs[i], i));
  const std::string message = summary(run);
  const std::string_view error_name = executorch_error_name(run.error);
  out = ETSTREAM_MEMBERS(run.method, run.inputs, name_of(run.end), message, unless_empty(run.reason),
                         unless_empty(run.error), unless_empty(error_name), unless_empty(run.signal),
                         run.instruction, unless_empty(run.callee), outputs);
}

static void to_json(Json& out, const DiffEntry& one) {
  out = {{"kind", name_of(one.kind)}, {"subject", one.subject}, {"a", one.in_a}, {"b", one.in_b}};
  if (!one.elements) return;
  out.update({{"elements", one.elements->elements},
              {"equal", one.elements->equal},
              {"not_finite", one.elements->not_finite},
              {"largest_difference", one.elements->largest},
              {"mean_difference", one.elements->mean}});
}

std::vector<std::string> full_messages(const std::vector<Finding>& findings, TermWords words) {
  std::vector<std::string> messages;
  messages.reserve(findings.size());
  for (const Finding& finding : findings) messages.push_back(full_message(finding, words));
  return messages;
}

Json findings_to_json(const Findings& findings, TermWords words) {
  return {{"errors", full_messages(findings.errors, words)},
          {"warnings", full_messages(findings.warnings, words)}};
}

Json runs_to_json(const std::vector<MethodRun>& runs) { return runs; }

void print_runs(const std::string& file, const std::vector<MethodRun>& runs, TermWords words,
                std::string_view tolerance) {
  for (const MethodRun& run : runs) {
    const bool lists_others = run.end == MethodRun::End::kOtherOutputs && !run.outputs.empty();
    const std::string end =
        lists_others ? text("{}, {}: other outputs", printable(run.method), run.inputs) : summary(run);
    say("{}: {}\n", file, full_message(end, advice_of(run, tolerance), words));
    for (std::size_t i = 0; i < run.outputs.size(); ++i) say("  {}\n", one_line(summary(run.outputs[i], i)));
  }
}

void ignore_layout(FileDiff& found) {
  std::erase_if(found.differences, [](const DiffEntry& one) { return one.kind == DiffEntry::Kind::kLayout; });
}

Json differences_to_json(const std::string& a, const std::string& b, const FileDiff& found) {
  return ETSTREAM_MEMBERS(a, b, found.same_bytes, found.same_content, found.same_within_tolerance,
                          found.differences);
}

}  // namespace etstream
