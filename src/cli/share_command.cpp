// SPDX-License-Identifier: BSD-3-Clause
//
// etstream share [NAME=]FILE... --weights-to OUT.ptd --out-dir DIR [--fat OUT.fat]
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "cli/command_line.h"
#include "cli/output.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/packed_file.h"
#include "etstream/program_weights.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream::cli {
namespace {

struct ShareArguments : CommonOptions {
  std::vector<std::string> files;
  std::string weights;
  std::string folder;
  std::string container;
  std::uint32_t alignment = 1;
  std::uint64_t least_size = kDefaultLeastShared;
  std::optional<std::uint64_t> split_max_size;
};

/// A program, its name in reports and the container, and its file's name in the folder.
struct NamedFile {
  std::string name;
  std::filesystem::path path;
  std::filesystem::path output;
};

/// Reads "NAME=FILE" or "FILE". A name has no slash: a word that has one before the = is a path, and so is
/// one that leads to a file, such as lr=0.1/model.pte. Error: kInvalidArgument for a word that may be either.
Result<NamedFile> named_file(const std::string& given) {
  const std::string name = given.substr(0, given.find('='));
  const bool has_name = name.size() < given.size() && !name.empty() && name.find('/') == std::string::npos;
  const std::filesystem::path named = has_name ? given.substr(name.size() + 1) : "";
  const auto is_file = [](const std::filesystem::path& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored) && !std::filesystem::is_directory(path, ignored);
  };
  if (has_name && !is_file(given)) return NamedFile{name, named, name + ".pte"};
  if (is_file(named)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "{} is a file, and so is {}, with a name before it: give ./{}", quote(given),
                      quote(named.string()), given);
  }
  const std::filesystem::path path = given;
  return NamedFile{std::filesystem::path(unpacked_name(given)).stem().string(), path, path.filename()};
}

/// Returns the outputs, weights first: a program must not be there before its weights.
std::vector<Output> outputs_of(const SharingPlan& planned, const TensorDataOutput& weights,
                               const ShareArguments& arguments, const std::vector<NamedFile>& files) {
  std::vector<Output> outputs = weights.outputs();
  for (std::size_t i = 0; i < files.size() && !arguments.folder.empty(); ++i) {
    outputs.push_back(
        {&planned.files.programs[i], (std::filesystem::path(arguments.folder) / files[i].output).string()});
  }
  if (planned.container) outputs.push_back({&*planned.container, arguments.container});
  return outputs;
}

/// Writes the files or, for a dry run, does what comes before.
Result<void> write_files(const SharingPlan& planned, const TensorDataOutput& weights,
                         const ShareArguments& arguments, const std::vector<NamedFile>& files) {
  if (!planned.files.weights) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the programs have no weights in common that could be shared{}",
                      arguments.dry_run ? "" : "; --dry-run tells what they have");
  }
  const auto outputs = outputs_of(planned, weights, arguments, files);
  return write_outputs(outputs, arguments, arguments.folder);
}

void print_report(const SharingPlan& planned, const TensorDataOutput& weights,
                  const std::vector<SharingInput>& inputs, bool json) {
  if (!json) {
    print_sharing(inputs, planned.files);
    if (planned.container) say("\nthe fat container: {} bytes\n", planned.container->size);
    if (weights.is_split) say("\n");
    if (weights.is_split) print_shards(weights);
    return;
  }
  Json report = sharing_to_json(inputs, planned.files);
  if (weights.is_split) report.add("shards", shards_to_json(weights));
  if (planned.container) report.add("fat", {{"size", planned.container->size}});
  print_json(report);
}

Result<void> share_command(const ShareArguments& arguments) {
  std::vector<NamedFile> files;
  std::vector<SharingInput> inputs;
  for (const std::string& given : arguments.files) {
    ETSTREAM_ASSIGN(files.emplace_back(), named_file(given));
  }
  for (const NamedFile& file : files) {
    ETSTREAM_ASSIGN(ByteSource program, ByteSource::file(file.path.string()));
    inputs.push_back({file.name, std::move(program)});
  }
  const SharingOptions options{.least_size = arguments.least_size,
                               .into_container = !arguments.container.empty(),
                               .container_alignment = arguments.alignment};
  ETSTREAM_ASSIGN(const SharingPlan planned, plan_sharing(inputs, options));
  ETSTREAM_ASSIGN(
      const TensorDataOutput weights,
      plan_tensor_data_output(planned.files.tensor_data, arguments.weights, arguments.split_max_size));
  auto written = write_files(planned, weights, arguments, files);
  if (written || arguments.dry_run) print_report(planned, weights, inputs, arguments.json);
  return written;
}

void check_share(const CLI::App&, const ShareArguments& arguments) {
  if (!arguments.dry_run && arguments.weights.empty()) refuse_without("--weights-to");
  for (const std::string& path : {arguments.weights, arguments.container}) {
    if (is_standard_output(path)) {
      refuse("--weights-to and --fat are files: the report goes to standard output");
    }
  }
  if (!arguments.dry_run && arguments.folder.empty() && arguments.container.empty()) {
    refuse_without("--out-dir or --fat");
  }
}

}  // namespace

void add_share_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<ShareArguments>(
      app, chosen, "share", "Move the weights that programs have in common into one tensor data file",
      share_command, check_share);
  add_argument(command, "FILE", arguments.files,
               "Two or more programs (.pte) of one model: FILE, or NAME=FILE for another name than that "
               "of the file without its ending")
      .required()
      .expected(2, -1);
  add_option(command, "--weights-to", "OUT.ptd", arguments.weights,
             "Write the weights that they have in common to this file");
  add_option(command, "--out-dir", kFolder, arguments.folder,
             "Write the programs to this folder, as NAME.pte or under their own names; it is made if it is "
             "not there");
  const Option fat = add_option(command, "--fat", "OUT.fat", arguments.container,
                                "Also pack the programs into this fat container, by name");
  add_payload_alignment(command, arguments.alignment).needs(fat);
  add_size(command, "--least-size", arguments.least_size,
           "Leave data of fewer bytes where it is; the default is 512");
  add_split_option(command, arguments.split_max_size);
  add_common_options(command, arguments);
}

}  // namespace etstream::cli
