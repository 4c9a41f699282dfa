// SPDX-License-Identifier: BSD-3-Clause
//
// etstream compile [-I DIR]... SCHEMA DATA.json... -o OUT
#include <filesystem>
#include <memory>
#include <string_view>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/flatc_options.h"
#include "cli/output.h"
#include "etstream/exact_json.h"
#include "etstream/flatbuffer_text.h"

namespace etstream::cli {
namespace {

struct CompileArguments : FlatcOptions {
  bool exact = false;
  bool python_order = false;
};

Result<void> compile_exactly(const CompileArguments& arguments) {
  ETSTREAM_ASSIGN(const auto schema, ExactJson::open(arguments.schema, arguments.include_folders));
  const auto order = arguments.python_order ? FlatbufferOrder::kPython : FlatbufferOrder::kFlatc;
  ETSTREAM_ASSIGN(const auto paths, output_paths(arguments, schema.file_extension()));
  for (std::size_t i = 0; i < arguments.inputs.size(); ++i) {
    const std::string& input = arguments.inputs[i];
    ETSTREAM_ASSIGN(const ByteSource json, ByteSource::file(input));
    const std::string folder = std::filesystem::path(input).parent_path().string();
    ETSTREAM_ASSIGN(const FilePlan plan, schema.compile(json, folder, order));
    ETSTREAM_TRY(write_output(plan, paths[i], arguments));
  }
  return {};
}

Result<void> compile_command(const CompileArguments& arguments) {
  if (arguments.exact) return compile_exactly(arguments);
  ETSTREAM_ASSIGN(const auto schema, FlatbufferText::open(arguments.schema, arguments.include_folders));
  ETSTREAM_ASSIGN(const auto paths, output_paths(arguments, schema.file_extension()));
  for (std::size_t i = 0; i < arguments.inputs.size(); ++i) {
    const std::string& input = arguments.inputs[i];
    ETSTREAM_ASSIGN(const auto json, content_of(input, kLargestJson));
    const std::string_view words(reinterpret_cast<const char*>(json.data()), json.size());
    ETSTREAM_ASSIGN(auto flatbuffer, schema.compile(words, input));
    ETSTREAM_TRY(write_content(arguments, input, paths[i], std::move(flatbuffer), false));
  }
  return {};
}

}  // namespace

void add_compile_command(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("compile", "Make flatbuffers from JSON, as flatc --binary does");
  auto arguments = std::make_shared<CompileArguments>();
  add_flatc_options(*command, *arguments, "DATA.json", "JSON that fits the schema's root_type");
  add_told_flag(*command, "-b,--binary");
  auto* exact =
      command->add_flag("--exact", arguments->exact,
                        "Take the JSON that decompile --exact writes, with data that lies in files");
  for (CLI::Option* const limit : add_limits(*command, *arguments)) limit->needs(exact);
  command
      ->add_flag("--python-order", arguments->python_order,
                 "Have objects in the order of .pte and .bpte files, not in flatc's")
      ->needs(exact);
  command->callback([arguments, &run] {
    check_flatc_options(*arguments);
    run = [arguments] { return compile_command(*arguments); };
  });
}

}  // namespace etstream::cli
