// SPDX-License-Identifier: BSD-3-Clause
//
// etstream diff A B [--ignore-layout] [--atol X] [--rtol X] [--names NAMES.json]
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/diff.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream::cli {
namespace {

/// The most differences that are printed; --json has all.
constexpr std::size_t kMostDifferences = 60;

constexpr int kDifferent = 1;
constexpr int kTrouble = 2;

struct DiffArguments {
  std::string a;
  std::string b;
  bool ignore_layout = false;
  std::optional<double> atol;
  std::optional<double> rtol;
  std::vector<std::string> names;
  bool partial = false;
  bool json = false;
};

std::string_view summary_of(const FileDiff& found) {
  if (found.same_content) return "same content, other layout";
  return found.same_within_tolerance ? "same content within the tolerance" : "other content";
}

/// Describes a difference: "4 of 6 elements equal (66.6%), largest difference 0.5, mean 0.1". The share is
/// rounded down, so that 100% means all.
std::string elements_text(const ElementDifference& found, bool is_tolerated) {
  const double share =
      found.elements == 0 ? 1 : static_cast<double>(found.equal) / static_cast<double>(found.elements);
  return text("{} of {} equal ({:.1f}%), largest difference {:.3g}, mean {:.3g}{}{}", found.equal,
              counted(found.elements, "element"), std::floor(1000 * share) / 10, found.largest, found.mean,
              found.not_finite == 0 ? "" : text(", {} with NaN or infinity", found.not_finite),
              is_tolerated ? "; within the tolerance" : "");
}

/// Returns whether the files count as the same: nothing differs, except elements within the tolerance and
/// what is ignored.
bool counts_as_same(const FileDiff& found, bool ignore_layout) {
  if (found.same_bytes || (ignore_layout && found.same_within_tolerance)) return true;
  return found.same_within_tolerance && !found.same_content &&
         std::ranges::all_of(found.differences,
                             [](const DiffEntry& one) { return one.kind == DiffEntry::Kind::kTolerated; });
}

void print_differences(const FileDiff& found) {
  if (found.same_bytes) return say("same bytes\n");
  say("{}\n", summary_of(found));
  const std::size_t rows = std::min(kMostDifferences, found.differences.size());
  for (std::size_t i = 0; i < rows; ++i) {
    const DiffEntry& one = found.differences[i];
    say("{}\n  a: {}\n  b: {}\n", one.subject, one.in_a.empty() ? "-" : one.in_a,
        one.in_b.empty() ? "-" : one.in_b);
    if (one.elements) say("  {}\n", elements_text(*one.elements, one.kind == DiffEntry::Kind::kTolerated));
  }
  if (rows < found.differences.size()) {
    say("... and {}; --json lists all\n", counted(found.differences.size() - rows, "more difference"));
  }
}

Result<void> diff_command(const DiffArguments& arguments, ChosenCommand& chosen) {
  chosen.failed = kTrouble;
  DiffOptions options;
  if (arguments.atol || arguments.rtol) {
    options.tolerance =
        Tolerance{.absolute = arguments.atol.value_or(0), .relative = arguments.rtol.value_or(0)};
  }
  ETSTREAM_ASSIGN(options.names_a, read_names(arguments.names));
  options.names_b = options.names_a;
  ETSTREAM_ASSIGN(FileDiff found, diff(arguments.a, arguments.b, options, {.partial = arguments.partial}));
  if (arguments.ignore_layout) ignore_layout(found);
  if (arguments.json) {
    print_json(differences_to_json(arguments.a, arguments.b, found));
  } else {
    print_differences(found);
  }
  if (!counts_as_same(found, arguments.ignore_layout)) chosen.done = kDifferent;
  return {};
}

}  // namespace

void add_diff_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<DiffArguments>(
      app, chosen, "diff", "Show the differences between two files of one kind",
      [&chosen](const DiffArguments& given) { return diff_command(given, chosen); });
  command.footer("The exit code is 0 if both are the same, 1 if they differ, and 2 after an error.");
  command
      .add_option(
          "A", arguments.a,
          "A program, a bundle, tensor data (.pte, .bpte, .ptd), or a checkpoint: a file, an index or a "
          "folder")
      ->required();
  command.add_option("B", arguments.b, "Another of the same kind")->required();
  command.add_flag("--ignore-layout", arguments.ignore_layout,
                   "Treat files as the same if they have the same content in other places");
  add_option(command, "--atol", "X", arguments.atol,
             "Treat elements of weights as equal if they differ by at most X, integers too")
      ->check(tolerance());
  add_option(command, "--rtol", "X", arguments.rtol,
             "Treat floating-point elements as equal if they differ by at most X times that of A, in "
             "addition to --atol")
      ->check(tolerance());
  add_names_option(command, arguments.names);
  add_partial_option(command, arguments.partial);
  add_json(command, arguments.json);
}

}  // namespace etstream::cli
