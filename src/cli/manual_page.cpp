// SPDX-License-Identifier: BSD-3-Clause
#include <string_view>

#include <algorithm>

#include "cli/documentation.h"
#include "cli/options.h"
#include "core/base/text.h"
#include "etstream/version.h"

namespace etstream::cli {
namespace {

constexpr std::string_view kDescription =
    R"(ExecuTorch runs PyTorch models on phones and microcontrollers.
Its files are programs (.pte), and programs bundled with test cases (.bpte).
.B etstream
writes, checks, shows and takes apart these files in about the same few MiB of memory, whatever their size.
.PP
An output appears under its name once it is complete.
After an error, an interrupt or on a full disk, what was there before is as it was.
An output named
.B \-
is standard output.
)";

constexpr std::string_view kAfterCommands =
    R"(.SH TEST CASES
The file that
.B \-\-cases
names gives each method its test cases; paths in it are relative to it:
.PP
.EX
{"forward": [{"inputs": [{"npy": "x.npy"}, 3], "expected_outputs": [{"npy": "y.npy"}]}]}
.EE
.PP
A value is an integer, a double (a number with point or exponent, or {"double": "nan"}), true, false, or a
tensor: {"npy": "x.npy"}, {"safetensors": "f.safetensors", "name": "x"}, or
{"raw": "x.bin", "dtype": "float32", "shape": [1, 3]}, with "dim_order" where it is not contiguous.
Where a method comes twice, a list [{"method": "forward", "cases": [...]}] takes the place of the object.
.SH EXIT STATUS
.TP
.B 0
It is done; for
.BR verify ,
the file is sound; for
.BR diff ,
both are the same.
.TP
.B 1
An error, told on standard error; for
.BR diff ,
they differ.
.TP
.B 2
A wrong command line; for
.BR diff ,
also an error.
.PP
An interrupt (SIGINT, SIGTERM, SIGHUP) ends the command by that signal once it has cleaned up.
.SH EXAMPLES
Bundle a program with test cases, and see first where every byte would go:
.PP
.EX
etstream bundle model.pte \-\-cases cases.json \-\-dry\-run
etstream bundle model.pte \-\-cases cases.json \-o model.bpte
.EE
.PP
Check the bundle, show what it consists of, and take it apart:
.PP
.EX
etstream verify model.bpte
etstream inspect model.bpte
etstream extract model.bpte \-\-program copy.pte \-\-cases cases
.EE
)";

/// Returns `text` so that roff shows it to the letter.
std::string roff(std::string_view text) {
  static constexpr std::string_view kSpecial = "\\-'\"^~`";
  static constexpr std::string_view kEscapes[] = {"\\e", "\\-", "\\(aq", "\\(dq", "\\(ha", "\\(ti", "\\(ga"};
  std::string out;
  for (const char c : text) {
    const std::size_t special = kSpecial.find(c);
    out += special == std::string_view::npos ? std::string(1, c) : std::string(kEscapes[special]);
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

/// Returns the heading of an option: "-o, --output OUT.bpte", or with its first name alone.
std::string heading(const CLI::Option& option, bool all_names) {
  std::vector<std::string> names = names_of(option);
  if (!all_names) names.resize(std::min(names.size(), std::size_t{1}));
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + bold(name);
  const std::string value = value_of(option);
  if (value.empty()) return out;
  return out + (out.empty() ? "" : " ") + italic(value);
}

/// Lists arguments and required options first; leaves out help, which all commands have.
std::string synopsis(const std::string& tool, const WorkingCommand& command) {
  std::string required;
  std::string optional;
  for (const CLI::Option* option : command.app->get_options()) {
    if (is_help(*option)) continue;
    if (option->get_required()) {
      required += " " + heading(*option, false);
    } else {
      optional += text(" [{}]", heading(*option, false));
    }
  }
  return bold(tool + " " + command.name) + required + optional + "\n";
}

/// Lists the options. For a subcommand it leaves out help, which all have.
std::string options(const CLI::App& app, bool subcommand) {
  std::string out;
  for (const CLI::Option* option : app.get_options()) {
    if (subcommand && (is_help(*option) || is_common(*option))) continue;
    out += text(".TP\n{}\n{}.\n", heading(*option, true), roff(option->get_description()));
  }
  const std::string common = CLI::detail::join(common_names(app), bold, ", ");
  if (!common.empty()) out += text(".PP\nCommon options: {}.\n", common);
  return out;
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string synopses;
  std::string commands;
  for (const WorkingCommand& command : working_commands(app)) {
    synopses += (synopses.empty() ? "" : ".br\n") + synopsis(app.get_name(), command);
    commands += text(".SS {}\n{}.\n{}", roff(app.get_name() + " " + command.name),
                     roff(command.app->get_description()), options(*command.app, true));
  }
  std::string common;
  for (const auto& [name, description] : kCommonOptions) {
    common += text(".TP\n{}\n{}.\n", bold(name), roff(description));
  }
  return text(
      ".\\\" SPDX-License-Identifier: BSD-3-Clause\n{}{} \\- write, check, show and take apart ExecuTorch's "
      "files\n.SH SYNOPSIS\n.nh\n{}.hy\n.SH DESCRIPTION\n{}.SH OPTIONS\n{}.SS Of subcommands that write or "
      "report\n{}.SH COMMANDS\n{}{}",
      ".TH ETSTREAM 1 \"\" \"etstream " ETSTREAM_VERSION "\" \"User Commands\"\n.SH NAME\n", app.get_name(),
      synopses, kDescription, options(app, false), common, commands, kAfterCommands);
}

}  // namespace etstream::cli
