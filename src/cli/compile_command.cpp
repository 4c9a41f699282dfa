// SPDX-License-Identifier: BSD-3-Clause
//
// etstream compile [-I DIR]... SCHEMA DATA.json... -o OUT
#include <memory>
#include <string_view>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/flatc_options.h"
#include "etstream/flatbuffer_text.h"

namespace etstream::cli {
namespace {

Result<void> compile_command(const FlatcOptions& options) {
  ETSTREAM_ASSIGN(const auto schema, FlatbufferText::open(options.schema, options.include_folders));
  for (const std::string& input : options.inputs) {
    ETSTREAM_ASSIGN(const auto json, content_of(input, kLargestJson));
    const std::string_view words(reinterpret_cast<const char*>(json.data()), json.size());
    ETSTREAM_ASSIGN(auto flatbuffer, schema.compile(words, input));
    ETSTREAM_TRY(write_next_to(options, input, schema.file_extension(), std::move(flatbuffer), false));
  }
  return {};
}

}  // namespace

void add_compile_command(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("compile", "Make flatbuffers from JSON, as flatc --binary does");
  auto options = std::make_shared<FlatcOptions>();
  add_flatc_options(*command, *options, "DATA.json", "JSON that fits the schema's root_type");
  add_told_flag(*command, "-b,--binary");
  command->callback([options, &run] {
    check_flatc_options(*options);
    run = [options] { return compile_command(*options); };
  });
}

}  // namespace etstream::cli
