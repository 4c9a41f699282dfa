// SPDX-License-Identifier: BSD-3-Clause
//
// etstream inspect FILE [--graph METHOD] [--duplicates] [--html OUT.html]
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/print.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "etstream/bundled_program_file.h"
#include "etstream/inspect.h"
#include "etstream/program_graph.h"
#include "report/graph_report.h"
#include "report/inspect_page_report.h"
#include "report/inspect_report.h"
#include "report/json_report.h"
#include "report/summary_report.h"

namespace etstream::cli {
namespace {

/// A person reads no more; --json has all.
constexpr std::size_t kMostParts = 60;

struct InspectArguments {
  std::string file;
  std::optional<std::string> graph;
  std::string graph_format = "dot";
  bool duplicates = false;
  bool json = false;
  std::string html;
};

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

void print_duplicates(const std::vector<Duplicates>& duplicates) {
  std::uint64_t wasted = 0;
  for (const Duplicates& group : duplicates) wasted += group.wasted();
  say("\nduplicate bytes: %" PRIu64 "\n", wasted);
  const std::size_t rows = std::min(kMostParts, duplicates.size());
  for (std::size_t i = 0; i < rows; ++i) {
    say("%14" PRIu64 "  %s\n", duplicates[i].size, joined(duplicates[i].names).c_str());
  }
  if (rows < duplicates.size()) {
    say("%14s and %s; --json lists all\n", "...", counted(duplicates.size() - rows, "more").c_str());
  }
}

void print_row(const FileInspection& found, std::uint64_t offset, std::uint64_t size, std::uint64_t alignment,
               const std::string& name) {
  const double share =
      found.size == 0 ? 0 : 100 * static_cast<double>(size) / static_cast<double>(found.size);
  say("%14" PRIu64 " %14" PRIu64 " %6" PRIu64 " %5.1f%%  %s\n", offset, size, alignment, share, name.c_str());
}

void print_inspection(const std::string& file, const FileInspection& found) {
  const std::string version =
      found.format == FileKind::kSafetensors || found.format == FileKind::kNativePackage
          ? ""
          : text("version {}, ", found.version);
  say("%s: %s, %s%s (%" PRIu64 " bytes)\n\n", file.c_str(), std::string(describe(found.format)).c_str(),
      version.c_str(), readable_size(found.size).c_str(), found.size);
  say("%14s %14s %6s %6s  %s\n", "offset", "size", "align", "share", "what");
  const std::size_t rows = std::min(kMostParts, found.parts.size());
  for (std::size_t i = 0; i < rows; ++i) {
    const FilePart& part = found.parts[i];
    print_row(found, part.offset, part.size, part.alignment, part.name);
  }
  if (rows < found.parts.size()) {
    say("%14s and %s; --json lists all\n", "...", counted(found.parts.size() - rows, "more part").c_str());
  }
  say("%14s %14" PRIu64 " %6s %5.1f%%  tables around them and padding\n", "", found.metadata_size, "",
      found.size == 0 ? 0 : 100 * static_cast<double>(found.metadata_size) / static_cast<double>(found.size));
  for (std::size_t i = 0; i < found.methods.size(); ++i) {
    const MethodInfo& method = found.methods[i];
    say("\nmethod %s\n  inputs:  %s\n  outputs: %s\n", printable(method.name).c_str(),
        joined(described(method.inputs)).c_str(), joined(described(method.outputs)).c_str());
    print_method(found.program->methods[i]);
  }
  if (!found.named_data_users.empty()) say("\n");
  for (const std::string& user : found.named_data_users) say("%s\n", printable(user).c_str());
  if (!found.metadata.empty()) say("\nmetadata\n");
  for (const auto& [key, value] : found.metadata) {
    say("  %s = %s\n", printable(key).c_str(), printable(value).c_str());
  }
  if (found.program) print_totals(*found.program);
  if (!found.suites.empty()) say("\n");
  for (const auto& suite : found.suites) {
    say("test suite of %s: %s\n", printable(suite.method_name).c_str(),
        counted(suite.test_cases, "case").c_str());
  }
}

Result<void> show_graph(const InspectArguments& arguments, const ByteSource& file) {
  ETSTREAM_ASSIGN(const ProgramFile program, open_program(file));
  ETSTREAM_ASSIGN(const ProgramGraph graph, ProgramGraph::read(program, *arguments.graph));
  if (arguments.json || arguments.graph_format == "json") {
    write_graph_json(graph, [](std::string_view json) { std::fwrite(json.data(), 1, json.size(), stdout); });
  } else {
    print_to(stdout, graph_to_dot(graph));
  }
  return {};
}

Result<void> inspect_command(const InspectArguments& arguments) {
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(arguments.file));
  if (arguments.graph) return show_graph(arguments, file);
  if (!arguments.html.empty()) {
    ETSTREAM_ASSIGN(const FilePlan page, plan_inspect_page(file, arguments.file));
    return write_outputs({{&page, arguments.html, true}}, {});
  }
  ETSTREAM_ASSIGN(const FileInspection found, inspect(file, {.duplicates = arguments.duplicates}));
  if (arguments.json) {
    auto out = inspection_to_json(arguments.file, found);
    if (arguments.duplicates) out["duplicates"] = duplicates_to_json(found.duplicates);
    print_json(out);
  } else {
    print_inspection(arguments.file, found);
    if (arguments.duplicates) print_duplicates(found.duplicates);
  }
  return {};
}

}  // namespace

void add_inspect_command(CLI::App& app, Run& run) {
  CLI::App* command =
      app.add_subcommand("inspect", "Show what a program, a bundle, tensor data or a checkpoint consists of");
  auto arguments = std::make_shared<InspectArguments>();
  command->add_option("FILE", arguments->file, "The file to look into")->required();
  auto* graph = command->add_option("--graph", arguments->graph, "Show this method of the program as a graph")
                    ->type_name(kName);
  command->add_option("--format", arguments->graph_format, "Of the graph: for Graphviz, or JSON")
      ->check(CLI::IsMember({"dot", "json"}).description(""))
      ->type_name("dot|json")
      ->capture_default_str()
      ->needs(graph);
  command
      ->add_flag("--duplicates", arguments->duplicates, "Also find what is in the file twice, which reads it")
      ->excludes(graph);
  auto* json = command->add_flag("--json", arguments->json, "Show it as JSON");
  command
      ->add_option(
          "--html", arguments->html,
          "Write a page with a map of the file instead, which reads payloads of one size, and samples")
      ->type_name("OUT.html")
      ->excludes(graph)
      ->excludes(json);
  command->callback([arguments, &run] { run = [arguments] { return inspect_command(*arguments); }; });
}

}  // namespace etstream::cli
