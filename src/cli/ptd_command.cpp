// SPDX-License-Identifier: BSD-3-Clause
//
// etstream ptd IN... -o OUT.ptd [what becomes of the tensors]
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "cli/output.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/checkpoint.h"
#include "etstream/file_kind.h"
#include "etstream/result.h"
#include "present/json.h"
#include "present/print.h"

namespace etstream::cli {
namespace {

const std::vector<std::string> kWeightFormats = {"ptd", "safetensors", "pth"};

struct PtdArguments : OutputOptions {
  std::vector<std::string> files;
  std::string format;  // by default what the output's ending says
  std::vector<std::string> only;
  std::string rules;           // a file's path, or the name of ready-made ones; "" for none
  std::uint32_t head_dim = 0;  // 0 where config.json says it
  std::vector<std::string> dtypes;
  bool no_dedup = false;
  std::optional<ExecutorchRelease> as_of;
  TensorDataOptions options;
  std::optional<std::uint64_t> split_max_size;
  bool partial = false;
};

/// Reads the rules in TYPE and GLOB=TYPE.
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

/// Warns of `subjects` for which `what` is true.
void warn_of(const std::vector<std::string>& subjects, std::string_view noun, std::string_view what,
             bool list_all) {
  if (subjects.empty()) return;
  if (list_all || subjects.size() == 1) {
    for (const std::string& subject : subjects) warn(text("{} {}: {}", noun, quote(subject), what));
    return;
  }
  warn(text("{}, such as {}: {}; --dry-run lists all", counted(subjects.size(), noun),
            quote(subjects.front()), what));
}

/// Warns of rules that match no tensor and of tensors that no rule matches: with --dry-run of each, otherwise
/// of their number.
Result<void> apply_rename_rules(const PtdArguments& arguments, Checkpoint& checkpoint) {
  if (arguments.rules.empty()) return {};
  ETSTREAM_ASSIGN(const RenameRules rules, RenameRules::open(arguments.rules));
  RenameOptions options;
  if (arguments.head_dim != 0) options.head_dim = arguments.head_dim;
  ETSTREAM_ASSIGN(const RenameReport report, apply(rules, checkpoint, options));
  warn_of(report.unmatched_rules, "rule", "no tensor to apply to", arguments.dry_run);
  warn_of(report.left_over_keys, "tensor", "no rule applies, the name stays", arguments.dry_run);
  return {};
}

Result<Checkpoint> read_inputs(const PtdArguments& arguments) {
  ETSTREAM_ASSIGN(auto checkpoints, open_checkpoints(arguments.files, {.partial = arguments.partial}));
  ETSTREAM_ASSIGN(Checkpoint joined, join(std::move(checkpoints)));
  ETSTREAM_TRY(apply_rename_rules(arguments, joined));
  if (!arguments.only.empty()) ETSTREAM_TRY(select(joined, arguments.only));
  ETSTREAM_ASSIGN(const auto dtypes, dtype_rules(arguments.dtypes));
  ETSTREAM_TRY(convert(joined, dtypes));
  ETSTREAM_TRY(merge(joined));
  return joined;
}

Result<FilePlan> plan_weights(Checkpoint checkpoint, const PtdArguments& arguments) {
  if (arguments.format == "safetensors") return plan_safetensors(checkpoint);
  ETSTREAM_ASSIGN(const TensorData data, describe_tensor_data(std::move(checkpoint), arguments.options));
  return plan(data);
}

/// Returns the params.json of a checkpoint in Meta's format; nothing if no config.json has its values.
Result<std::optional<std::string>> params_of(const Checkpoint& checkpoint) {
  ETSTREAM_ASSIGN(const auto found, llama_parameters(checkpoint));
  if (!found) return std::optional<std::string>();
  if (!found->json.empty()) {
    warn_of(found->unknown, "member of config.json", "not known, params.json says nothing of it", true);
    return std::optional(found->json);
  }
  warn(
      text("config.json is of model_type {}, for which no params.json is written; "
           "export_llama takes one from executorch/examples/models",
           quote(found->model_type)));
  return std::optional<std::string>();
}

/// Writes a torch file, with params.json beside it for a checkpoint of Llama: both appear or none does.
Result<void> write_torch_file(const Checkpoint& checkpoint, const PtdArguments& arguments) {
  ETSTREAM_ASSIGN(const FilePlan plan, plan_torch_file(checkpoint));
  const bool is_piped = is_standard_output(arguments.output);
  ETSTREAM_ASSIGN(const auto parameters, is_piped ? std::optional<std::string>() : params_of(checkpoint));
  if (!parameters) return show_or_write(plan, arguments, "tensor", checkpoint.tensors.size());
  const auto bytes = std::as_bytes(std::span(*parameters));
  const FilePlan beside = plan_copy(ByteSource::owned({bytes.begin(), bytes.end()}), "params.json");
  const std::string path = arguments.output.substr(0, arguments.output.rfind('/') + 1) + "params.json";
  const std::size_t tensors = checkpoint.tensors.size();
  const std::string words = text("{}, {}", counted(tensors, "tensor"), readable_size(plan.size));
  return show_or_write(plan, arguments,
                       {{.plan = &plan, .path = arguments.output, .words = words},
                        {&beside, path, true, {}, "the shape of the model, from config.json"}},
                       {{"tensors", tensors}, {"params", path}});
}

/// Writes several files, which all appear or none does.
Result<void> write_shards(Checkpoint checkpoint, const PtdArguments& arguments) {
  const std::size_t tensors = checkpoint.tensors.size();
  ETSTREAM_ASSIGN(const TensorData data, describe_tensor_data(std::move(checkpoint), arguments.options));
  ETSTREAM_ASSIGN(const TensorDataOutput shards,
                  plan_tensor_data_output(data, arguments.output, arguments.split_max_size));
  ETSTREAM_TRY(write_outputs(shards.outputs(), arguments));
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
  if (arguments.format == "pth") return write_torch_file(checkpoint, arguments);
  const std::size_t tensors = checkpoint.tensors.size();
  ETSTREAM_ASSIGN(const FilePlan plan, plan_weights(std::move(checkpoint), arguments));
  return show_or_write(plan, arguments, "tensor", tensors);
}

/// Returns the format that the ending of a path says; tensor data for an ending that says none.
std::string format_of(const std::string& path) {
  const auto kind = kind_of_ending(path);
  if (kind == FileKind::kSafetensors) return "safetensors";
  return kind == FileKind::kTorch ? "pth" : "ptd";
}

void check_ptd(const CLI::App& command, PtdArguments& arguments) {
  check_output(command, arguments);
  const std::string said = arguments.format.empty() ? "an output in this format" : "--to " + arguments.format;
  if (arguments.format.empty()) arguments.format = format_of(arguments.output);
  if (arguments.as_of && !is_given(command, "--segment-alignment")) {
    arguments.options.segment_alignment = default_segment_alignment(*arguments.as_of);
  }
  if (arguments.format != kWeightFormats.front()) {
    exclude_with(command, said, {"--split-max-size", "--segment-alignment", "--as-of", "--no-dedup"});
  }
  arguments.options.share_equal = !arguments.no_dedup;
}

void add_rename_options(CLI::App& command, PtdArguments& arguments) {
  const Option map =
      add_option(command, "--map", "RULES", arguments.rules,
                 "Rename, cut and leave out tensors by rules: a JSON file, or the ready-made ones from "
                 "Hugging Face's names to ExecuTorch's for " +
                     joined(RenameRules::ready_made_names(), ", "));
  add_number(command, "--head-dim", arguments.head_dim,
             "Set the rows of a query projection that make up a head, if rules ask for it; the default is "
             "that of config.json")
      .needs(map);
}

}  // namespace

void add_ptd_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<PtdArguments>(
      app, chosen, "ptd", "Write tensor data (.ptd) from a checkpoint, or a checkpoint from it", ptd_command,
      check_ptd);
  add_argument(
      command, "FILE", arguments.files,
      "Weights: safetensors, GGUF, a file of torch.save (.pth, .bin, .pt2), a program, tensor data, a "
      "package, an index of several files, or a folder with such files")
      .required();
  add_output_path(command, arguments, "The tensor data", "OUT.ptd");
  add_choice(
      command, "--to", kWeightFormats, arguments.format,
      "Write this format, where the output's ending (.ptd, .safetensors, .pth) does not say it; pth for "
      "torch.load, with params.json beside it for export_llama where it can be made");
  add_list(command, "--only", "GLOB", arguments.only,
           "Take tensors whose new name matches this pattern with * and ?");
  add_rename_options(command, arguments);
  add_list(
      command, "--dtype", "[GLOB=]TYPE", arguments.dtypes,
      "Convert floating-point tensors whose name matches GLOB to a type such as bfloat16; the last match "
      "counts");
  add_flag(command, "--opaque", arguments.options.allow_opaque,
           "Take types that ExecuTorch does not have, such as quantised blocks, as data without a "
           "layout");
  add_flag(command, "--no-dedup", arguments.no_dedup,
           "Store tensors of equal bytes more than once; all are then read only once");
  add_alignment(command, "--segment-alignment", arguments.options.segment_alignment,
                "Begin tensors at multiples of this size; the default is 128");
  add_split_option(command, arguments.split_max_size);
  add_partial_option(command, arguments.partial);
  add_as_of(command, arguments.as_of);
  add_common_options(command, arguments);
}

}  // namespace etstream::cli
