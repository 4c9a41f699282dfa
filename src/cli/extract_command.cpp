// SPDX-License-Identifier: BSD-3-Clause
//
// etstream extract FILE [--program OUT.pte] [--segment N -o OUT] [--tensor KEY -o OUT] [--cases DIR]
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "etstream/bundled_program_file.h"
#include "etstream/checkpoint.h"
#include "etstream/file_kind.h"
#include "etstream/program.h"
#include "etstream/test_cases.h"

namespace etstream::cli {
namespace {

struct ExtractArguments {
  std::string file;
  std::string program;
  std::optional<std::uint64_t> segment;
  std::optional<std::string> tensor;
  std::string output;
  std::string cases;
  bool no_sync = false;
};

Result<void> extract_to(const ExtractArguments& arguments, const std::string& path, ByteSource source,
                        const std::string& what) {
  const std::string size = readable_size(source.size());
  ETSTREAM_TRY(write_output(plan_copy(std::move(source), what), path, !arguments.no_sync, {arguments.file}));
  if (!is_standard_output(path)) std::printf("%s: %s, %s\n", path.c_str(), what.c_str(), size.c_str());
  return {};
}

Result<void> extract_segment(const ExtractArguments& arguments, const ProgramFile& program) {
  ETSTREAM_ASSIGN(const auto segments, program.segments());
  if (*arguments.segment >= segments.size()) {
    return make_error(ErrorCode::kNotFound, arguments.file, ": there is no segment ", *arguments.segment,
                      "; the program has ", segments.size());
  }
  const SegmentInfo& segment = segments[static_cast<std::size_t>(*arguments.segment)];
  ETSTREAM_ASSIGN(ByteSource source, program.file().slice(segment.offset, segment.size));
  return extract_to(arguments, arguments.output, std::move(source), text("segment ", *arguments.segment));
}

Result<void> extract_tensor(const ExtractArguments& arguments) {
  ETSTREAM_ASSIGN(Checkpoint weights, open_checkpoint(arguments.file));
  for (CheckpointTensor& tensor : weights.tensors) {
    if (tensor.name != *arguments.tensor) continue;
    return extract_to(arguments, arguments.output, std::move(tensor.data),
                      text("data of ", quote(tensor.name)));
  }
  return make_error(ErrorCode::kNotFound, arguments.file, ": there is no data named ",
                    quote(*arguments.tensor));
}

Result<void> extract_command(const ExtractArguments& arguments) {
  if (arguments.tensor) return extract_tensor(arguments);
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(arguments.file));
  const auto kind = file_kind(file);
  if (kind && *kind == FileKind::kProgram && arguments.program.empty() && arguments.cases.empty()) {
    ETSTREAM_ASSIGN(const ProgramFile program, ProgramFile::open(file));
    return extract_segment(arguments, program);
  }
  ETSTREAM_ASSIGN(const BundledProgramFile bundle, BundledProgramFile::open(file));
  if (!arguments.program.empty()) {
    ETSTREAM_TRY(extract_to(arguments, arguments.program, bundle.program(), "program"));
  }
  if (arguments.segment) {
    ETSTREAM_ASSIGN(const ProgramFile program, bundle.open_program());
    ETSTREAM_TRY(extract_segment(arguments, program));
  }
  if (!arguments.cases.empty()) {
    ETSTREAM_TRY(
        write_test_cases(bundle, arguments.cases, {.sync = !arguments.no_sync}, interruptible_progress()));
    std::printf("%s: test cases of %s, in %s/cases.json\n", arguments.cases.c_str(),
                counted(bundle.suites().size(), "method").c_str(), arguments.cases.c_str());
  }
  return {};
}

}  // namespace

void add_extract_command(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("extract", "Take a program, a bundle or weights apart");
  auto arguments = std::make_shared<ExtractArguments>();
  command
      ->add_option("FILE", arguments->file,
                   "A bundle (.bpte); for --segment also a program (.pte), for --tensor any file of weights, "
                   "as for ptd")
      ->required();
  auto* program =
      command->add_option("--program", arguments->program, "Write the program; - is standard output")
          ->type_name("OUT.pte");
  auto* segment =
      command->add_option("--segment", arguments->segment, "Write this segment of the program to --output")
          ->type_name(kNumber);
  auto* tensor = command->add_option("--tensor", arguments->tensor, "Write the data of this name to --output")
                     ->type_name(kName);
  auto* output = command
                     ->add_option("-o,--output", arguments->output,
                                  "Where the segment or the data goes; - is standard output")
                     ->type_name("OUT");
  auto* cases =
      command->add_option("--cases", arguments->cases, "Write the test cases to a new folder, for bundle")
          ->type_name(kFolder);
  command->add_flag("--no-sync", arguments->no_sync, "Leave what is written to the page cache, as cp does");
  segment->needs(output);
  tensor->needs(output)->excludes(program)->excludes(segment)->excludes(cases);
  command->callback([arguments, program, segment, tensor, output, cases, &run] {
    if (program->empty() && segment->empty() && tensor->empty() && cases->empty()) {
      throw CLI::RequiredError("--program, --segment, --tensor or --cases");
    }
    if (!output->empty() && segment->empty() && tensor->empty()) {
      throw CLI::RequiresError("--output", "--segment or --tensor");
    }
    run = [arguments] { return extract_command(*arguments); };
  });
}

}  // namespace etstream::cli
