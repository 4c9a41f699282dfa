// SPDX-License-Identifier: BSD-3-Clause
//
// etstream extract FILE [PIECE -o OUT] [--cases DIR]
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/output.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/bundled_program.h"
#include "etstream/inspect.h"
#include "present/json.h"
#include "present/print.h"

namespace etstream::cli {
namespace {

struct ExtractArguments : CommonOptions {
  std::string file;
  std::optional<std::string> piece;
  std::string output;
  std::string cases;
};

/// Extracts the piece and the test cases that are asked for: both or none.
Result<void> extract_command(const ExtractArguments& arguments) {
  std::optional<FilePlan> piece;
  std::optional<BundledProgramFile> bundle;
  std::vector<Output> outputs;
  if (arguments.piece) {
    ETSTREAM_ASSIGN(const ByteSource data, find_piece(arguments.file, *arguments.piece));
    piece = plan_copy(data, *arguments.piece);
    outputs.push_back({&*piece, arguments.output});
  }
  if (!arguments.cases.empty()) {
    ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(arguments.file));
    ETSTREAM_ASSIGN(bundle, BundledProgramFile::open(file));
    if (!piece) ETSTREAM_TRY(bundle->check_hashes());  // find_piece() has done it
    const auto write_cases = [&](const Progress& progress) {
      return write_test_cases_uncommitted(*bundle, arguments.cases, file_options(!arguments.no_sync),
                                          progress, arguments.max_disk);
    };
    outputs.push_back({.path = arguments.cases, .write = write_cases});
  }
  ETSTREAM_TRY(write_outputs(outputs, arguments));
  if (arguments.json) {
    Json report = Json::list();
    if (piece) {
      report.push_back({{"output", arguments.output}, {"what", *arguments.piece}, {"size", piece->size}});
    }
    if (bundle) {
      report.push_back(
          {{"output", arguments.cases}, {"what", "test cases"}, {"methods", bundle->suites().size()}});
    }
    print_json({{"outputs", report}});
    return {};
  }
  if (piece) say("{}: {}, {}\n", arguments.output, *arguments.piece, readable_size(piece->size));
  if (bundle) {
    say("{}: test cases of {}, in {}/cases.json\n", arguments.cases,
        counted(bundle->suites().size(), "method"), arguments.cases);
  }
  return {};
}

void check_extract(const CLI::App& command, const ExtractArguments& arguments) {
  if (!arguments.piece && !is_given(command, "--cases")) refuse_without("PIECE or --cases");
  check_report(arguments.json && !arguments.dry_run, {arguments.output});
}

}  // namespace

void add_extract_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<ExtractArguments>(
      app, chosen, "extract", "Take a piece out of a file", extract_command, check_extract);
  add_argument(command, "FILE", arguments.file,
               "A file of any kind; or a folder with a checkpoint, or its index")
      .required();
  const Option piece =
      add_argument(command, "PIECE", arguments.piece, "The path of the piece, as inspect prints it");
  const Option output =
      add_option(command, "-o,--output", "OUT", arguments.output, "The piece; - is standard output");
  const Option cases =
      add_option(command, "--cases", kFolder, arguments.cases,
                 "Write the test cases of a bundle to this new folder, as bundle takes them");
  add_base_option(command);
  add_common_options(command, arguments);
  option_of(command, "--max-memory").excludes(cases);
  piece.needs(output);
  output.needs(piece);
}

}  // namespace etstream::cli
