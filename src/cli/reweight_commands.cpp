// SPDX-License-Identifier: BSD-3-Clause
//
// etstream explain MODEL.pte [WEIGHTS.ptd...] --by CHECKPOINT...
// etstream reweight MODEL.pte [WEIGHTS.ptd...] --was CHECKPOINT... --now CHECKPOINT... -o OUT.pte
//     [--weights-to OUT.ptd...] [--keep NAME...]
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/output.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/checkpoint.h"
#include "etstream/program_weights.h"
#include "etstream/reweight.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream::cli {
namespace {

constexpr int kNotExplained = 1;
constexpr int kCannotExplain = 2;

struct ProgramArguments {
  std::string program;
  std::vector<std::string> weights;
  bool partial = false;
};

struct ExplainArguments : ProgramArguments {
  std::vector<std::string> checkpoint;
  bool json = false;
};

struct ReweightArguments : ProgramArguments, OutputOptions {
  std::vector<std::string> was;
  std::vector<std::string> now;
  std::vector<std::string> weights_to;
  std::vector<std::string> keep;
};

Result<void> explain_command(const ExplainArguments& arguments, ChosenCommand& chosen) {
  chosen.failed = kCannotExplain;
  ETSTREAM_ASSIGN(const auto program,
                  ProgramWithWeights::open(arguments.program, arguments.weights, arguments.partial));
  ETSTREAM_ASSIGN(const Checkpoint checkpoint,
                  open_joined_checkpoint(arguments.checkpoint, {.partial = arguments.partial}));
  ETSTREAM_ASSIGN(const WeightOrigins origins, explain(program.program, program.files(), checkpoint));
  if (arguments.json) {
    Json report = {{"file", arguments.program}, {"by", arguments.checkpoint}};
    report.update(origins_to_json(origins));
    print_json(report);
  } else {
    print_origins(origins);
  }
  if (!origins.are_explained()) chosen.done = kNotExplained;
  return {};
}

Result<void> reweight_command(const ReweightArguments& arguments) {
  // The test cases of a bundle have the outputs that the old weights give.
  ETSTREAM_ASSIGN(ByteSource file, ByteSource::file(arguments.program));
  ETSTREAM_ASSIGN(ProgramFile opened, ProgramFile::open(std::move(file)));
  ETSTREAM_ASSIGN(const auto program,
                  ProgramWithWeights::open(std::move(opened), arguments.weights, arguments.partial));
  const bool is_left_out = arguments.dry_run && arguments.weights_to.empty();
  if (!is_left_out && arguments.weights_to.size() != program.weights.size()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--weights-to: expected {}, one for each file of weights, found {}",
                      counted(program.weights.size(), "path"), arguments.weights_to.size());
  }
  ETSTREAM_ASSIGN(const Checkpoint was,
                  open_joined_checkpoint(arguments.was, {.partial = arguments.partial}));
  ETSTREAM_ASSIGN(const Checkpoint now,
                  open_joined_checkpoint(arguments.now, {.partial = arguments.partial}));
  ETSTREAM_ASSIGN(const ReweightingPlan planned,
                  plan(Reweighting{&program.program, program.files(), &was, &now, warn, arguments.keep}));
  std::vector<Output> outputs;
  Json report;
  for (std::size_t i = 0; i < planned.weights.size(); ++i) {
    const std::string path = is_left_out ? "" : arguments.weights_to[i];
    outputs.push_back({&planned.weights[i], path});
    report.push_back({{"output", path}, {"size", planned.weights[i].size}});
  }
  outputs.push_back({&planned.program, arguments.output});  // which must not be there before its weights
  ETSTREAM_TRY(show_or_write(
      planned.program, arguments, outputs,
      {{"payloads", planned.replaced}, {"kept", unless_empty(planned.kept)}, {"weights", report}}));
  if (arguments.json || arguments.dry_run) return {};
  for (const std::string& kept : planned.kept) say("kept as it was: {}\n", printable(kept));
  return {};
}

void add_program(CLI::App& command, ProgramArguments& arguments, const std::string& program) {
  add_argument(command, "PROGRAM", arguments.program, program).required();
  add_argument(command, "WEIGHTS", arguments.weights,
               "The tensor data files (.ptd) that it runs with; the first of several shards stands for all");
  add_partial_option(command, arguments.partial);
}

}  // namespace

void add_explain_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<ExplainArguments>(
      app, chosen, "explain",
      "Tell which tensors of a checkpoint the payloads of a program are, and by which steps",
      explain_command);
  add_footer(command,
             "The exit code is 0 if all payloads are explained, 1 if some are not, and 2 after an error.");
  add_program(command, arguments, "A program, or a bundle with one (.pte, .bpte)");
  add_list(command, "--by", "CHECKPOINT", arguments.checkpoint,
           "Explain them by this checkpoint: a folder, an index, or a file of weights")
      .required();
  add_json(command, arguments.json);
}

void add_reweight_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<ReweightArguments>(
      app, chosen, "reweight", "Put the weights of another checkpoint into a program that is already lowered",
      reweight_command, [](const CLI::App& own, const ReweightArguments& given) {
        check_output(own, given);
        check_report(given.json && !given.dry_run, given.weights_to);
      });
  add_program(command, arguments, "A program (.pte)");
  add_list(command, "--was", "CHECKPOINT", arguments.was, "The checkpoint that the program was exported from")
      .required();
  add_list(command, "--now", "CHECKPOINT", arguments.now, "The checkpoint whose weights it gets").required();
  add_output_path(command, arguments, "The program", "OUT.pte");
  add_list(command, "--weights-to", "OUT.ptd", arguments.weights_to,
           "Write the tensor data to this file, one for each file of weights, in their order");
  add_list(command, "--keep", "NAME", arguments.keep,
           "Leave this payload as it is, which nothing explains: the name that the refusal has");
  add_common_options(command, arguments);
}

}  // namespace etstream::cli
