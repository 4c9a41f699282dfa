// SPDX-License-Identifier: BSD-3-Clause
//
// etstream help [SUBCOMMAND]
#include "cli/help.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "cli/words.h"
#include "core/base/text.h"
#include "present/print.h"

namespace etstream::cli {
namespace {

constexpr std::size_t kPageWidth = 80;
constexpr std::size_t kPageColumn = 28;  // where descriptions begin

/// The examples of a subcommand. Those of all subcommands run one after another in a folder with model.pte,
/// as a test runs them.
struct Examples {
  std::string_view name;
  std::string_view examples[2];
};
constexpr Examples kExamples[] = {
    {"bundle", {"model.pte --cases cases.json --dry-run", "model.pte --cases cases.json -o model.bpte"}},
    {"compare", {"model.bpte --outputs outputs", "model.bpte --outputs outputs --atol 1e-3 --json"}},
    {"compile", {"schema.fbs data.json -o data.bin", "schema.fbs exact.json -o data.bin --exact"}},
    {"convert", {"model.bpte --to segmented -o large.bpte", "large.bpte --to bp08 -o model.bpte"}},
    {"decompile", {"schema.fbs data.bin -o data.json", "schema.fbs data.bin -o exact.json --exact"}},
    {"diff", {"model.pte out.pte", "model.pte out.pte --ignore-layout --json"}},
    {"embed", {"model.pte --target arm -o model.o -o model.h", "model.pte -o model.S"}},
    {"explain", {"model.pte --by checkpoint", "thin.pte weights.ptd --by model.safetensors"}},
    {"extract", {"model.bpte program -o model.pte --cases cases", "weights.ptd named/NAME -o tensor.bin"}},
    {"fat", {"cpu=model.pte npu=out.pte -o model.fat", "cpu=model.pte npu=out.pte --align 16K -o model.fat"}},
    {"help", {"bundle", "pte"}},
    {"inspect", {"model.pte", "model.bpte --html page.html"}},
    {"pack", {"model.pte", "out.pte --base model.pte -o update.etz"}},
    {"profile", {"-- python3 export.py", "--html page.html --fail-above 2G -- python3 export.py"}},
    {"ptd", {"model.safetensors -o weights.ptd", "checkpoint --map llama -o consolidated.pth"}},
    {"pte",
     {"model.pte -o out.pte --segment-alignment 4K", "model.pte --constants-to weights.ptd -o thin.pte"}},
    {"ptn",
     {"graph.ptg --constants weights.ptd -o model.ptn", "graph.ptg --constants weights.ptd --dry-run"}},
    {"reweight", {"model.pte --was old --now new -o out.pte", "model.pte --was old --now new --dry-run"}},
    {"run", {"-- python3 export.py", "--limit 4G -- python3 export.py"}},
    {"share", {"model.pte out.pte --weights-to all.ptd --out-dir out", "model.pte out.pte --dry-run"}},
    {"unpack", {"model.pte.etz", "update.etz --base model.pte -o new.pte"}},
    {"verify", {"model.pte", "thin.pte weights.ptd --run"}},
};

/// The names that other tools have for what inspect does.
constexpr std::string_view kWordsForInspect[] = {"info", "ls", "show"};

/// Returns `words` in lines of at most kPageWidth columns. The first begins where it is, at column `used`;
/// the others begin at column `indent`.
std::string filled(std::string_view words, std::size_t used, std::size_t indent) {
  std::string out;
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(std::min(words.size(), word.size() + 1));
    if (used != indent && used + 1 + word.size() > kPageWidth) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (used != indent) {
      out += ' ';
      ++used;
    }
    out += word;
    used += word.size();
  }
  return out + "\n";
}

/// Returns "  NAME   DESCRIPTION" in two columns.
std::string row(const std::string& name, const std::string& description) {
  std::string out = "  " + name;
  if (out.size() + 2 > kPageColumn) out += "\n";
  const std::size_t used = out.ends_with('\n') ? 0 : out.size();
  return out + std::string(kPageColumn - used, ' ') + filled(description, kPageColumn, kPageColumn);
}

std::string name_of(const CLI::Option& option) {
  return joined(names_of(option), ", ") + (option.nonpositional() ? " " : "") + value_of(option);
}

/// Returns the command with what it needs: "etstream bundle MODEL --cases CASES.json [OPTION]..."
std::string usage(const CLI::App& app, const std::string& name) {
  std::string out = name;
  for (const CLI::Option* option : app.get_options()) {
    const bool is_list = option->get_items_expected_max() > 1;
    if (option->get_required() || !option->nonpositional()) {
      out += (option->nonpositional() ? " " + names_of(*option).front() : "") + " " + value_of(*option) +
             (is_list ? "..." : "");
    }
  }
  return out + " [OPTION]...";
}

/// Returns the help of the whole command.
std::string help_of_all(const CLI::App& app) {
  std::string out =
      filled(app.get_description(), 0, 0) + "\nUsage: etstream SUBCOMMAND [OPTION]...\n\nSubcommands:\n";
  for (const CLI::App* command : app.get_subcommands({}))
    out += row(command->get_name(), command->get_description());
  out += "\nCommon options, of subcommands that write or report:\n";
  for (const auto& [name, description] : kCommonOptions)
    out += row(std::string(name), std::string(description));
  return out + "\netstream help SUBCOMMAND tells more. etstream --version tells the version.\n";
}

}  // namespace

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> out;
  for (const std::string& name : option.get_snames()) out.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.push_back("--" + name);
  return out;
}

std::string value_of(const CLI::Option& option) {
  if (option.nonpositional()) return option.get_items_expected_max() > 0 ? option.get_type_name() : "";
  return option.get_name();
}

std::vector<std::string> examples_of(const CLI::App& command) {
  const auto known = std::ranges::find(kExamples, command.get_name(), &Examples::name);
  std::vector<std::string> out;
  for (const std::string_view words : known->examples) {
    out.push_back(text("etstream {} {}", command.get_name(), words));
  }
  return out;
}

bool is_help(const CLI::Option& option) { return option.check_lname("help"); }

bool is_common(const CLI::Option& option) { return option.get_group() == kCommonGroup; }

std::vector<std::string> common_names(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* option : app.get_options([](const CLI::Option* one) { return is_common(*one); }))
    out.push_back(option->get_name());
  return out;
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::App* command : app.get_subcommands({})) out.push_back(command->get_name());
  return out;
}

Error did_you_mean(std::string words, const std::string& meant) {
  Error out{ErrorCode::kInvalidArgument, std::move(words)};
  if (!meant.empty()) out.advice = {text("did you mean {}?", meant)};
  return out;
}

Error no_subcommand(const CLI::App& app, const std::string& word) {
  const bool looks = std::ranges::find(kWordsForInspect, word) != std::end(kWordsForInspect);
  return did_you_mean(text("there is no subcommand {}", quote(word)),
                      looks ? "inspect" : nearest(word, subcommand_names(app)));
}

std::string HelpPage::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode /*mode*/) const {
  if (app->get_parent() == nullptr) return help_of_all(*app);
  std::string out = filled(app->get_description() + ".", 0, 0) + "\n";
  for (const std::string& example : examples_of(*app)) out += text("  {}\n", example);
  out += "\nUsage:" + filled(usage(*app, name), 6, 9);
  for (const CLI::Option* option : app->get_options()) {
    if (!is_help(*option) && !is_common(*option)) out += row(name_of(*option), option->get_description());
  }
  const std::string common = joined(common_names(*app), " ");
  if (!common.empty()) out += "\nCommon options, which etstream help describes:" + filled(common, 46, 2);
  if (!app->get_footer().empty()) out += "\n" + filled(app->get_footer(), 0, 0);
  return out;
}

namespace {

struct HelpArguments {
  std::string name;
};

/// Returns the subcommand of this name, or the whole command. Throws WrongValue if there is none.
const CLI::App& named(const CLI::App& app, const HelpArguments& arguments) {
  if (arguments.name.empty()) return app;
  const auto found =
      app.get_subcommands([&](const CLI::App* command) { return command->get_name() == arguments.name; });
  if (found.empty()) refuse(no_subcommand(app, arguments.name));
  return *found.front();
}

/// Prints the help of `app`. A subcommand's help() can't do this: it prints the help of the chosen
/// subcommand, which is this one.
void print_help(const CLI::App& app, const HelpArguments& arguments) {
  const std::string name = "etstream " + arguments.name;
  print_to(stdout, app.get_formatter()->make_help(&named(app, arguments), name, CLI::AppFormatMode::Normal));
}

}  // namespace

void add_help_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<HelpArguments>(
      app, chosen, "help", "Show the use of a subcommand, or list all subcommands",
      [&app](const HelpArguments& given) -> Result<void> {
        print_help(app, given);
        return {};
      },
      [&app](const CLI::App&, const HelpArguments& given) { static_cast<void>(named(app, given)); });
  add_argument(command, kSubcommand, arguments.name, "A subcommand, such as bundle; none for all");
}

}  // namespace etstream::cli
