// SPDX-License-Identifier: BSD-3-Clause
//
// etstream pte MODEL.(pte|json) -o OUT.pte [changes and layout options]
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/output.h"
#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/checkpoint.h"
#include "etstream/program_plan.h"
#include "etstream/result.h"
#include "present/print.h"

namespace etstream::cli {
namespace {

const std::vector<std::string> kDelegatePlaces = {"inline", "segments"};

struct PteArguments : OutputOptions {
  std::string file;
  std::string delegates;
  std::string constants_to;
  std::string keys;
  std::optional<std::uint64_t> split_max_size;
  std::vector<std::string> metadata;
  std::vector<std::string> constants_from;
  std::string schema;
  std::string segments_from;
  bool partial = false;
  ProgramPlanOptions options;
  ProgramChanges changes;
};

/// Opens the files for the program's changes.
Result<std::deque<TensorDataFile>> open_weights(const PteArguments& arguments, ProgramChanges& changes) {
  ETSTREAM_ASSIGN(const std::vector<std::string> paths,
                  whole_sets(arguments.constants_from, {.partial = arguments.partial}));
  std::deque<TensorDataFile> files;
  for (const std::string& path : paths) {
    ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(path));
    ETSTREAM_ASSIGN(TensorDataFile weights, TensorDataFile::open(file));
    ETSTREAM_TRY(require_sound(weights, warn));
    changes.constants_in.push_back(&files.emplace_back(std::move(weights)));
  }
  return files;
}

Result<void> write_plan(const ProgramPlan& planned, const PteArguments& arguments) {
  const Output program = {&planned.program, arguments.output};
  if (!planned.tensor_data) return show_or_write(planned.program, arguments, {program}, {});
  ETSTREAM_ASSIGN(
      const TensorDataOutput weights,
      plan_tensor_data_output(*planned.tensor_data, arguments.constants_to, arguments.split_max_size));
  std::vector<Output> outputs = weights.outputs();
  outputs.push_back(program);  // which must not be there before its weights
  return show_or_write(
      planned.program, arguments, outputs,
      {{"tensor_data", Json{{"output", arguments.constants_to},
                            {"size", weights.size()},
                            {"shards", weights.is_split ? shards_to_json(weights) : Json()}}}});
}

Result<ProgramPlan> plan_input(const PteArguments& arguments) {
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(arguments.file));
  ProgramSchema schema;
  if (!arguments.schema.empty()) {
    ETSTREAM_ASSIGN(schema, ProgramSchema::load(arguments.schema));
  }
  std::optional<ByteSource> segments_from;
  if (!arguments.segments_from.empty()) {
    ETSTREAM_ASSIGN(segments_from, ByteSource::file(arguments.segments_from));
  }
  const std::string folder = std::filesystem::path(arguments.file).parent_path().string();
  return plan_program_input(
      file, {.folder = folder, .schema = schema, .segments_from = segments_from, .warn = warn},
      arguments.changes, arguments.options);
}

Result<void> pte_command(PteArguments& arguments) {
  ETSTREAM_ASSIGN(const auto weights, open_weights(arguments, arguments.changes));
  if (!arguments.constants_to.empty()) {
    arguments.changes.constants_out.emplace();
    if (!arguments.keys.empty()) {
      ETSTREAM_ASSIGN(const ByteSource keys, ByteSource::file(arguments.keys));
      ETSTREAM_ASSIGN(arguments.changes.constants_out->keys, read_constant_keys(keys));
    }
  }
  ETSTREAM_ASSIGN(arguments.changes.metadata, read_metadata_options(arguments.metadata));
  ETSTREAM_ASSIGN(const ProgramPlan planned, plan_input(arguments));
  return write_plan(planned, arguments);
}

void check_pte(const CLI::App& command, PteArguments& arguments) {
  check_output(command, arguments);
  check_report(arguments.json && !arguments.dry_run, {arguments.constants_to});
  if (!is_given(command, "--delegates")) return;
  arguments.options.delegates =
      arguments.delegates == kDelegatePlaces.front() ? DelegateData::kInline : DelegateData::kInSegments;
}

void add_changes(CLI::App& command, PteArguments& arguments) {
  add_list(command, "--drop-method", "METHOD", arguments.changes.drop_methods,
           "Leave out this method and its data");
  add_flag(command, "--strip-stack-traces", arguments.changes.drop_stack_traces,
           "Leave out the stack traces of the instructions");
  const Option to = add_option(command, "--constants-to", "WEIGHTS.ptd", arguments.constants_to,
                               "Move constants and named data out into this file");
  add_option(command, "--keys", "KEYS.json", arguments.keys,
             "Name moved constants by this JSON map from SHA-256 or number to key")
      .needs(to);
  add_split_option(command, arguments.split_max_size).needs(to);
  add_list(command, "--constants-from", "WEIGHTS.ptd", arguments.constants_from,
           "Move them in from this file; the first of several shards stands for all")
      .excludes(to);
  add_partial_option(command, arguments.partial);
  add_metadata_option(command, arguments.metadata);
}

}  // namespace

void add_pte_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<PteArguments>(
      app, chosen, "pte", "Write a program from JSON, or rewrite one with another layout or other content",
      pte_command, check_pte);
  ProgramPlanOptions& options = arguments.options;
  add_argument(command, "FILE", arguments.file, "A program (.pte), or its description in JSON").required();
  add_output_path(command, arguments, "The program", "OUT.pte");
  add_alignment(command, "--segment-alignment", options.segment_alignment,
                "Begin segments at multiples of this size, such as 4K");
  add_alignment(command, "--constant-tensor-alignment", options.constant_tensor_alignment,
                "Begin constant tensors at such multiples in their segment");
  add_alignment(command, "--delegate-alignment", options.delegate_alignment,
                "Begin data of delegates at such multiples in the flatbuffer");
  add_choice(command, "--delegates", kDelegatePlaces, arguments.delegates,
             "Put data of delegates into the flatbuffer or into segments");
  add_flag(command, "--strict-alignment", options.strict_alignment,
           "Keep both in segments too, where ExecuTorch does not");
  add_as_of(command, options.as_of);
  add_flatbuffers(command, options.vtables);
  add_changes(command, arguments);
  add_option(command, "--schema", "PROGRAM.fbs", arguments.schema,
             "Use this schema in place of that of ExecuTorch 1.5.1");
  add_option(command, "--segments-from", "MODEL.pte", arguments.segments_from,
             "Take segments that the JSON has no data of from here");
  add_common_options(command, arguments);
}

}  // namespace etstream::cli
