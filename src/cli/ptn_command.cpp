// SPDX-License-Identifier: BSD-3-Clause
//
// etstream ptn GRAPH [--constants WEIGHTS]... -o OUT.ptn
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/plan_report.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/file_kind.h"
#include "etstream/native_package.h"
#include "etstream/native_package_file.h"

namespace etstream::cli {
namespace {

struct PtnArguments : OutputOptions {
  std::string graph;
  std::vector<std::string> constants;
  std::vector<std::string> only;
  std::vector<std::string> mutable_keys;
  std::uint32_t alignment = 1;
  bool partial = false;
};

Result<NativePackage> read_package(const PtnArguments& arguments) {
  NativePackage out;
  std::vector<Checkpoint> checkpoints;
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(arguments.graph));
  const auto kind = file_kind(file);
  if (kind && *kind == FileKind::kNativePackage) {
    ETSTREAM_ASSIGN(const NativePackageFile package, NativePackageFile::open(file));
    out.graph = package.graph();
    if (arguments.constants.empty()) checkpoints.push_back({{arguments.graph}, package.tensors()});
  } else {
    out.graph = file;
  }
  ETSTREAM_ASSIGN(auto constants, open_checkpoints(arguments.constants, {.partial = arguments.partial}));
  std::ranges::move(constants, std::back_inserter(checkpoints));
  ETSTREAM_ASSIGN(Checkpoint joined, join(std::move(checkpoints)));
  if (!arguments.only.empty()) ETSTREAM_TRY(select(joined, arguments.only));
  ETSTREAM_TRY(merge(joined));
  out.constants = std::move(joined.tensors);
  out.mutable_keys = arguments.mutable_keys;
  out.alignment = arguments.alignment;
  ETSTREAM_ASSIGN(out.modified, current_archive_time(std::getenv("SOURCE_DATE_EPOCH")));
  return out;
}

Result<void> ptn_command(const PtnArguments& arguments) {
  ETSTREAM_ASSIGN(const NativePackage package, read_package(arguments));
  ETSTREAM_ASSIGN(const FilePlan planned, plan(package));
  return show_or_write(planned, arguments, "constant", package.constants.size());
}

}  // namespace

void add_ptn_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<PtnArguments>(
      app, chosen, "ptn", "Write a package of the native backend (.ptn): a graph and its constants",
      ptn_command, check_output);
  command
      .add_option("GRAPH", arguments.graph,
                  "A graph (.ptg); or a package (.ptn), whose graph is taken, and without --constants also "
                  "its constants")
      ->required();
  add_list(command, "--constants", "WEIGHTS", arguments.constants,
           "Take constants from this checkpoint, of any kind that ptd takes");
  add_output_path(command, arguments, "The package", "OUT.ptn");
  add_list(command, "--only", "GLOB", arguments.only,
           "Take only constants whose name matches this pattern with * and ?");
  add_partial_option(command, arguments.partial);
  add_list(command, "--mutable", kName, arguments.mutable_keys,
           "Give this constant bytes of its own, like the constants that the graph changes");
  add_alignment(command, "--align", arguments.alignment,
                "Begin the members, and constants whose size is a multiple of SIZE, at multiples of SIZE in "
                "the file, a power of two up to 32K; the default is 1");
  add_common_options(command, arguments);
}

}  // namespace etstream::cli
