// SPDX-License-Identifier: BSD-3-Clause
#include <string_view>

#include "base/text.h"
#include "cli/documentation.h"
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

/// `text` as roff shows it, to the letter.
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

/// "-o, --output OUT.bpte", or all names but the last left out.
std::string heading(const OptionText& option, bool all_names) {
  std::string out;
  for (const std::string& name : option.names) {
    if (!all_names && name != option.names.front()) continue;
    out += (out.empty() ? "" : ", ") + bold(name);
  }
  if (!option.has_value()) return out;
  return out + (out.empty() ? "" : " ") + italic(option.value);
}

/// Arguments and what is required first; help, which all commands have, is left out.
std::string synopsis(const std::string& tool, const CommandText& command) {
  std::string required;
  std::string optional;
  for (const OptionText& option : command.options) {
    if (option.is_help()) continue;
    if (option.required) {
      required += " " + heading(option, false);
    } else {
      optional += text(" [{}]", heading(option, false));
    }
  }
  return bold(tool + " " + command.name) + required + optional + "\n";
}

/// Of a subcommand without help, which all have.
std::string options(const CommandText& command, bool subcommand) {
  std::string out;
  for (const OptionText& option : command.options) {
    if (subcommand && option.is_help()) continue;
    out += ".TP\n" + heading(option, true) + "\n" + roff(option.description) + ".\n";
  }
  return out;
}

}  // namespace

std::string manual_page(const CommandText& command) {
  std::string synopses;
  std::string commands;
  for (const CommandText& subcommand : working_commands(command)) {
    synopses += (synopses.empty() ? "" : ".br\n") + synopsis(command.name, subcommand);
    commands += ".SS " + roff(command.name + " " + subcommand.name) + "\n" + roff(subcommand.description) +
                ".\n" + options(subcommand, true);
  }
  return text(
      ".\\\" SPDX-License-Identifier: BSD-3-Clause\n{}{} \\- write, check, show and take apart ExecuTorch's "
      "files\n.SH SYNOPSIS\n.nh\n{}.hy\n.SH DESCRIPTION\n{}.SH OPTIONS\n{}.SH COMMANDS\n{}{}",
      ".TH ETSTREAM 1 \"\" \"etstream " ETSTREAM_VERSION "\" \"User Commands\"\n.SH NAME\n", command.name,
      synopses, kDescription, options(command, false), commands, kAfterCommands);
}

}  // namespace etstream::cli
