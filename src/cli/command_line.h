// SPDX-License-Identifier: BSD-3-Clause
//
// The command line: its subcommands, the kinds of their options, and the options that several have. CLI11
// reads it, which takes seconds to compile: only help.h, and what includes that, includes it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/program_weights.h"
#include "etstream/result.h"
#include "etstream/sink.h"
#include "present/print.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace etstream::cli {

// Subcommands

/// The work of the chosen subcommand, once the command line has been read, and its exit codes.
struct ChosenCommand {
  std::function<Result<void>()> work = {};
  /// The words after "--" on the command line of a subcommand that runs another command.
  std::vector<std::string> command = {};
  int done = 0;
  int failed = 1;
};

/// The name, in help texts, of the command that a subcommand runs.
inline constexpr const char* kOtherCommand = "COMMAND";

/// Makes the whole command line. Parsing it sets `chosen`, which outlives it, if a subcommand is given.
[[nodiscard]] std::unique_ptr<CLI::App> make_command_line(ChosenCommand& chosen);

/// Adds a subcommand that calls `parsed` after its options have been set.
CLI::App& add_subcommand(CLI::App& app, const std::string& name, const std::string& description,
                         const std::function<void(const CLI::App&)>& parsed);

/// Adds a subcommand that runs `work` on its arguments. Returns it with these arguments, which live as long:
/// its options set them. `work` may also take `chosen`. `check` gets the subcommand and the arguments after
/// parsing, and refuses options that don't go together.
template <class Arguments, class Work, class Check = void (*)(const CLI::App&, const Arguments&)>
std::pair<CLI::App&, Arguments&> add_subcommand(
    CLI::App& app, ChosenCommand& chosen, const std::string& name, const std::string& description, Work work,
    Check check = [](const CLI::App&, const Arguments&) {}) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App& command = add_subcommand(app, name, description, [=, &chosen](const CLI::App& own) {
    check(own, *arguments);
    if constexpr (std::is_invocable_v<Work, Arguments&, ChosenCommand&>) {
      chosen.work = [=, &chosen] { return work(*arguments, chosen); };
    } else {
      chosen.work = [=] { return work(*arguments); };
    }
  });
  return {command, *arguments};
}

void add_bundle_command(CLI::App& app, ChosenCommand& chosen);
void add_compare_command(CLI::App& app, ChosenCommand& chosen);
void add_compile_command(CLI::App& app, ChosenCommand& chosen);
void add_convert_command(CLI::App& app, ChosenCommand& chosen);
void add_decompile_command(CLI::App& app, ChosenCommand& chosen);
void add_diff_command(CLI::App& app, ChosenCommand& chosen);
void add_embed_command(CLI::App& app, ChosenCommand& chosen);
void add_explain_command(CLI::App& app, ChosenCommand& chosen);
void add_extract_command(CLI::App& app, ChosenCommand& chosen);
void add_fat_command(CLI::App& app, ChosenCommand& chosen);
void add_help_command(CLI::App& app, ChosenCommand& chosen);
void add_inspect_command(CLI::App& app, ChosenCommand& chosen);
void add_pack_command(CLI::App& app, ChosenCommand& chosen);
void add_profile_command(CLI::App& app, ChosenCommand& chosen);
void add_ptd_command(CLI::App& app, ChosenCommand& chosen);
void add_pte_command(CLI::App& app, ChosenCommand& chosen);
void add_ptn_command(CLI::App& app, ChosenCommand& chosen);
void add_reweight_command(CLI::App& app, ChosenCommand& chosen);
void add_run_command(CLI::App& app, ChosenCommand& chosen);
void add_share_command(CLI::App& app, ChosenCommand& chosen);
void add_unpack_command(CLI::App& app, ChosenCommand& chosen);
void add_verify_command(CLI::App& app, ChosenCommand& chosen);

// Errors of a wrong command line, which end the reading of it.

[[noreturn]] void refuse(const Error& error);
[[noreturn]] void refuse(const std::string& words);
/// Says that an option, or what `name` tells, is required.
[[noreturn]] void refuse_without(const std::string& name);
/// Refuses each of these options that is given, which would do nothing with `choice`. An option that the
/// command does not have is not given.
void exclude_with(const CLI::App& command, const std::string& choice,
                  const std::vector<std::string>& options);
/// Refuses a report, with --json, that would go where one of `outputs` goes.
void check_report(bool json, const std::vector<std::string>& outputs);
[[nodiscard]] bool is_given(const CLI::App& command, const std::string& option);
[[nodiscard]] std::string joined(const std::vector<std::string>& words, std::string_view between);

// Kinds of option

/// Type names of values. Shells complete choices such as "one|other" with their words, folders with folders,
/// subcommands with their names, the other three with nothing, and values of any other type name with files.
inline constexpr const char* kNumber = "N";
inline constexpr const char* kName = "NAME";
inline constexpr const char* kSize = "SIZE";
inline constexpr const char* kFolder = "DIR";
inline constexpr const char* kSubcommand = "SUBCOMMAND";

/// An option of a subcommand, or an argument without a name. Copies are the same option.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option required() const;
  Option needs(Option other) const;
  Option excludes(Option other) const;
  /// Takes so many values; -1 is any number.
  Option expected(int least, int most) const;
  /// Takes one value each time that it is given.
  Option one_each() const;
  /// Refuses a value for which `check` returns the reason.
  Option checked(const std::function<std::string(const std::string&)>& check) const;
  /// Refuses anything but decimal digits.
  Option whole_number() const;
  /// Refuses what is no size such as 16M within the bounds, and gives its bytes to the variable, which is at
  /// least as wide as the bounds.
  Option size(SizeBounds bounds) const;
  [[nodiscard]] CLI::Option* get() const { return option_; }

 private:
  CLI::Option* option_;
};

/// The values are strings, paths, whole numbers, doubles, lists of strings, and optional ones of these.
template <class T>
Option add_argument(CLI::App& command, const std::string& name, T& value, const std::string& description);
/// Adds an option whose value has the type name `type`. It may not be empty, as a variable of a shell that is
/// not set gives it, unless it is a name.
template <class T>
Option add_option(CLI::App& command, const std::string& name, const std::string& type, T& value,
                  const std::string& description);

/// Adds an option for a whole number.
template <class T>
Option add_number(CLI::App& command, const std::string& name, T& number, const std::string& description) {
  return add_option(command, name, kNumber, number, description).whole_number();
}

/// Adds an option for a size in bytes, such as 16M.
template <class T>
Option add_size(CLI::App& command, const std::string& name, T& bytes, const std::string& description,
                SizeBounds bounds = {}) {
  return add_option(command, name, kSize, bytes, description).size(bounds);
}

/// Adds an option for an alignment: a size of 32 bits.
template <class T>
Option add_alignment(CLI::App& command, const std::string& name, T& bytes, const std::string& description) {
  return add_size(command, name, bytes, description,
                  {.least = 0, .most = std::numeric_limits<std::uint32_t>::max()});
}

Option add_flag(CLI::App& command, const std::string& name, bool& value, const std::string& description);
/// Adds an option that may be given several times, with one value each.
Option add_list(CLI::App& command, const std::string& name, const std::string& type,
                std::vector<std::string>& values, const std::string& description);
Option add_choice(CLI::App& command, const std::string& name, const std::vector<std::string>& choices,
                  std::string& value, const std::string& description);
/// Adds an option for a number from 0 on.
Option add_tolerance(CLI::App& command, const std::string& name, std::optional<double>& value,
                     const std::string& description);
/// Returns the option of this name, which the subcommand has.
[[nodiscard]] Option option_of(CLI::App& command, const std::string& name);
/// Adds words behind the options in the help.
void add_footer(CLI::App& command, const std::string& words);

// Options that several subcommands have

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

/// Adds the options that subcommands have in common, or some of them.
void add_common_options(CLI::App& command, CommonOptions& options);
void add_no_sync(CLI::App& command, CommonOptions& options);
void add_json(CLI::App& command, bool& json);
/// Returns --max-memory and --max-disk, in this order.
std::array<Option, 2> add_limits(CLI::App& command, CommonOptions& options);

/// Adds -o, the path to which `what` is written, such as `example`.
void add_output_path(CLI::App& command, OutputOptions& options, const std::string& what,
                     const std::string& example);
/// Refuses a missing output, and a report that would go where it goes.
void check_output(const CLI::App& command, const OutputOptions& options);

/// Adds --atol and --rtol for the outputs of test cases.
std::array<Option, 2> add_tolerances(CLI::App& command, std::optional<double>& atol,
                                     std::optional<double>& rtol);
/// Adds --align of a fat container.
Option add_payload_alignment(CLI::App& command, std::uint32_t& alignment);
void add_partial_option(CLI::App& command, bool& partial);
/// Adds --base, with which files that are updates are read.
void add_base_option(CLI::App& command);
/// Adds --names, which may be given several times.
Option add_names_option(CLI::App& command, std::vector<std::string>& files);
/// Reads the names in all of these files. Errors: those of opening and reading them.
[[nodiscard]] Result<KeyNames> read_names(const std::vector<std::string>& files);

void add_as_of(CLI::App& command, std::optional<ExecutorchRelease>& as_of);
void add_flatbuffers(CLI::App& command, std::optional<VtableSharing>& vtables);

void add_metadata_option(CLI::App& command, std::vector<std::string>& given);
/// Returns the bytes of the values, by their keys; a value @FILE is the content of that file. Errors:
/// kInvalidArgument for a word that is no KEY=VALUE, or has a key that comes twice; those of opening a file.
[[nodiscard]] Result<std::map<std::string, ByteSource>> read_metadata_options(
    const std::vector<std::string>& given);

}  // namespace etstream::cli
