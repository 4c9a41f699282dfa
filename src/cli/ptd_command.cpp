// SPDX-License-Identifier: BSD-3-Clause
//
// etstream ptd IN... -o OUT.ptd [what becomes of the tensors]
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/print.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/output_options.h"
#include "cli/plan_report.h"
#include "cli/rename_options.h"
#include "cli/tensor_data_output.h"
#include "cli/writer_options.h"
#include "etstream/checkpoint.h"
#include "etstream/safetensors.h"
#include "report/json_report.h"

namespace etstream::cli {
namespace {

const std::vector<std::string> kWeightFormats = {"ptd", "safetensors"};

struct PtdArguments : OutputOptions {
  std::vector<std::string> files;
  std::string format = kWeightFormats.front();
  std::vector<std::string> only;
  RenameArguments rename;
  std::vector<std::string> dtypes;
  bool no_dedup = false;
  std::optional<ExecutorchRelease> as_of;
  TensorDataOptions options;
  std::optional<std::uint64_t> split_max_size;
};

/// From TYPE and GLOB=TYPE.
Result<std::vector<DtypeRule>> dtype_rules(const std::vector<std::string>& given) {
  std::vector<DtypeRule> rules;
  for (const std::string& each : given) {
    const auto equals = each.rfind('=');
    const std::string name = equals == std::string::npos ? each : each.substr(equals + 1);
    const auto type = find_scalar_type(name);
    if (!type) {
      return make_error(ErrorCode::kInvalidArgument,
                        "--dtype: expected a name that torch uses, such as bfloat16, found {}", quote(name));
    }
    rules.push_back({equals == std::string::npos ? "*" : each.substr(0, equals), *type});
  }
  return rules;
}

Result<Checkpoint> read_inputs(const PtdArguments& arguments) {
  std::vector<Checkpoint> checkpoints;
  for (const std::string& path : arguments.files) {
    ETSTREAM_ASSIGN(Checkpoint checkpoint, open_checkpoint(path));
    checkpoints.push_back(std::move(checkpoint));
  }
  ETSTREAM_ASSIGN(Checkpoint joined, join(std::move(checkpoints)));
  ETSTREAM_TRY(apply_rename_rules(arguments.rename, joined, arguments.dry_run));
  if (!arguments.only.empty()) ETSTREAM_TRY(select(joined, arguments.only));
  ETSTREAM_ASSIGN(const auto dtypes, dtype_rules(arguments.dtypes));
  ETSTREAM_TRY(convert(joined, dtypes));
  ETSTREAM_TRY(merge(joined));
  return joined;
}

Result<FilePlan> plan_weights(Checkpoint checkpoint, const PtdArguments& arguments) {
  if (arguments.format != kWeightFormats.front()) return plan_safetensors(checkpoint);
  ETSTREAM_ASSIGN(const TensorData data, describe_tensor_data(std::move(checkpoint), arguments.options));
  return plan(data);
}

/// As several files, which all appear or none does.
Result<void> write_shards(Checkpoint checkpoint, const PtdArguments& arguments) {
  const std::size_t tensors = checkpoint.tensors.size();
  ETSTREAM_ASSIGN(const TensorData data, describe_tensor_data(std::move(checkpoint), arguments.options));
  ETSTREAM_ASSIGN(const TensorDataOutput shards,
                  plan_tensor_data_output(data, arguments.output, arguments.split_max_size));
  ETSTREAM_TRY(arguments.dry_run ? check_limits(shards.outputs(), arguments)
                                 : write_outputs(shards.outputs(), arguments));
  if (arguments.json) {
    print_json({{"output", arguments.output},
                {"size", shards.size()},
                {"tensors", tensors},
                {"shards", shards_to_json(shards)}});
  } else {
    print_shards(shards);
  }
  return {};
}

Result<void> ptd_command(const PtdArguments& arguments) {
  ETSTREAM_ASSIGN(Checkpoint checkpoint, read_inputs(arguments));
  if (arguments.split_max_size) return write_shards(std::move(checkpoint), arguments);
  const std::size_t tensors = checkpoint.tensors.size();
  ETSTREAM_ASSIGN(const FilePlan plan, plan_weights(std::move(checkpoint), arguments));
  return show_or_write(plan, arguments, "tensor", tensors);
}

}  // namespace

void add_ptd_command(CLI::App& app, Run& run) {
  CLI::App* command =
      app.add_subcommand("ptd", "Write tensor data (.ptd) from a checkpoint, or a checkpoint from it");
  auto arguments = std::make_shared<PtdArguments>();
  command
      ->add_option("FILE", arguments->files,
                   "Weights: safetensors, or the index of several (.index.json), GGUF, a program (.pte), "
                   "tensor data (.ptd), a package (.ptn)")
      ->required();
  add_output_path(*command, *arguments, "The tensor data", "OUT.ptd");
  command->add_option("--to", arguments->format, "Write tensor data, or a safetensors file")
      ->type_name(CLI::detail::join(kWeightFormats, "|"))
      ->check(CLI::IsMember(kWeightFormats).description(""));
  command
      ->add_option(
          "--only", arguments->only,
          "Take only tensors whose name, after --map, matches by * and ?; may be given several times")
      ->type_name("GLOB")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_rename_options(*command, arguments->rename);
  command
      ->add_option("--dtype", arguments->dtypes,
                   "Convert floating-point tensors, those whose name matches, to a type such as bfloat16; "
                   "may be given several times, of which the last counts")
      ->type_name("[GLOB=]TYPE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--opaque", arguments->options.allow_opaque,
                    "Take tensors of types that ExecuTorch has none of, such as quantised blocks, as data "
                    "without a layout");
  command->add_flag("--no-dedup", arguments->no_dedup,
                    "Store tensors of equal bytes each, which reads them once only");
  auto* alignment =
      command
          ->add_option("--segment-alignment", arguments->options.segment_alignment,
                       "Have tensors begin at multiples of N bytes, a power of two; 128 by default")
          ->type_name(kNumber);
  auto most = std::make_shared<std::uint64_t>();
  auto* split = add_split_option(*command, *most);
  add_as_of(*command, arguments->as_of);
  add_output_flags(*command, *arguments);
  command->callback([arguments, command, alignment, split, most, &run] {
    check_output(*command, *arguments);
    if (arguments->as_of && alignment->empty()) {
      arguments->options.segment_alignment = default_segment_alignment(*arguments->as_of);
    }
    if (!split->empty()) {
      if (arguments->format != kWeightFormats.front())
        throw CLI::ExcludesError("--split-max-size", "--to safetensors");
      arguments->split_max_size = *most;
    }
    arguments->options.share_equal = !arguments->no_dedup;
    run = [arguments] { return ptd_command(*arguments); };
  });
}

}  // namespace etstream::cli
