// SPDX-License-Identifier: BSD-3-Clause
//
// etstream decompile [-I DIR]... [--raw-binary] [--size-prefixed] SCHEMA -- FILE... -o OUT
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/flatc_options.h"
#include "cli/output.h"
#include "etstream/exact_json.h"
#include "etstream/flatbuffer_text.h"

namespace etstream::cli {
namespace {

constexpr std::uint64_t kLargestFile = std::numeric_limits<std::int32_t>::max();  // as offsets have 32 bits

struct DecompileArguments : FlatcOptions {
  bool strict_json = false;
  bool defaults = false;
  bool raw_binary = false;
  bool size_prefixed = false;
  bool exact = false;
  std::optional<std::uint64_t> leave_out_over;
};

/// What JSON at `json` calls a file, so that it is found from there.
std::string name_from(const std::string& json, const std::string& file) {
  namespace fs = std::filesystem;
  if (is_standard_output(json)) return fs::absolute(file).string();
  return fs::absolute(file).lexically_relative(fs::absolute(json).parent_path()).string();
}

Result<void> decompile_exactly(const DecompileArguments& arguments) {
  ETSTREAM_ASSIGN(const auto schema, ExactJson::open(arguments.schema, arguments.include_folders));
  ETSTREAM_ASSIGN(const auto paths, output_paths(arguments, "json"));
  for (std::size_t i = 0; i < arguments.inputs.size(); ++i) {
    const std::string& input = arguments.inputs[i];
    ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(input));
    const ExactJsonOptions options{.defaults = arguments.defaults,
                                   .identifier = !arguments.raw_binary,
                                   .size_prefixed = arguments.size_prefixed,
                                   .leave_out_over = arguments.leave_out_over,
                                   .file_name = name_from(paths[i], input)};
    ETSTREAM_ASSIGN(const auto sink, open_output(paths[i], !arguments.no_sync, true));
    ETSTREAM_TRY(schema.decompile(file, options, *sink));
    ETSTREAM_TRY(sink->commit());
  }
  return {};
}

Result<void> decompile_command(const DecompileArguments& arguments) {
  if (arguments.exact) return decompile_exactly(arguments);
  ETSTREAM_ASSIGN(const auto schema, FlatbufferText::open(arguments.schema, arguments.include_folders));
  const DecompileOptions options{.strict_json = arguments.strict_json,
                                 .defaults = arguments.defaults,
                                 .identifier = !arguments.raw_binary,
                                 .size_prefixed = arguments.size_prefixed};
  ETSTREAM_ASSIGN(const auto paths, output_paths(arguments, "json"));
  for (std::size_t i = 0; i < arguments.inputs.size(); ++i) {
    const std::string& input = arguments.inputs[i];
    ETSTREAM_ASSIGN(const auto flatbuffer, content_of(input, kLargestFile));
    ETSTREAM_ASSIGN(const std::string json, schema.decompile(flatbuffer, options, input));
    const auto bytes = std::as_bytes(std::span(json));
    ETSTREAM_TRY(write_content(arguments, input, paths[i], {bytes.begin(), bytes.end()}, true));
  }
  return {};
}

}  // namespace

void add_decompile_command(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("decompile", "Show flatbuffers as JSON, as flatc --json does");
  auto arguments = std::make_shared<DecompileArguments>();
  add_flatc_options(*command, *arguments, "FILE", "A flatbuffer of the schema's root_type");
  add_told_flag(*command, "-t,--json");
  command->add_flag("--strict-json", arguments->strict_json, "Put names in quotes, as JSON has them");
  command->add_flag("--defaults-json", arguments->defaults, "Show scalars that have their defaults too");
  command->add_flag("--raw-binary", arguments->raw_binary, "Take files without the schema's file_identifier");
  command->add_flag("--size-prefixed", arguments->size_prefixed,
                    "Files begin with their size, as ETDumps do");
  auto* exact = command->add_flag("--exact", arguments->exact,
                                  "Lose nothing: numbers come back as they are, and bytes are base64");
  command
      ->add_option(
          "--leave-out", arguments->leave_out_over,
          "Say of vectors of more than N bytes where they lie in the file, instead of what they hold")
      ->type_name(kNumber)
      ->needs(exact);
  command->callback([arguments, &run] {
    check_flatc_options(*arguments);
    run = [arguments] { return decompile_command(*arguments); };
  });
}

}  // namespace etstream::cli
