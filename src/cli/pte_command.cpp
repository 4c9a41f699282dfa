// SPDX-License-Identifier: BSD-3-Clause
//
// etstream pte MODEL.pte -o OUT.pte [layout options]
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/json_report.h"
#include "cli/output.h"
#include "cli/output_options.h"
#include "cli/plan_report.h"
#include "etstream/findings.h"
#include "etstream/program_layout.h"

namespace etstream::cli {
namespace {

const std::vector<std::string> kDelegatePlaces = {"inline", "segments"};

struct PteArguments : OutputOptions {
  std::string file;
  std::uint32_t segment_alignment = 0;
  std::uint32_t constant_tensor_alignment = 0;
  std::uint32_t delegate_alignment = 0;
  std::string delegates;
  ProgramLayoutOptions layout;
};

Result<void> pte_command(const PteArguments& arguments) {
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(arguments.file));
  ETSTREAM_ASSIGN(const auto program, ProgramFile::open(file));
  Findings findings;
  ETSTREAM_TRY(program.verify(findings));
  print(findings);
  if (!findings.ok()) {
    return make_error(ErrorCode::kCorrupt, arguments.file, ": ", counted(findings.errors.size(), "error"));
  }
  ETSTREAM_ASSIGN(const Layout layout, plan(program, arguments.layout));
  if (arguments.dry_run) {
    print_plan(layout, arguments.json);
    return {};
  }
  ETSTREAM_TRY(write_output(layout, arguments.output, !arguments.no_sync, {arguments.file}));
  if (arguments.json) {
    print_json({{"output", arguments.output}, {"size", layout.size}});
  } else if (!is_standard_output(arguments.output)) {
    std::printf("%s: %s\n", arguments.output.c_str(), readable_size(layout.size).c_str());
  }
  return {};
}

}  // namespace

void add_pte_command(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("pte", "Write a program again under another layout");
  auto arguments = std::make_shared<PteArguments>();
  command->add_option("FILE", arguments->file, "A program (.pte)")->required();
  add_output_path(*command, *arguments, "The program", "OUT.pte");
  auto* segments = command
                       ->add_option("--segment-alignment", arguments->segment_alignment,
                                    "Have segments begin at multiples of N bytes, a power of two")
                       ->type_name(kNumber);
  auto* constants = command
                        ->add_option("--constant-tensor-alignment", arguments->constant_tensor_alignment,
                                     "Have constant tensors begin at multiples of N bytes in their segment")
                        ->type_name(kNumber);
  auto* inline_data =
      command
          ->add_option(
              "--delegate-alignment", arguments->delegate_alignment,
              "Have the data of delegates in the flatbuffer begin at multiples of N bytes, a power of two")
          ->type_name(kNumber);
  auto* delegates = command
                        ->add_option("--delegates", arguments->delegates,
                                     "Have the data of delegates inline, in the flatbuffer, or in segments")
                        ->type_name(CLI::detail::join(kDelegatePlaces, "|"))
                        ->check(CLI::IsMember(kDelegatePlaces).description(""));
  add_output_flags(*command, *arguments);
  command->callback([arguments, command, segments, constants, inline_data, delegates, &run] {
    check_output(*command, *arguments);
    ProgramLayoutOptions& layout = arguments->layout;
    if (!segments->empty()) layout.segment_alignment = arguments->segment_alignment;
    if (!constants->empty()) layout.constant_tensor_alignment = arguments->constant_tensor_alignment;
    if (!inline_data->empty()) layout.delegate_alignment = arguments->delegate_alignment;
    if (!delegates->empty()) {
      layout.delegates =
          arguments->delegates == kDelegatePlaces.front() ? DelegateData::kInline : DelegateData::kInSegments;
    }
    run = [arguments] { return pte_command(*arguments); };
  });
}

}  // namespace etstream::cli
