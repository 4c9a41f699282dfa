// SPDX-License-Identifier: BSD-3-Clause
//
// etstream decompile [-I DIR]... [--raw-binary] [--size-prefixed] SCHEMA -- FILE... -o OUT
#include <limits>
#include <memory>
#include <span>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/flatc_options.h"
#include "etstream/flatbuffer_text.h"

namespace etstream::cli {
namespace {

constexpr std::uint64_t kLargestFile = std::numeric_limits<std::int32_t>::max();  // as offsets have 32 bits

struct DecompileArguments : FlatcOptions {
  bool strict_json = false;
  bool defaults = false;
  bool raw_binary = false;
  bool size_prefixed = false;
};

Result<void> decompile_command(const DecompileArguments& arguments) {
  ETSTREAM_ASSIGN(const auto schema, FlatbufferText::open(arguments.schema, arguments.include_folders));
  const DecompileOptions options{.strict_json = arguments.strict_json,
                                 .defaults = arguments.defaults,
                                 .identifier = !arguments.raw_binary,
                                 .size_prefixed = arguments.size_prefixed};
  for (const std::string& input : arguments.inputs) {
    ETSTREAM_ASSIGN(const auto flatbuffer, content_of(input, kLargestFile));
    ETSTREAM_ASSIGN(const std::string json, schema.decompile(flatbuffer, options, input));
    const auto bytes = std::as_bytes(std::span(json));
    ETSTREAM_TRY(write_next_to(arguments, input, "json", {bytes.begin(), bytes.end()}, true));
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
  command->callback([arguments, &run] {
    check_flatc_options(*arguments);
    run = [arguments] { return decompile_command(*arguments); };
  });
}

}  // namespace etstream::cli
