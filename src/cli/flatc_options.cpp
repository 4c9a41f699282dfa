// SPDX-License-Identifier: BSD-3-Clause
#include "cli/flatc_options.h"

#include <filesystem>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "etstream/byte_source.h"
#include "etstream/input_record.h"

namespace etstream::cli {
namespace {

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return path.ends_with('/') || std::filesystem::is_directory(path, ignored);
}

}  // namespace

void add_flatc_options(CLI::App& command, FlatcOptions& options, const std::string& input,
                       const std::string& what) {
  command.add_option("SCHEMA", options.schema, "A schema: a .fbs or .bfbs file")->required();
  command.add_option(input, options.inputs, what)->required();
  command
      .add_option("-I,--include", options.include_folders,
                  "Look for included schemas here too; may be given several times")
      ->type_name(kFolder)
      ->allow_extra_args(false);
  command
      .add_option(
          "-o,--output", options.output,
          "A folder, made if its name ends with /, for files with the stems of those given; or the file to "
          "write; - is standard output")
      ->type_name("OUT")
      ->required();
  command.add_flag("--no-sync", options.no_sync, "Leave the files to the page cache, as flatc does");
}

void add_told_flag(CLI::App& command, const std::string& name) {
  const std::string what = "What flatc has to be told; nothing else is made";
  command.add_flag(name, what);
}

void check_flatc_options(const FlatcOptions& options) {
  if (options.inputs.size() > 1 && !is_folder(options.output)) {
    throw CLI::ValidationError("--output", "has to be a folder for several files");
  }
}

Result<std::vector<std::byte>> content_of(const std::string& path, std::uint64_t limit) {
  ETSTREAM_ASSIGN(const ByteSource source, ByteSource::file(path));
  if (source.size() > limit) {
    return make_error(ErrorCode::kTooLarge, "{}: {}, at most {} can be taken", path,
                      readable_size(source.size()), readable_size(limit));
  }
  std::vector<std::byte> out(source.size());
  ETSTREAM_TRY(source.read_at(0, out));
  return out;
}

Result<std::vector<std::string>> output_paths(const FlatcOptions& options, const std::string& extension) {
  // An output may be an input that is not opened yet.
  if (InputRecord* const inputs = InputRecord::current()) {
    for (const std::string& input : options.inputs) inputs->add(input);
  }
  if (!is_folder(options.output)) return std::vector{options.output};
  std::error_code error;
  std::filesystem::create_directories(options.output, error);
  if (error) {
    return Error{ErrorCode::kIo,
                 text("cannot make the folder {}: {}", quote(options.output), error.message()),
                 error.value()};
  }
  const std::filesystem::path folder(options.output);
  std::vector<std::string> paths;
  for (const std::string& input : options.inputs) {
    paths.push_back((folder / std::filesystem::path(input).stem()).string() + '.' + extension);
  }
  ETSTREAM_TRY(check_apart(paths));
  return paths;
}

Result<void> write_content(const FlatcOptions& options, const std::string& input, const std::string& path,
                           std::vector<std::byte> content, bool is_text) {
  const FilePlan plan = plan_copy(ByteSource::owned(std::move(content)), input);
  return write_outputs({{&plan, path, is_text}}, options);
}

}  // namespace etstream::cli
