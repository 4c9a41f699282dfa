// SPDX-License-Identifier: BSD-3-Clause
//
// etstream embed FILE -o OUT... [--target TARGET] [--symbol NAME] [--section NAME] [--align SIZE]
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/embedded_file.h"
#include "present/print.h"
#include "present/reports.h"

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
    auto outputs = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < plans.size(); ++i) {
      outputs.push_back({{"output", arguments.outputs[i]}, {"size", plans[i].size}});
    }
    print_json({{"file", arguments.file},
                {"size", file.data.size()},
                {"symbol", file.symbol},
                {"section", section_of(file)},
                {"alignment", file.alignment},
                {"needed_alignment", needed},
                {"outputs", std::move(outputs)}});
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
  ETSTREAM_TRY(arguments.dry_run ? check_outputs(outputs, arguments) : write_outputs(outputs, arguments));
  print_report(arguments, file, needed, plans);
  return {};
}

void check_embed(const CLI::App& /*command*/, const EmbedArguments& arguments) {
  const auto needs_target = [](const std::string& path) { return path.ends_with(".o"); };
  if (arguments.target.empty() && std::ranges::any_of(arguments.outputs, needs_target)) {
    throw CLI::RequiredError("--target");
  }
  check_report(arguments.json && !arguments.dry_run, arguments.outputs);
}

}  // namespace

void add_embed_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<EmbedArguments>(
      app, chosen, "embed", "Make a file part of a program for a board", embed_command, check_embed);
  command.add_option("FILE", arguments.file, "The file, such as a program or a bundle")->required();
  add_list(
      command, "-o,--output", "OUT", arguments.outputs,
      "Write an object file (NAME.o), assembly (NAME.S), or the header (NAME.h) that declares what either "
      "of these has")
      ->required();
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

}  // namespace etstream::cli
