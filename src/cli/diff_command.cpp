// SPDX-License-Identifier: BSD-3-Clause
//
// etstream diff A B [--ignore-layout]
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "base/print.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "etstream/diff.h"
#include "report/reports.h"

namespace etstream::cli {
namespace {

/// A person reads no more; --json has all.
constexpr std::size_t kMostDifferences = 60;

constexpr int kDifferent = 1;
constexpr int kTrouble = 2;

struct DiffArguments {
  std::string a;
  std::string b;
  bool ignore_layout = false;
  bool partial = false;
  bool json = false;
};

void print_differences(const FileDiff& found) {
  if (found.same_bytes) return say("same bytes\n");
  say("{}\n", found.same_content ? "same content, other layout" : "other content");
  const std::size_t rows = std::min(kMostDifferences, found.differences.size());
  for (std::size_t i = 0; i < rows; ++i) {
    const DiffEntry& one = found.differences[i];
    say("{}\n  a: {}\n  b: {}\n", one.subject, one.in_a.empty() ? "-" : one.in_a,
        one.in_b.empty() ? "-" : one.in_b);
  }
  if (rows < found.differences.size()) {
    say("... and {}; --json lists all\n", counted(found.differences.size() - rows, "more difference"));
  }
}

Result<void> diff_command(const DiffArguments& arguments, Run& run) {
  run.failed = kTrouble;
  ETSTREAM_ASSIGN(FileDiff found, diff(arguments.a, arguments.b, {.partial = arguments.partial}));
  if (arguments.ignore_layout) ignore_layout(found);
  if (arguments.json) {
    print_json(differences_to_json(arguments.a, arguments.b, found));
  } else {
    print_differences(found);
  }
  if (!found.same_bytes && !(arguments.ignore_layout && found.same_content)) run.done = kDifferent;
  return {};
}

}  // namespace

void add_diff_command(CLI::App& app, Run& run) {
  const auto [command, arguments] =
      add_subcommand<DiffArguments>(app, run, "diff", "Say what differs between two files of one kind",
                                    [&run](const DiffArguments& given) { return diff_command(given, run); });
  command.footer("The exit code is 0 where both are the same, 1 where they differ, and 2 after an error.");
  command
      .add_option(
          "A", arguments.a,
          "A program, a bundle, tensor data (.pte, .bpte, .ptd), or a checkpoint: a file, an index or a "
          "folder")
      ->required();
  command.add_option("B", arguments.b, "Another of the same kind")->required();
  command.add_flag("--ignore-layout", arguments.ignore_layout,
                   "Take files for the same that only have the same content in other places");
  add_partial_option(command, arguments.partial);
  command.add_flag("--json", arguments.json, "Report as JSON");
}

}  // namespace etstream::cli
