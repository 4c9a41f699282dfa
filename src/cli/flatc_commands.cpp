// SPDX-License-Identifier: BSD-3-Clause
//
// The uses of flatc, in bounded memory or exactly as flatc does them:
// etstream compile [-I DIR]... SCHEMA DATA.json... -o OUT
// etstream decompile [-I DIR]... [--raw-binary] [--size-prefixed] SCHEMA -- FILE... -o OUT
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/output.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/byte_source.h"
#include "etstream/flatbuffer_text.h"
#include "etstream/packed_file.h"

namespace etstream::cli {
namespace {

namespace fs = std::filesystem;

struct FlatcArguments : CommonOptions {
  std::string schema;
  std::vector<std::string> include_folders;
  std::vector<std::string> inputs;
  std::string output;
  bool exact = false;
  bool told = false;  // what the command always does
};

struct DecompileArguments : FlatcArguments {
  bool strict_json = false;
  bool defaults = false;
  bool raw_binary = false;
  bool size_prefixed = false;
  std::optional<std::uint64_t> leave_out_over;
};

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return path.ends_with('/') || fs::is_directory(path, ignored);
}

void check_flatc(const CLI::App&, const FlatcArguments& arguments) {
  if (arguments.inputs.size() > 1 && !is_folder(arguments.output)) {
    refuse("--output: has to be a folder for several files");
  }
}

/// Returns the output path for each of the inputs: the output, or FOLDER/STEM.EXTENSION if the output is a
/// folder, which is made. Notes the inputs, as an output may not be one. Errors: kIo; kInvalidArgument if two
/// paths are one file.
Result<std::vector<std::string>> output_paths(const FlatcArguments& arguments, const std::string& extension) {
  // An output may be an input that is not opened yet.
  if (InputRecord* const inputs = InputRecord::current()) {
    for (const std::string& input : arguments.inputs) inputs->add(input);
  }
  if (!is_folder(arguments.output)) return std::vector{arguments.output};
  fs::path folder;
  for (const fs::path& name : fs::path(arguments.output)) {
    folder /= name;
    ETSTREAM_TRY(make_folder(folder.string(), {.sync = !arguments.no_sync}));
  }
  std::vector<std::string> paths;
  for (const std::string& input : arguments.inputs) {
    paths.push_back((fs::path(arguments.output) / fs::path(unpacked_name(input)).stem()).string() + '.' +
                    extension);
  }
  return paths;
}

/// An input and its output, which is at `path` and is written by `sink`.
struct Conversion {
  const ByteSource& input;
  const std::string& path;
  Sink& sink;
  const Progress& progress;
};

/// Calls `convert` with each input. All outputs appear together. `is_text` is fit for a terminal.
Result<void> convert_all(const FlatcArguments& arguments, const std::string& extension, bool is_text,
                         const std::function<Result<void>(const Conversion&)>& convert) {
  ETSTREAM_ASSIGN(const auto paths, output_paths(arguments, extension));
  std::vector<Output> outputs;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto write = [&, i](const Progress& progress) -> Result<std::unique_ptr<PendingOutput>> {
      ETSTREAM_ASSIGN(auto sink, open_output(paths[i], file_options(!arguments.no_sync), is_text));
      ETSTREAM_ASSIGN(const ByteSource input, ByteSource::file(arguments.inputs[i]));
      ETSTREAM_TRY(convert({input, paths[i], *sink, progress}));
      return std::unique_ptr<PendingOutput>(std::move(sink));
    };
    outputs.push_back({.path = paths[i], .is_text = is_text, .write = write});
  }
  return write_outputs(outputs, arguments);
}

Result<void> write_content(const Conversion& to, std::vector<std::byte> content) {
  return write_uncommitted(plan_copy(ByteSource::owned(std::move(content)), "content"), to.sink, to.progress);
}

Result<void> compile_exactly(const FlatcArguments& arguments) {
  ETSTREAM_ASSIGN(const auto schema, ExactJson::open(arguments.schema, arguments.include_folders));
  return convert_all(arguments, schema.file_extension(), false, [&](const Conversion& to) -> Result<void> {
    const std::string folder = fs::path(to.input.name()).parent_path().string();
    ETSTREAM_ASSIGN(const FilePlan plan, schema.compile(to.input, folder));
    ETSTREAM_TRY(check_outputs({{&plan, to.path}}, arguments));
    return write_uncommitted(plan, to.sink, to.progress);
  });
}

Result<void> compile_command(const FlatcArguments& arguments) {
  if (arguments.exact) return compile_exactly(arguments);
  ETSTREAM_ASSIGN(const auto schema, FlatbufferText::open(arguments.schema, arguments.include_folders));
  return convert_all(arguments, schema.file_extension(), false, [&](const Conversion& to) -> Result<void> {
    ETSTREAM_ASSIGN(auto flatbuffer, schema.compile(to.input));
    return write_content(to, std::move(flatbuffer));
  });
}

/// Returns the name by which JSON at `json` refers to a file, so that readers of the JSON find it.
std::string name_from(const std::string& json, const std::string& file) {
  if (is_standard_output(json)) return fs::absolute(file).string();
  return fs::absolute(file).lexically_relative(fs::absolute(json).parent_path()).string();
}

Result<void> decompile_exactly(const DecompileArguments& arguments) {
  ETSTREAM_ASSIGN(const auto schema, ExactJson::open(arguments.schema, arguments.include_folders));
  return convert_all(arguments, "json", true, [&](const Conversion& to) -> Result<void> {
    const ExactJsonOptions options{.defaults = arguments.defaults,
                                   .identifier = !arguments.raw_binary,
                                   .size_prefixed = arguments.size_prefixed,
                                   .leave_out_over = arguments.leave_out_over,
                                   .file_name = name_from(to.path, to.input.name()),
                                   .warn = warn};
    return schema.decompile(to.input, options, to.sink);
  });
}

Result<void> decompile_command(const DecompileArguments& arguments) {
  if (arguments.exact) return decompile_exactly(arguments);
  ETSTREAM_ASSIGN(const auto schema, FlatbufferText::open(arguments.schema, arguments.include_folders));
  const DecompileOptions options{.strict_json = arguments.strict_json,
                                 .defaults = arguments.defaults,
                                 .identifier = !arguments.raw_binary,
                                 .size_prefixed = arguments.size_prefixed};
  return convert_all(arguments, "json", true, [&](const Conversion& to) -> Result<void> {
    ETSTREAM_ASSIGN(const std::string json, schema.decompile(to.input, options));
    const auto bytes = std::as_bytes(std::span(json));
    return write_content(to, {bytes.begin(), bytes.end()});
  });
}

/// Adds the options of both subcommands. `input` is the name of the files to be read, and `what` describes
/// them. `told` is a flag by which flatc is asked for what the command always does.
void add_flatc_options(CLI::App& command, FlatcArguments& arguments, const std::string& input,
                       const std::string& what, const std::string& told) {
  add_argument(command, "SCHEMA", arguments.schema, "A schema: a .fbs or .bfbs file").required();
  add_argument(command, input, arguments.inputs, what).required();
  add_list(command, "-I,--include", kFolder, arguments.include_folders,
           "Also look for included schemas in this folder")
      .one_each();
  add_option(command, "-o,--output", "OUT", arguments.output,
             "Write files named after the inputs to this folder, which is made if its name ends with /; or "
             "write this file; - is standard output")
      .required();
  add_no_sync(command, arguments);
  add_flag(command, told, arguments.told, "Accept this option, which flatc needs; no other output is made");
}

}  // namespace

void add_compile_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<FlatcArguments>(
      app, chosen, "compile", "Make flatbuffers from JSON, as flatc --binary does", compile_command,
      check_flatc);
  add_flatc_options(command, arguments, "DATA.json", "JSON that fits the schema's root_type", "--binary");
  const Option exact = add_flag(command, "--exact", arguments.exact,
                                "Take the JSON that decompile --exact writes, with data that lies in files");
  for (const Option limit : add_limits(command, arguments)) limit.needs(exact);
}

void add_decompile_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<DecompileArguments>(
      app, chosen, "decompile", "Show flatbuffers as JSON, as flatc --json does", decompile_command,
      check_flatc);
  add_flatc_options(command, arguments, "FILE", "A flatbuffer of the schema's root_type", "--json");
  add_flag(command, "--strict-json", arguments.strict_json, "Put names in quotes, as JSON requires");
  add_flag(command, "--defaults-json", arguments.defaults,
           "Also show scalars that have their default values");
  add_flag(command, "--raw-binary", arguments.raw_binary, "Take files without the schema's file_identifier");
  add_flag(command, "--size-prefixed", arguments.size_prefixed,
           "Expect files that begin with their size, as ETDumps do");
  const Option exact =
      add_flag(command, "--exact", arguments.exact,
               "Write JSON without loss: numbers come back as they were, and bytes are base64");
  add_size(
      command, "--leave-out", arguments.leave_out_over,
      "For vectors of more than this many bytes, write where they lie in the file instead of their content")
      .needs(exact);
}

}  // namespace etstream::cli
