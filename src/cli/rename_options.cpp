// SPDX-License-Identifier: BSD-3-Clause
#include "cli/rename_options.h"

#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "cli/output.h"
#include "etstream/findings.h"
#include "etstream/rename_rules.h"
#include "jobs/rename_rules_file.h"

namespace etstream::cli {
namespace {

/// Of `subjects` that `what` is true of.
void warn_of(const std::vector<std::string>& subjects, std::string_view noun, std::string_view what,
             bool list_all, Findings& findings) {
  if (subjects.empty()) return;
  if (list_all || subjects.size() == 1) {
    for (const std::string& subject : subjects) {
      findings.warnings.push_back(text("{} {}: {}", noun, quote(subject), what));
    }
    return;
  }
  findings.warnings.push_back(text("{}, such as {}: {}; --dry-run lists all", counted(subjects.size(), noun),
                                   quote(subjects.front()), what));
}

}  // namespace

void add_rename_options(CLI::App& command, RenameArguments& arguments) {
  std::string names;
  for (const std::string& name : RenameRules::ready_made_names()) names += (names.empty() ? "" : ", ") + name;
  auto* map =
      command
          .add_option("--map", arguments.rules,
                      "Rename, cut and leave out tensors by rules: a JSON file, or the ready-made ones "
                      "from Hugging Face's names to those of ExecuTorch's Transformer for " +
                          names)
          ->type_name("RULES");
  command
      .add_option(
          "--head-dim", arguments.head_dim,
          "How many rows of a query or key projection make up a head, where rules ask for it; told by "
          "config.json beside the checkpoint by default")
      ->type_name("N")
      ->needs(map);
}

Result<void> apply_rename_rules(const RenameArguments& arguments, Checkpoint& checkpoint, bool list_all) {
  if (arguments.rules.empty()) return {};
  ETSTREAM_ASSIGN(const RenameRules rules, open_rename_rules(arguments.rules));
  RenameOptions options;
  if (arguments.head_dim != 0) options.head_dim = arguments.head_dim;
  ETSTREAM_ASSIGN(const RenameReport report, apply(rules, checkpoint, options));
  Findings findings;
  warn_of(report.unmatched_rules, "rule", "no tensor to apply to", list_all, findings);
  warn_of(report.left_over_keys, "tensor", "no rule applies, the name stays", list_all, findings);
  print(findings);
  return {};
}

}  // namespace etstream::cli
