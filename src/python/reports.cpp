// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/verify.h"
#include "present/reports.h"
#include "python/bindings.h"
#include "python/checkpoints.h"
#include "python/errors.h"
#include "python/sources.h"

namespace etstream::python {
namespace {

/// The options for running methods; nothing if they are not run.
using RunOptions = std::optional<MethodRunOptions>;

MethodRunOptions run_options(std::string python, std::uint64_t seed, std::uint32_t seconds,
                             std::uint64_t memory, std::optional<double> atol, std::optional<double> rtol) {
  return {.python = std::move(python),
          .seed = seed,
          .seconds = seconds,
          .memory = memory,
          .tolerance = tolerance_of(atol, rtol),
          .go_on = [] { return check_signals().has_value(); }};
}

/// Returns sentences with the places that they name.
nb::list told(const std::vector<Finding>& findings) {
  nb::list out;
  for (const Finding& one : findings) {
    out.append(nb::make_tuple(full_message(one, argument_words), one.file, one.offset));
  }
  return out;
}

nb::dict report_of(const std::string& file, bool ok, const Findings& found) {
  nb::dict out;
  out["file"] = file;
  out["ok"] = ok;
  out["errors"] = told(found.errors);
  out["warnings"] = told(found.warnings);
  return out;
}

Report report_of(const std::string& file, const FileFindings& found, const RunOptions& runs) {
  nb::dict out = report_of(file, found.ok(), found);
  if (!found.files.empty()) out["files"] = found.files;
  if (!found.weights.empty()) out["tensor_data"] = found.weights;
  if (found.external_keys) {
    out["external_keys"] = *found.external_keys;
    out["unknown_operators"] = found.unknown_operators;
    out["unknown_operator_names"] = found.unknown_operator_names;
  }
  if (runs) out["runs"] = in_python(runs_to_json(found.runs));
  return out;
}

Report verify_paths(const PathLike& file, const std::vector<nb::object>& weights, bool partial,
                    const RunOptions& runs) {
  const std::string path = path_of(file);
  const std::vector<std::string> paths = paths_of(weights);
  const CheckpointOptions options = checkpoint_options(partial);
  const FileFindings found = without_gil([&]() -> Result<FileFindings> {
    ETSTREAM_ASSIGN(FileFindings findings, verify(path, paths, options));
    if (runs) ETSTREAM_TRY(add_runs(path, *runs, findings, options.open_file));
    return findings;
  });
  return report_of(path, found, runs);
}

Report verify_files(const SourceLike& file, const SourcesLike& weights, const RunOptions& runs) {
  const ByteSource source = source_of(file);
  const std::vector<ByteSource> sources = sources_of(weights);
  const FileFindings found = without_gil([&]() -> Result<FileFindings> {
    ETSTREAM_ASSIGN(FileFindings findings, verify(source, sources));
    if (runs) ETSTREAM_TRY(add_runs(source, sources, *runs, findings));
    return findings;
  });
  return report_of(source.name(), found, runs);
}

Report outputs_in_folder(const SourceLike& bundle, const PathLike& folder, std::optional<std::string> method,
                         std::optional<std::uint64_t> test_case, std::optional<double> atol,
                         std::optional<double> rtol) {
  const ByteSource source = source_of(bundle);
  const std::string path = path_of(folder);
  const OutputComparisonOptions options{std::move(method), test_case, tolerance_of(atol, rtol)};
  const OutputFindings found = without_gil([&] { return compare_outputs(source, path, options); });
  nb::dict out = report_of(source.name(), found.as_expected(), found);
  out["outputs"] = path;
  out["runs"] = in_python(runs_to_json(found.runs));
  return out;
}

Report inspected(const SourceLike& file, bool duplicates, const KeyNames& names) {
  const InspectOptions options{.duplicates = duplicates, .names = names};
  if (is_path(file)) {
    const std::string path = path_of(file);
    const OpenFile open_file = checkpoint_options(false).open_file;
    const FileInspection found = without_gil([&] { return inspect(path, options, open_file); });
    return in_python(inspection_to_json(path, found, duplicates, argument_words));
  }
  const ByteSource source = source_of(file);
  const FileInspection found = without_gil([&] { return inspect(source, options); });
  return in_python(inspection_to_json(source.name(), found, duplicates, argument_words));
}

ByteSource piece_of(const SourceLike& file, const std::string& path) {
  if (!is_path(file)) return without_gil([&, source = source_of(file)] { return find_piece(source, path); });
  return without_gil([&path, file = path_of(file), open_file = checkpoint_options(false).open_file] {
    return find_piece(file, path, open_file);
  });
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

Report graph_report(const SourceLike& file, const std::string& method) {
  std::string json;
  write_graph_json(read_graph(file, method), [&](std::string_view piece) { json += piece; });
  return in_python(Json::of_text(json));
}

std::string graph_as_dot(const SourceLike& file, const std::string& method) {
  return graph_to_dot(read_graph(file, method));
}

MemoryBudget budget_of(const SourceLike& file) {
  return without_gil([source = source_of(file)] { return read_memory_budget(source); });
}

Report budget_report(const SourceLike& file) {
  return in_python(budget_to_json(source_of(file).name(), budget_of(file)));
}

std::string budget_as_c(const SourceLike& file) { return budget_to_c(budget_of(file)); }

Report differences(const SourceLike& a, const SourceLike& b, bool ignore_layout, bool partial,
                   std::optional<double> atol, std::optional<double> rtol, const KeyNames& names) {
  DiffOptions options{.names_a = names, .names_b = names};
  if (atol || rtol) options.tolerance = Tolerance{.absolute = atol.value_or(0), .relative = rtol.value_or(0)};
  const auto report = [&](FileDiff found, const std::string& in_a, const std::string& in_b) {
    if (ignore_layout) etstream::ignore_layout(found);
    return in_python(differences_to_json(in_a, in_b, found));
  };
  if (is_path(a) && is_path(b)) {
    const std::string in_a = path_of(a);
    const std::string in_b = path_of(b);
    return report(without_gil([&] { return diff(in_a, in_b, options, checkpoint_options(partial)); }), in_a,
                  in_b);
  }
  const ByteSource in_a = source_of(a);
  const ByteSource in_b = source_of(b);
  return report(without_gil([&] { return diff(in_a, in_b, options); }), in_a.name(), in_b.name());
}

}  // namespace

Report in_python(const Json& report) {
  const nb::object loads = nb::module_::import_("json").attr("loads");
  return Report(loads(nb::cast(report.text())));
}

void bind_reports(nb::module_& module) {
  module.def("compare_outputs", &outputs_in_folder);
  const nb::class_<MethodRunOptions> options(module, "MethodRunOptions");
  module.def(
      "printable", [](const std::string& words) { return printable(words); }, nb::arg("words"));
  module.def("run_options", &run_options);
  module.def("verify", &verify_files);
  module.def("verify_paths", &verify_paths);
  module.def("inspect", &inspected);
  module.def("find_piece", &piece_of);
  module.def("inspect_page", &inspect_page);
  module.def("read_key_names", &key_names);
  module.def("graph", &graph_report);
  module.def("graph_dot", &graph_as_dot);
  module.def("memory_budget", &budget_report);
  module.def("memory_budget_c", &budget_as_c);
  module.def("diff", &differences);
}

}  // namespace etstream::python
