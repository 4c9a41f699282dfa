// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/output_files.h"
#include "etstream/verify.h"
#include "present/reports.h"
#include "python/bindings.h"
#include "python/checkpoints.h"
#include "python/errors.h"
#include "python/sources.h"
#include "python/strings.h"

namespace etstream::python {
namespace {

/// The options for running methods; nothing if they are not run.
using RunOptions = std::optional<MethodRunOptions>;

FileFindings verify_paths(const PathLike& file, const std::vector<nb::object>& weights, bool partial,
                          const RunOptions& runs) {
  const std::vector<std::string> paths = paths_of(weights);
  const CheckpointOptions options = checkpoint_options(partial);
  return without_gil([&, file = path_of(file)]() -> Result<FileFindings> {
    ETSTREAM_ASSIGN(FileFindings findings, verify(file, paths, options));
    if (runs) ETSTREAM_TRY(add_runs(file, *runs, findings, options.open_file));
    return findings;
  });
}

FileFindings verify_files(const SourceLike& file, const SourcesLike& weights, const RunOptions& runs) {
  const ByteSource source = source_of(file);
  const std::vector<ByteSource> sources = sources_of(weights);
  return without_gil([&]() -> Result<FileFindings> {
    ETSTREAM_ASSIGN(FileFindings findings, verify(source, sources));
    if (runs) ETSTREAM_TRY(add_runs(source, sources, *runs, findings));
    return findings;
  });
}

MethodRunOptions run_options(std::string python, std::uint64_t seed, std::uint32_t seconds,
                             std::uint64_t memory, std::optional<double> atol, std::optional<double> rtol) {
  return {.python = std::move(python),
          .seed = seed,
          .seconds = seconds,
          .memory = memory,
          .tolerance = tolerance_of(atol, rtol),
          .go_on = [] { return check_signals().has_value(); }};
}

std::string counts(const Findings& findings) {
  return text("{}, {}", counted(findings.errors.size(), "error"),
              counted(findings.warnings.size(), "warning"));
}

/// Returns the text that a failed assertion in a test shows: the first errors, a line each.
std::string shown(const Findings& findings, std::string_view type) {
  constexpr std::size_t kMost = 20;
  std::string out = text("<etstream.{}: {}", type, counts(findings));
  const auto& errors = findings.errors;
  for (const Finding& error : std::span(errors).first(std::min(kMost, errors.size()))) {
    out += text("\nerror: {}", full_message(error, argument_words));
  }
  if (errors.size() > kMost) out += text("\nand {} more", errors.size() - kMost);
  return out + ">";
}

/// Returns the counts, and each problem on a line of its own.
std::string told(const Findings& findings) {
  std::string out = counts(findings);
  for (const std::string& error : full_messages(findings.errors, argument_words)) {
    out += text("\nerror: {}", error);
  }
  for (const std::string& warning : full_messages(findings.warnings, argument_words)) {
    out += text("\nwarning: {}", warning);
  }
  return out;
}

void raise_if_errors(const Findings& findings) {
  if (findings.ok()) return;
  const Finding& first = findings.errors.front();
  raise({ErrorCode::kCorrupt, told(findings), 0, first.file, first.offset});
}

using FindingList = Annotated<"list[etstream._reports.Finding]">;

FindingList list_of(const std::vector<Finding>& findings) {
  const nb::object finding = nb::module_::import_("etstream._reports").attr("Finding");
  nb::list out;
  for (const Finding& one : findings) {
    out.append(finding(full_message(one, argument_words), one.file, one.offset));
  }
  return out;
}

using RunList = Annotated<"list[etstream._reports.MethodRun]">;

nb::object output_of(const OutputRun& output) {
  if (output.comparison) return nb::cast(*output.comparison);
  return output.problem.empty() ? nb::none() : nb::cast(output.problem);
}

RunList list_of(const std::vector<MethodRun>& runs) {
  const nb::object type = nb::module_::import_("etstream._reports").attr("MethodRun");
  nb::list out;
  for (const MethodRun& run : runs) {
    nb::list outputs;
    nb::list files;
    for (const OutputRun& output : run.outputs) {
      outputs.append(output_of(output));
      files.append(output.file);
    }
    out.append(type(run.method, run.inputs, name_of(run.end), summary(run), run.reason, run.error,
                    executorch_error_name(run.error), run.signal, run.instruction, run.callee,
                    nb::tuple(outputs), nb::tuple(files)));
  }
  return out;
}

/// Returns what told() does, after a line for each output.
std::string told_outputs(const OutputFindings& found) {
  std::string out;
  for (const MethodRun& run : found.runs) {
    for (std::size_t i = 0; i < run.outputs.size(); ++i) {
      out += text("{}, {}: {}\n", printable(run.method), run.inputs, summary(run.outputs[i], i));
    }
  }
  return out + told(found);
}

OutputFindings outputs_in_folder(const SourceLike& bundle, const PathLike& folder,
                                 std::optional<std::string> method, std::optional<std::uint64_t> test_case,
                                 std::optional<double> atol, std::optional<double> rtol) {
  const ByteSource source = source_of(bundle);
  const std::string path = path_of(folder);
  const OutputComparisonOptions options{std::move(method), test_case, tolerance_of(atol, rtol)};
  return without_gil([&] { return compare_outputs(source, path, options); });
}

std::string inspected(const SourceLike& file, bool duplicates, const KeyNames& names) {
  const InspectOptions options{.duplicates = duplicates, .names = names};
  if (is_path(file)) {
    const std::string path = path_of(file);
    const OpenFile open_file = checkpoint_options(false).open_file;
    const FileInspection found = without_gil([&] { return inspect(path, options, open_file); });
    return json_text(inspection_to_json(path, found, duplicates, argument_words));
  }
  const ByteSource source = source_of(file);
  const FileInspection found = without_gil([&] { return inspect(source, options); });
  return json_text(inspection_to_json(source.name(), found, duplicates, argument_words));
}

FilePlan inspect_page(const SourceLike& file, const KeyNames& names) {
  if (is_path(file)) {
    return without_gil([&names, path = path_of(file)] {
      return plan_inspect_page(path, names, argument_words, checkpoint_options(false).open_file);
    });
  }
  const ByteSource source = source_of(file);
  return without_gil([&] { return plan_inspect_page(source, source.name(), names, argument_words); });
}

KeyNames key_names(const SourceLike& json) {
  return without_gil([source = source_of(json)] { return read_key_names(source); });
}

ProgramGraph read_graph(const SourceLike& file, const std::string& method) {
  return without_gil([&, source = source_of(file)]() -> Result<ProgramGraph> {
    ETSTREAM_ASSIGN(const ProgramFile program, open_program(source));
    return ProgramGraph::read(program, method);
  });
}

std::string graph_as_json(const SourceLike& file, const std::string& method) {
  std::string json;
  write_graph_json(read_graph(file, method), [&](std::string_view piece) { json += piece; });
  return json;
}

std::string graph_as_dot(const SourceLike& file, const std::string& method) {
  return graph_to_dot(read_graph(file, method));
}

MemoryBudget budget_of(const SourceLike& file) {
  return without_gil([source = source_of(file)] { return read_memory_budget(source); });
}

std::string budget_as_json(const SourceLike& file) {
  return json_text(budget_to_json(source_of(file).name(), budget_of(file)));
}

std::string budget_as_c(const SourceLike& file) { return budget_to_c(budget_of(file)); }

DiffOptions diff_options(std::optional<double> atol, std::optional<double> rtol, const KeyNames& names) {
  DiffOptions out{.names_a = names, .names_b = names};
  if (atol || rtol) out.tolerance = Tolerance{.absolute = atol.value_or(0), .relative = rtol.value_or(0)};
  return out;
}

std::string differences_of_paths(const PathLike& a, const PathLike& b, bool ignore_layout, bool partial,
                                 std::optional<double> atol, std::optional<double> rtol,
                                 const KeyNames& names) {
  const std::string in_a = path_of(a);
  const std::string in_b = path_of(b);
  const DiffOptions options = diff_options(atol, rtol, names);
  FileDiff found = without_gil([&] { return diff(in_a, in_b, options, checkpoint_options(partial)); });
  if (ignore_layout) etstream::ignore_layout(found);
  return json_text(differences_to_json(in_a, in_b, found));
}

std::string differences(const SourceLike& a, const SourceLike& b, bool ignore_layout,
                        std::optional<double> atol, std::optional<double> rtol, const KeyNames& names) {
  const ByteSource in_a = source_of(a);
  const ByteSource in_b = source_of(b);
  const DiffOptions options = diff_options(atol, rtol, names);
  FileDiff found = without_gil([&] { return diff(in_a, in_b, options); });
  if (ignore_layout) etstream::ignore_layout(found);
  return json_text(differences_to_json(in_a.name(), in_b.name(), found));
}

}  // namespace

void bind_reports(nb::module_& module) {
  nb::class_<Findings>(
      module, "Findings",
      "What a check has to say of a file: sentences for a person. True where there is no error.")
      .def_prop_ro(
          "errors", [](const Findings& self) { return list_of(self.errors); },
          "The file is damaged, or would harm or fail whoever runs it.")
      .def_prop_ro(
          "warnings", [](const Findings& self) { return list_of(self.warnings); },
          "It works, but not as one would think.")
      .def_ro(
          "unknown_operators", &Findings::unknown_operator_names,
          "The names of operators that a program calls and etstream does not know, at most 100: the runtime "
          "needs a kernel registered for each.")
      .def("raise_if_errors", &raise_if_errors,
           "Raises a CorruptError with all of them if there is an error. Its filename and offset are the "
           "first's.")
      .def("__bool__", &Findings::ok)
      .def("__str__", &told)
      .def("__repr__", [](const Findings& self) { return shown(self, "Findings"); });
  nb::class_<FileFindings, Findings>(module, "FileFindings",
                                     "The findings of verify(), with how methods ended where they were run.")
      .def("__repr__", [](const FileFindings& self) { return shown(self, "FileFindings"); })
      .def_prop_ro("runs", [](const FileFindings& self) { return list_of(self.runs); });
  nb::class_<OutputFindings, Findings>(
      module, "OutputFindings",
      "The findings of compare_outputs(). True if all outputs are as expected, and each file is of one.")
      .def("__bool__", &OutputFindings::as_expected)
      .def("__str__", &told_outputs)
      .def("__repr__",
           [](const OutputFindings& self) {
             return text("<etstream.OutputFindings: {}>", told_outputs(self));
           })
      .def_prop_ro(
          "runs", [](const OutputFindings& self) { return list_of(self.runs); },
          "What each test case expects beside what the device has written.")
      .def_prop_ro("problems", &OutputFindings::problems,
                   "How many outputs have no file, or several, or one of another size, dtype or shape.");
  module.def("compare_outputs", &outputs_in_folder, nb::arg("bundle"), nb::arg("outputs"),
             nb::arg("method").none(), nb::arg("test_case").none(), nb::arg("atol").none(),
             nb::arg("rtol").none());
  const nb::class_<MethodRunOptions> options(module, "MethodRunOptions");
  module.def("run_options", &run_options, nb::arg("python"), nb::arg("seed"), nb::arg("seconds"),
             nb::arg("memory"), nb::arg("atol").none(), nb::arg("rtol").none());
  module.def("verify", &verify_files, nb::arg("file"), nb::arg("weights"), nb::arg("runs").none());
  module.def("verify_paths", &verify_paths, nb::arg("file"), nb::arg("weights"), nb::arg("partial"),
             nb::arg("runs").none());
  module.def("inspect", &inspected, nb::arg("file"), nb::arg("duplicates"), nb::arg("names"));
  module.def("inspect_page", &inspect_page, nb::arg("file"), nb::arg("names"));
  module.def("read_key_names", &key_names, nb::arg("json"));
  module.def("graph", &graph_as_json, nb::arg("file"), nb::arg("method"));
  module.def("graph_dot", &graph_as_dot, nb::arg("file"), nb::arg("method"));
  module.def("memory_budget", &budget_as_json, nb::arg("file"));
  module.def("memory_budget_c", &budget_as_c, nb::arg("file"));
  module.def("diff", &differences, nb::arg("a"), nb::arg("b"), nb::arg("ignore_layout"),
             nb::arg("atol").none(), nb::arg("rtol").none(), nb::arg("names"));
  module.def("diff_paths", &differences_of_paths, nb::arg("a"), nb::arg("b"), nb::arg("ignore_layout"),
             nb::arg("partial"), nb::arg("atol").none(), nb::arg("rtol").none(), nb::arg("names"));
}

}  // namespace etstream::python
