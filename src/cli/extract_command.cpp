// SPDX-License-Identifier: BSD-3-Clause
//
// etstream extract FILE [--program OUT.pte] [--segment N -o OUT] [--delegate N [--part NAME] -o OUT]
//                       [--tensor KEY -o OUT] [--cases DIR]
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/output.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/bundled_program_file.h"
#include "etstream/case_files.h"
#include "etstream/checkpoint.h"
#include "etstream/delegate_payloads.h"
#include "etstream/file_kind.h"
#include "etstream/native_package_file.h"
#include "etstream/program.h"
#include "present/json.h"
#include "present/print.h"

namespace etstream::cli {
namespace {

struct ExtractArguments : CommonOptions {
  std::string file;
  std::string program;
  std::optional<std::uint64_t> segment;
  std::optional<std::uint64_t> delegate;
  std::optional<std::string> part;
  std::optional<std::string> tensor;
  std::string output;
  std::string cases;
  bool partial = false;
};

struct Part {
  std::string path;  // where it goes
  std::string what;
  ByteSource source;
};

/// Extracts the parts and, if they are asked for, the test cases of `bundle`: all of them or none.
Result<void> extract_to(const ExtractArguments& arguments, const std::vector<Part>& parts,
                        const BundledProgramFile* bundle = nullptr) {
  std::deque<FilePlan> plans;
  std::vector<Output> outputs;
  outputs.reserve(parts.size() + 1);
  for (const Part& part : parts) {
    outputs.push_back({&plans.emplace_back(plan_copy(part.source, part.what)), part.path});
  }
  const bool with_cases = bundle != nullptr && !arguments.cases.empty();
  if (with_cases) {
    const auto write_cases = [&](const Progress& progress) {
      return write_test_cases_uncommitted(*bundle, arguments.cases, file_options(!arguments.no_sync),
                                          progress, arguments.max_disk);
    };
    outputs.push_back({.path = arguments.cases, .write = write_cases});
  }
  ETSTREAM_TRY(write_outputs(outputs, arguments));
  if (arguments.json) {
    Json report = Json::list();
    for (const Part& part : parts) {
      report.push_back({{"output", part.path}, {"what", part.what}, {"size", part.source.size()}});
    }
    if (with_cases) {
      report.push_back(
          {{"output", arguments.cases}, {"what", "test cases"}, {"methods", bundle->suites().size()}});
    }
    print_json({{"outputs", report}});
    return {};
  }
  for (const Part& part : parts) {
    say("{}: {}, {}\n", part.path, part.what, readable_size(part.source.size()));
  }
  if (with_cases) {
    say("{}: test cases of {}, in {}/cases.json\n", arguments.cases,
        counted(bundle->suites().size(), "method"), arguments.cases);
  }
  return {};
}

Result<Part> segment_part(const ExtractArguments& arguments, const ProgramFile& program) {
  ETSTREAM_ASSIGN(const auto segments, program.segments());
  if (*arguments.segment >= segments.size()) {
    return error_in(ErrorCode::kNotFound, arguments.file, "there is no segment {}; the program has {}",
                    *arguments.segment, segments.size());
  }
  const SegmentInfo& segment = segments[static_cast<std::size_t>(*arguments.segment)];
  ETSTREAM_ASSIGN(ByteSource source, program.file().slice(segment.offset, segment.size));
  return Part{arguments.output, text("segment {}", *arguments.segment), std::move(source)};
}

Result<Part> delegate_part(const ExtractArguments& arguments, const ProgramFile& program) {
  ETSTREAM_ASSIGN(const auto payloads, read_delegate_payloads(program));
  if (*arguments.delegate >= payloads.size()) {
    return error_in(ErrorCode::kNotFound, arguments.file,
                    "there is no delegate's data {}; the program has {}", *arguments.delegate,
                    payloads.size());
  }
  const DelegatePayload& payload = payloads[static_cast<std::size_t>(*arguments.delegate)];
  const std::string what = text("data of delegate {}", *arguments.delegate);
  if (!arguments.part) return Part{arguments.output, what, payload.data};
  auto part = part_of(payload, *arguments.part);
  if (!part) return about(std::move(part).error(), arguments.file);
  return Part{arguments.output, text("{} of the {}", quote(*arguments.part), what), std::move(part).value()};
}

/// Returns the part of a program that goes to --output.
Result<Part> program_part(const ExtractArguments& arguments, const ProgramFile& program) {
  return arguments.delegate ? delegate_part(arguments, program) : segment_part(arguments, program);
}

Result<void> extract_tensor(const ExtractArguments& arguments) {
  ETSTREAM_ASSIGN(const Checkpoint weights, open_checkpoint(arguments.file, {.partial = arguments.partial}));
  for (const CheckpointTensor& tensor : weights.tensors) {
    if (tensor.name != *arguments.tensor) continue;
    return extract_to(arguments, {{arguments.output, text("data of {}", quote(tensor.name)), tensor.data}});
  }
  return error_in(ErrorCode::kNotFound, arguments.file, "there is no data named {}",
                  quote(*arguments.tensor));
}

Result<void> extract_command(const ExtractArguments& arguments) {
  if (arguments.tensor) return extract_tensor(arguments);
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(arguments.file));
  const auto kind = file_kind(file);
  if (kind && *kind == FileKind::kProgram && arguments.program.empty() && arguments.cases.empty()) {
    ETSTREAM_ASSIGN(const ProgramFile program, ProgramFile::open(file));
    ETSTREAM_ASSIGN(const Part part, program_part(arguments, program));
    return extract_to(arguments, {part});
  }
  if (kind && *kind == FileKind::kNativePackage && arguments.cases.empty() && !arguments.segment &&
      !arguments.delegate) {
    ETSTREAM_ASSIGN(const NativePackageFile package, NativePackageFile::open(file));
    return extract_to(arguments, {{arguments.program, "graph", package.graph()}});
  }
  ETSTREAM_ASSIGN(const BundledProgramFile bundle, BundledProgramFile::open(file));
  ETSTREAM_TRY(bundle.check_hashes());
  std::vector<Part> parts;
  if (!arguments.program.empty()) parts.push_back({arguments.program, "program", bundle.program()});
  if (arguments.segment || arguments.delegate) {
    ETSTREAM_ASSIGN(const ProgramFile program, bundle.open_program());
    ETSTREAM_ASSIGN(parts.emplace_back(), program_part(arguments, program));
  }
  return extract_to(arguments, parts, &bundle);
}

void check_extract(const CLI::App& command, const ExtractArguments& arguments) {
  const bool needs_output =
      is_given(command, "--segment") || is_given(command, "--delegate") || is_given(command, "--tensor");
  if (!needs_output && !is_given(command, "--program") && !is_given(command, "--cases")) {
    refuse_without("--program, --segment, --delegate, --tensor or --cases");
  }
  if (is_given(command, "--output") && !needs_output) {
    refuse("--output requires --segment, --delegate or --tensor");
  }
  check_report(arguments.json && !arguments.dry_run, {arguments.output, arguments.program});
}

}  // namespace

void add_extract_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<ExtractArguments>(
      app, chosen, "extract", "Take a program, a bundle or weights apart", extract_command, check_extract);
  add_argument(command, "FILE", arguments.file,
               "A bundle (.bpte); for --program also a package (.ptn), for --segment and --delegate a "
               "program (.pte), for --tensor any checkpoint, as for ptd")
      .required();
  const Option program = add_option(command, "--program", "OUT.pte", arguments.program,
                                    "Write the program, or a package's graph; - is standard output");
  const Option segment =
      add_number(command, "--segment", arguments.segment, "Write this segment of the program to --output");
  const Option delegate =
      add_number(command, "--delegate", arguments.delegate,
                 "Write the data of this delegate, by its number in inspect, to --output");
  add_option(command, "--part", kName, arguments.part,
             "Write only this part of the delegate's data, by its name in inspect")
      .needs(delegate);
  const Option tensor =
      add_option(command, "--tensor", kName, arguments.tensor, "Write the data of this name to --output");
  const Option output = add_option(command, "-o,--output", "OUT", arguments.output,
                                   "Write the segment or the data to this file; - is standard output");
  const Option cases = add_option(command, "--cases", kFolder, arguments.cases,
                                  "Write the test cases to this new folder, as bundle takes them");
  add_partial_option(command, arguments.partial);
  add_common_options(command, arguments);
  option_of(command, "--max-memory").excludes(cases);
  segment.needs(output).excludes(delegate);
  delegate.needs(output);
  tensor.needs(output).excludes(program).excludes(segment).excludes(delegate).excludes(cases);
}

}  // namespace etstream::cli
