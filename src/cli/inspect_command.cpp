// SPDX-License-Identifier: BSD-3-Clause
//
// etstream inspect FILE [--graph METHOD] [--budget] [--duplicates] [--html OUT.html] [--names NAMES.json]
//     [--by CHECKPOINT]
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/words.h"
#include "core/base/hashes.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/bundled_program.h"
#include "etstream/inspect.h"
#include "etstream/program.h"
#include "etstream/program_weights.h"
#include "etstream/reweight.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream::cli {
namespace {

/// The most parts of a file, and the most rows of each list of a method, that are printed; --json has all.
constexpr std::size_t kMostParts = 60;
constexpr std::size_t kMostRows = 10;

struct InspectArguments {
  std::string file;
  std::optional<std::string> graph;
  std::string format;
  bool budget = false;
  bool duplicates = false;
  bool json = false;
  std::string html;
  std::vector<std::string> names;
  std::vector<std::string> checkpoint;
};

/// Returns the name of a file without its folder, for people.
std::string file_name(const std::string& path) { return printable(path.substr(path.rfind('/') + 1)); }

/// Returns the rows of a list that are shown.
template <class Row>
std::span<const Row> shown(const std::vector<Row>& rows, std::size_t most = kMostParts) {
  return std::span(rows).first(std::min(most, rows.size()));
}

/// Prints the number of rows of a list that are not shown.
void print_rest(std::size_t rows, std::string_view noun) {
  if (rows > kMostParts) say("{:>14} and {}; --json lists all\n", "...", counted(rows - kMostParts, noun));
}

void print_duplicates(const std::vector<Duplicates>& duplicates) {
  std::uint64_t wasted = 0;
  for (const Duplicates& group : duplicates) wasted += group.wasted();
  say("\nduplicate bytes: {}\n", wasted);
  for (const Duplicates& group : shown(duplicates)) say("{:14}  {}\n", group.size, joined(group.paths, ", "));
  print_rest(duplicates.size(), "more group");
}

/// Prints the number of rows of a method's list that are not shown.
void print_more(std::size_t count, std::string_view noun) {
  if (count > kMostRows) say("    ... and {}\n", counted(count - kMostRows, noun));
}

void print_operators(const InspectedMethod& method) {
  if (method.operators.empty()) return;
  say("  operators by calls:\n");
  for (const InspectedMethod::Operator& called : shown(method.operators, kMostRows)) {
    say("    {:8}  {}\n", called.calls, printable(called.name));
  }
  print_more(method.operators.size(), "more operator");
}

void print_delegates(const InspectedMethod& method) {
  struct Totals {
    std::uint64_t delegates = 0;
    std::uint64_t calls = 0;
    std::uint64_t size = 0;
  };
  std::map<std::string, Totals> backends;
  for (const InspectedMethod::Delegate& delegate : method.delegates) {
    Totals& backend = backends[delegate.backend];
    ++backend.delegates;
    backend.calls += delegate.calls;
    backend.size += delegate.data.size();
  }
  for (const auto& [name, backend] : backends) {
    say("  {} to {}, {} of data, {}\n", counted(backend.delegates, "delegate"), printable(name),
        readable_size(backend.size), counted(backend.calls, "call"));
  }
}

void print_tensors(const FileInspection& found, const InspectedMethod& method) {
  if (method.tensors.empty()) return;
  say("  tensors by size:\n");
  for (const InspectedMethod::Tensor& tensor : shown(method.tensors, kMostRows)) {
    const std::string path = piece_path(found, tensor);
    say("    {:14}  {:8}  {}{}{}{}{}\n", tensor.size, name_of(tensor.storage), describe(tensor.info),
        tensor.name.empty() ? "" : " ", printable(tensor.name), path.empty() ? "" : "  ", path);
  }
  print_more(method.tensors.size(), "more tensor");
}

void print_method(const FileInspection& found, const InspectedMethod& method) {
  say("\nmethod {}\n  inputs:  {}\n  outputs: {}\n", printable(method.name),
      joined(described(method.inputs), ", "), joined(described(method.outputs), ", "));
  say("  {}\n", counted(method.instructions, "instruction"));
  print_operators(method);
  print_delegates(method);
  print_tensors(found, method);
  for (const InspectedMethod::Memory& memory : method.memories) {
    say("  planned memory {}: {}, for {} of {}\n", memory.id, readable_size(memory.size),
        counted(memory.tensors, "tensor"), readable_size(memory.tensor_bytes));
  }
}

void print_named_data(const std::vector<NamedDataInfo>& listed) {
  if (listed.empty()) return;
  say("\nnamed data\n");
  for (const NamedDataInfo& info : shown(listed)) {
    std::string said;
    if (!info.name.empty()) said += text("  {}", printable(info.name));
    if (!info.offset) said += "  not in this file";
    if (!info.asked_by.empty()) said += text("  for {}", printable(info.asked_by.front()));
    if (info.asked_by.size() > 1) said += text(" and {}", counted(info.asked_by.size() - 1, "more use"));
    say("{:14}  {}{}\n", info.size, printable(info.path.empty() ? info.key : info.path), said);
  }
  print_rest(listed.size(), "more key");
}

/// Prints the keys of tensor data if the names of some are known.
void print_named_keys(const FileInspection& found) {
  const auto has_name = [&](const NamedTensorData& each) { return found.names.contains(each.key); };
  if (std::ranges::none_of(found.named_data, has_name)) return;
  say("\nnamed data\n");
  const std::vector<std::string> paths = named_paths(found);
  for (std::size_t i = 0; i < shown(paths).size(); ++i) {
    const NamedTensorData& each = found.named_data[i];
    const auto name = found.names.find(each.key);
    say("{:14}  {}{}\n", each.data.size(), printable(paths[i]),
        name == found.names.end() ? "" : "  " + printable(name->second));
  }
  print_rest(found.named_data.size(), "more key");
}

std::string text_of(const PayloadFact& fact) {
  const auto* number = std::get_if<std::int64_t>(&fact.value);
  return text("{} = {}", printable(fact.name),
              number ? text("{}", *number) : printable(std::get<std::string>(fact.value)));
}

void print_payloads(const std::vector<InspectedPayload>& payloads) {
  if (payloads.empty()) return;
  say("\ndata of delegates\n");
  for (const InspectedPayload& payload : shown(payloads)) {
    std::string said = printable(payload.backend);
    if (!payload.format.empty()) said += ": " + payload.format;
    if (payload.keys > 0) said += text(", with {} of named data", counted(payload.keys, "key"));
    say("{:14}  {}  {}\n", payload.data.size(), printable(payload.path), said);
    for (const PayloadFact& fact : shown(payload.facts, kMostRows)) say("{:16}  {}\n", "", text_of(fact));
    print_more(payload.facts.size(), "more fact");
    for (std::size_t i = 0; i < shown(payload.parts, kMostRows).size(); ++i) {
      const PayloadPart& part = payload.parts[i];
      say("{:14}    {}  at {}{}\n", part.size, printable(payload.part_paths[i]), part.offset,
          part.key.empty() ? "" : ", a key of named data");
    }
    print_more(payload.parts.size(), "more part");
  }
  print_rest(payloads.size(), "more payload");
}

void print_totals(const ProgramBytes& program) {
  say("\nflatbuffer {}, {} of {}, {} with {} of padding before them\n",
      readable_size(program.flatbuffer_size), counted(program.constants, "constant"),
      readable_size(program.constant_bytes), counted(program.segments.size(), "segment"),
      readable_size(program.padding));
}

void print_inspection(const std::string& file, const FileInspection& found) {
  const std::string version = found.format == FileKind::kSafetensors ||
                                      found.format == FileKind::kNativePackage ||
                                      found.format == FileKind::kTorch
                                  ? ""
                                  : text("version {}, ", found.version);
  const std::string files = found.files.empty() ? "" : text(" in {}", counted(found.files.size(), "file"));
  say("{}: {}{}, {}{} ({} bytes)\n", file, describe(found.format), files, version, readable_size(found.size),
      found.size);
  if (found.memory_alignment) say("where it lies in memory: at a multiple of {}\n", *found.memory_alignment);
  for (const Finding& note : found.notes) say("{}\n", full_message(note, option_words));
  if (const auto& update = found.update) {
    say("makes {} from the {} {} the hash {}; {} of them change\n", counted(update->original_size, "byte"),
        counted(update->base_size, "byte"),
        update->is_derived ? "that steps give of a checkpoint, in a recipe with" : "with",
        hex(update->base_hash), update->changed_size);
  }
  say("\n");
  const auto share = [&](std::uint64_t size) {
    return found.size == 0 ? 0 : 100 * static_cast<double>(size) / static_cast<double>(found.size);
  };
  say("{:>14} {:>14} {:>6} {:>6}  {}\n", "offset", "size", "align", "share", "what");
  for (const FilePart& part : shown(found.parts)) {
    std::string said = printable(part.path);
    if (!part.what.empty()) said += "  " + part.what;
    if (part.others > 0) said += text("  and {}", counted(part.others, "more name"));
    say("{:14} {:14} {:6} {:5.1f}%  {}{}\n", part.offset, part.size, part.alignment, share(part.size),
        found.files.empty() ? "" : file_name(found.files[part.file].path) + ": ", said);
  }
  print_rest(found.parts.size(), "more part");
  say("{:14} {:14} {:6} {:5.1f}%  tables around them and padding\n", "", found.metadata_size, "",
      share(found.metadata_size));
  for (const InspectedMethod& method : found.methods) print_method(found, method);
  print_named_data(found.program_data);
  print_named_keys(found);
  print_payloads(found.payloads);
  if (!found.metadata.empty()) say("\nmetadata\n");
  for (const auto& [key, value] : found.metadata) say("  {} = {}\n", printable(key), printable(value));
  if (found.program) print_totals(*found.program);
  if (!found.suites.empty()) say("\n");
  for (const auto& suite : found.suites) {
    say("test suite of {}: {}\n", printable(suite.method_name), counted(suite.test_cases, "case"));
  }
}

Result<void> show_graph(const InspectArguments& arguments, const ByteSource& file) {
  ETSTREAM_ASSIGN(const ProgramFile program, open_program(file));
  ETSTREAM_ASSIGN(const ProgramGraph graph, ProgramGraph::read(program, *arguments.graph));
  if (arguments.json) {
    write_graph_json(graph, [](std::string_view json) { std::fwrite(json.data(), 1, json.size(), stdout); });
  } else {
    print_to(stdout, graph_to_dot(graph));
  }
  return {};
}

Result<void> show_budget(const InspectArguments& arguments) {
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(arguments.file));
  ETSTREAM_ASSIGN(const MemoryBudget budget, read_memory_budget(file));
  if (!arguments.format.empty()) {
    print_to(stdout, budget_to_c(budget));
  } else if (arguments.json) {
    print_json(budget_to_json(arguments.file, budget));
  } else {
    print_budget(arguments.file, budget);
  }
  return {};
}

/// Adds the names of the tensors of the checkpoint that the program's payloads are.
Result<void> add_names_by(const InspectArguments& arguments, KeyNames& names) {
  ETSTREAM_ASSIGN(const auto program, ProgramWithWeights::open(arguments.file, {}));
  ETSTREAM_ASSIGN(const Checkpoint checkpoint, open_joined_checkpoint(arguments.checkpoint));
  const auto origins = explain(program.program, {}, checkpoint);
  if (!origins && origins.error().code == ErrorCode::kNotFound) {
    return with_advice(origins.error(),
                       {"etstream explain PROGRAM WEIGHTS.ptd --by CHECKPOINT takes the tensor data too"});
  }
  if (!origins) return origins.error();
  names.merge(key_names_of(*origins));
  return {};
}

Result<void> inspect_command(const InspectArguments& arguments) {
  if (arguments.budget) return show_budget(arguments);
  if (arguments.graph) {
    ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(arguments.file));
    return show_graph(arguments, file);
  }
  ETSTREAM_ASSIGN(KeyNames names, read_names(arguments.names));
  if (!arguments.checkpoint.empty()) ETSTREAM_TRY(add_names_by(arguments, names));
  if (!arguments.html.empty()) {
    ETSTREAM_ASSIGN(const FilePlan page, plan_inspect_page(arguments.file, names, option_words));
    return write_outputs({{&page, arguments.html, true}}, {});
  }
  ETSTREAM_ASSIGN(const FileInspection found,
                  inspect(arguments.file, {.duplicates = arguments.duplicates, .names = names}));
  if (arguments.json) {
    print_json(inspection_to_json(arguments.file, found, arguments.duplicates, option_words));
  } else {
    print_inspection(arguments.file, found);
    if (arguments.duplicates) print_duplicates(found.duplicates);
  }
  return {};
}

void check_inspect(const CLI::App& command, const InspectArguments& arguments) {
  if (arguments.format.empty()) return;
  const std::string report = arguments.format == "dot" ? "--graph" : "--budget";
  if (!is_given(command, report)) refuse(text("--format {} requires {}", arguments.format, report));
}

}  // namespace

void add_inspect_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<InspectArguments>(
      app, chosen, "inspect", "Show the parts of a program, a bundle, tensor data or a checkpoint",
      inspect_command, check_inspect);
  add_argument(command, "FILE", arguments.file,
               "The file to look into; or a folder with a checkpoint, or its index")
      .required();
  const Option graph =
      add_option(command, "--graph", kName, arguments.graph, "Show this method of the program as a graph");
  const Option budget =
      add_flag(command, "--budget", arguments.budget,
               "Show the memory that ExecuTorch's runtime asks for to load and run the program")
          .excludes(graph);
  const Option format = add_choice(command, "--format", {"dot", "c"}, arguments.format,
                                   "Show the graph for Graphviz (dot, the default); or the budget as C");
  add_flag(command, "--duplicates", arguments.duplicates,
           "Also find data that is in the file twice; this reads the data")
      .excludes(graph)
      .excludes(budget);
  add_names_option(command, arguments.names).excludes(graph).excludes(budget);
  add_list(command, "--by", "CHECKPOINT", arguments.checkpoint,
           "Name the payloads of a program by the tensors of this checkpoint, as explain finds them; this "
           "reads both")
      .excludes(graph)
      .excludes(budget);
  add_base_option(command);
  const Option json = add_flag(command, "--json", arguments.json, "Show the report as JSON").excludes(format);
  add_option(command, "--html", "OUT.html", arguments.html,
             "Write a page with a map of the file instead; this reads payloads of one size, and samples")
      .excludes(graph)
      .excludes(budget)
      .excludes(json);
}

}  // namespace etstream::cli
