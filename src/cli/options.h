// SPDX-License-Identifier: BSD-3-Clause
//
// The kinds of option, and options that several subcommands have.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/key_names.h"
#include "etstream/result.h"
#include "etstream/writer_version.h"
#include "present/size_text.h"

namespace etstream::cli {

/// Type names of values. Shells complete choices such as "one|other" with their words, folders with folders,
/// subcommands with their names, the other three with nothing, and values of any other type name with files.
inline constexpr const char* kNumber = "N";
inline constexpr const char* kName = "NAME";
inline constexpr const char* kSize = "SIZE";
inline constexpr const char* kFolder = "DIR";
inline constexpr const char* kSubcommand = "SUBCOMMAND";

/// Returns a validator that refuses an empty value, as a variable of a shell that is not set gives it.
[[nodiscard]] CLI::Validator no_empty_value(const std::string& type);

/// Adds an option whose value has the type name `type`. It may not be empty, unless it is a name.
template <class T>
CLI::Option* add_option(CLI::App& command, const std::string& name, const std::string& type, T& value,
                        const std::string& description) {
  CLI::Option* const option = command.add_option(name, value, description)->type_name(type);
  return type == kName ? option : option->check(no_empty_value(type));
}

/// Adds an option that may be given several times, with one value each.
CLI::Option* add_list(CLI::App& command, const std::string& name, const std::string& type,
                      std::vector<std::string>& values, const std::string& description);
CLI::Option* add_choice(CLI::App& command, const std::string& name, const std::vector<std::string>& choices,
                        std::string& value, const std::string& description);

/// Returns a validator that turns a size such as 16M into its bytes, in decimal digits, and refuses other
/// words.
[[nodiscard]] CLI::Validator size_in_bytes(const std::string& name, SizeBounds bounds);
/// Returns a validator that refuses anything but decimal digits.
[[nodiscard]] CLI::Validator whole_number();

/// Returns a validator that refuses negative numbers, NaN, and words that are no numbers.
[[nodiscard]] CLI::Validator tolerance();

/// Adds --atol and --rtol for the outputs of test cases.
std::array<CLI::Option*, 2> add_tolerances(CLI::App& command, std::optional<double>& atol,
                                           std::optional<double>& rtol);

/// Adds an option for a whole number.
template <class T>
CLI::Option* add_number(CLI::App& command, const std::string& name, T& number,
                        const std::string& description) {
  return add_option(command, name, kNumber, number, description)->check(whole_number());
}

/// Adds an option for a size in bytes, such as 16M. The variable that it sets is at least as wide as the
/// bounds.
template <class T>
CLI::Option* add_size(CLI::App& command, const std::string& name, T& bytes, const std::string& description,
                      SizeBounds bounds = {}) {
  return add_option(command, name, kSize, bytes, description)->transform(size_in_bytes(name, bounds));
}

/// Adds an option for an alignment: a size of 32 bits.
template <class T>
CLI::Option* add_alignment(CLI::App& command, const std::string& name, T& bytes,
                           const std::string& description) {
  return add_size(command, name, bytes, description,
                  {.least = 0, .most = std::numeric_limits<std::uint32_t>::max()});
}

/// The section of help with the options that subcommands have in common, and their descriptions by the names
/// of the options.
inline constexpr const char* kCommonGroup = "Common options";
struct CommonOption {
  std::string_view name;
  std::string_view description;
};
inline constexpr CommonOption kCommonOptions[] = {
    {"--dry-run", "Write nothing: check all, and show the plan"},
    {"--max-memory SIZE", "Refuse to write with more memory than this, such as 16M"},
    {"--max-disk SIZE",
     "Refuse to write more bytes than this in all, such as 2G; the default is 4 times the input if names "
     "share data"},
    {"--no-sync", "Leave the written data in the page cache, as cp does"},
    {"--json", "Report as JSON on standard output"},
};

/// The options that subcommands have in common.
struct CommonOptions {
  bool dry_run = false;
  std::optional<std::uint64_t> max_memory;  // in bytes, as is
  std::optional<std::uint64_t> max_disk;
  bool no_sync = false;
  bool json = false;
};

/// The options of subcommands that write one file.
struct OutputOptions : CommonOptions {
  std::string output;
};

/// Throws the error of a wrong command line if one of these options is given, which would do nothing with
/// `choice`. An option that the command does not have is not given.
void exclude_with(const CLI::App& command, const std::string& choice,
                  const std::vector<std::string>& options);

/// Adds --align of a fat container.
CLI::Option* add_payload_alignment(CLI::App& command, std::uint32_t& alignment);
void add_partial_option(CLI::App& command, bool& partial);
/// Adds --names, which may be given several times.
CLI::Option* add_names_option(CLI::App& command, std::vector<std::string>& files);
/// Reads the names in all of these files. Errors: those of opening and reading them.
[[nodiscard]] Result<KeyNames> read_names(const std::vector<std::string>& files);
/// Adds the options that subcommands have in common, or some of them.
void add_common_options(CLI::App& command, CommonOptions& options);
void add_no_sync(CLI::App& command, CommonOptions& options);
void add_json(CLI::App& command, bool& json);
/// Returns --max-memory and --max-disk, in this order.
std::array<CLI::Option*, 2> add_limits(CLI::App& command, CommonOptions& options);

/// Adds -o, the path to which `what` is written, such as `example`.
void add_output_path(CLI::App& command, OutputOptions& options, const std::string& what,
                     const std::string& example);
/// Throws the error of a wrong command line if a report, with --json, would go where one of `outputs` goes.
void check_report(bool json, const std::vector<std::string>& outputs);
/// Throws CLI11's errors if options don't go together.
void check_output(const CLI::App& command, const OutputOptions& options);

void add_as_of(CLI::App& command, std::optional<ExecutorchRelease>& as_of);
void add_flatbuffers(CLI::App& command, std::optional<VtableSharing>& vtables);

void add_metadata_option(CLI::App& command, std::vector<std::string>& given);
/// Returns the bytes of the values, by their keys; a value @FILE is the content of that file. Errors:
/// kInvalidArgument for a word that is no KEY=VALUE, or has a key that comes twice; those of opening a file.
[[nodiscard]] Result<std::map<std::string, ByteSource>> read_metadata_options(
    const std::vector<std::string>& given);

}  // namespace etstream::cli
