// SPDX-License-Identifier: BSD-3-Clause
//
// etstream embed FILE -o OUT... [--target TARGET] [--symbol NAME] [--section NAME] [--align SIZE]
// etstream fat NAME=FILE... -o OUT.fat
// etstream ptn GRAPH [--constants WEIGHTS]... -o OUT.ptn
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "cli/output.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/embedded_file.h"
#include "etstream/fat_container.h"
#include "etstream/file_kind.h"
#include "etstream/native_package.h"
#include "present/json.h"
#include "present/print.h"

namespace etstream::cli {
namespace {

struct EmbedArguments : CommonOptions {
  std::string file;
  std::vector<std::string> outputs;
  std::string target;
  std::string symbol;
  std::string section;
  std::optional<std::uint32_t> alignment;
};

void print_report(const EmbedArguments& arguments, const EmbeddedFile& file, std::uint64_t needed,
                  const std::vector<FilePlan>& plans) {
  if (arguments.json) {
    Json outputs = Json::list();
    for (std::size_t i = 0; i < plans.size(); ++i) {
      outputs.push_back({{"output", arguments.outputs[i]}, {"size", plans[i].size}});
    }
    print_json({{"file", arguments.file},
                {"size", file.data.size()},
                {"symbol", file.symbol},
                {"section", section_of(file)},
                {"alignment", file.alignment},
                {"needed_alignment", needed},
                {"outputs", outputs}});
    return;
  }
  const std::string lack =
      file.alignment < needed ? text("; the file was written for {}", needed) : std::string();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    say("{}: {}, {} in {}, at a multiple of {}{}\n", arguments.outputs[i], file.symbol,
        counted(file.data.size(), "byte"), section_of(file), file.alignment, lack);
  }
}

Result<void> embed_command(const EmbedArguments& arguments) {
  ETSTREAM_ASSIGN(EmbeddedFile file, open_embedded_file(arguments.file));
  const std::uint64_t needed = file.alignment;
  if (!arguments.symbol.empty()) file.symbol = arguments.symbol;
  file.section = arguments.section;
  file.alignment = arguments.alignment.value_or(needed);
  if (const auto target = std::ranges::find(kObjectTargets, arguments.target);
      target != kObjectTargets.end()) {
    file.target = static_cast<ObjectTarget>(target - kObjectTargets.begin());
  }
  ETSTREAM_ASSIGN(const auto plans, plan_outputs(file, arguments.outputs));
  std::vector<Output> outputs;
  for (std::size_t i = 0; i < plans.size(); ++i) outputs.push_back({&plans[i], arguments.outputs[i]});
  ETSTREAM_TRY(write_outputs(outputs, arguments));
  print_report(arguments, file, needed, plans);
  return {};
}

void check_embed(const CLI::App& /*command*/, const EmbedArguments& arguments) {
  const auto needs_target = [](const std::string& path) { return path.ends_with(".o"); };
  if (arguments.target.empty() && std::ranges::any_of(arguments.outputs, needs_target)) {
    refuse_without("--target");
  }
  check_report(arguments.json && !arguments.dry_run, arguments.outputs);
}

}  // namespace

void add_embed_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<EmbedArguments>(
      app, chosen, "embed", "Make a file part of a program for a board", embed_command, check_embed);
  add_argument(command, "FILE", arguments.file, "The file, such as a program or a bundle").required();
  add_list(
      command, "-o,--output", "OUT", arguments.outputs,
      "Write an object file (NAME.o), assembly (NAME.S), or the header (NAME.h) that declares what either "
      "of these has")
      .required();
  add_choice(command, "--target", {kObjectTargets.begin(), kObjectTargets.end()}, arguments.target,
             "The processor that an object file is for; arm is any Cortex-M");
  add_option(command, "--symbol", kName, arguments.symbol,
             "Name the bytes so in C; by default as the file, model_pte for model.pte");
  add_option(command, "--section", kName, arguments.section,
             "Put them into this section, such as network_model_sec of Arm's runner; by default "
             ".rodata.SYMBOL");
  add_alignment(command, "--align", arguments.alignment,
                "Begin them at a multiple of this size, a power of two; by default what the file was written "
                "for");
  add_common_options(command, arguments);
}

namespace {

struct FatArguments : OutputOptions {
  std::vector<std::string> payloads;
  std::uint32_t alignment = 1;
  bool no_dedup = false;
};

Result<void> fat_command(const FatArguments& arguments) {
  FatContainer container{
      .payloads = {}, .alignment = arguments.alignment, .share_equal = !arguments.no_dedup};
  for (const std::string& each : arguments.payloads) {
    const auto equals = each.find('=');
    if (equals == std::string::npos) {
      return make_error(ErrorCode::kInvalidArgument, "expected NAME=FILE, found {}", quote(each));
    }
    ETSTREAM_ASSIGN(ByteSource data, ByteSource::file(each.substr(equals + 1)));
    container.payloads.push_back({each.substr(0, equals), std::move(data)});
  }
  ETSTREAM_ASSIGN(const FilePlan planned, plan(container));
  return show_or_write(planned, arguments, "payload", container.payloads.size());
}

}  // namespace

void add_fat_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<FatArguments>(
      app, chosen, "fat", "Pack files as the payloads of a fat container: one for each backend", fat_command,
      check_output);
  add_argument(command, "PAYLOAD", arguments.payloads,
               "A payload's name, such as that of its backend, and its file; readers prefer payloads in "
               "this order")
      .required();
  add_output_path(command, arguments, "The container", "OUT.fat");
  add_payload_alignment(command, arguments.alignment);
  add_flag(command, "--no-dedup", arguments.no_dedup,
           "Store every payload, even if others have equal bytes; payloads are then read only once");
  add_common_options(command, arguments);
}

namespace {

struct PtnArguments : OutputOptions {
  std::string graph;
  std::vector<std::string> constants;
  std::vector<std::string> only;
  std::vector<std::string> mutable_keys;
  std::uint32_t alignment = 1;
  bool partial = false;
};

Result<NativePackage> read_package(const PtnArguments& arguments) {
  NativePackage out;
  std::vector<Checkpoint> checkpoints;
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(arguments.graph));
  const auto kind = file_kind(file);
  if (kind && *kind == FileKind::kNativePackage) {
    ETSTREAM_ASSIGN(const NativePackageFile package, NativePackageFile::open(file));
    out.graph = package.graph();
    if (arguments.constants.empty()) checkpoints.push_back({{arguments.graph}, package.tensors()});
  } else {
    out.graph = file;
  }
  ETSTREAM_ASSIGN(auto constants, open_checkpoints(arguments.constants, {.partial = arguments.partial}));
  std::ranges::move(constants, std::back_inserter(checkpoints));
  ETSTREAM_ASSIGN(Checkpoint joined, join(std::move(checkpoints)));
  if (!arguments.only.empty()) ETSTREAM_TRY(select(joined, arguments.only));
  ETSTREAM_TRY(merge(joined));
  out.constants = std::move(joined.tensors);
  out.mutable_keys = arguments.mutable_keys;
  out.alignment = arguments.alignment;
  ETSTREAM_ASSIGN(out.modified, current_archive_time(std::getenv("SOURCE_DATE_EPOCH")));
  return out;
}

Result<void> ptn_command(const PtnArguments& arguments) {
  ETSTREAM_ASSIGN(const NativePackage package, read_package(arguments));
  ETSTREAM_ASSIGN(const FilePlan planned, plan(package));
  return show_or_write(planned, arguments, "constant", package.constants.size());
}

}  // namespace

void add_ptn_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<PtnArguments>(
      app, chosen, "ptn", "Write a package of the native backend (.ptn): a graph and its constants",
      ptn_command, check_output);
  add_argument(command, "GRAPH", arguments.graph,
               "A graph (.ptg); or a package (.ptn), whose graph is taken, and without --constants also "
               "its constants")
      .required();
  add_list(command, "--constants", "WEIGHTS", arguments.constants,
           "Take constants from this checkpoint, of any kind that ptd takes");
  add_output_path(command, arguments, "The package", "OUT.ptn");
  add_list(command, "--only", "GLOB", arguments.only,
           "Take only constants whose name matches this pattern with * and ?");
  add_partial_option(command, arguments.partial);
  add_list(command, "--mutable", kName, arguments.mutable_keys,
           "Give this constant bytes of its own, like the constants that the graph changes");
  add_alignment(command, "--align", arguments.alignment,
                "Begin the members, and constants whose size is a multiple of SIZE, at multiples of SIZE in "
                "the file, a power of two up to 32K; the default is 1");
  add_common_options(command, arguments);
}

}  // namespace etstream::cli
