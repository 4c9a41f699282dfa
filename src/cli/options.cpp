// SPDX-License-Identifier: BSD-3-Clause
#include "cli/options.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "cli/output.h"
#include "cli/wrong_command_line.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/program_metadata.h"

namespace etstream::cli {
namespace {

/// Adds an option whose text `parse` reads into `out`.
template <class T>
void add_version(CLI::App& command, const std::string& name, const std::string& description,
                 std::optional<T>& out, Result<T> (*parse)(std::string_view)) {
  const CLI::callback_t set = [&out, name, parse](const CLI::results_t& given) {
    const Result<T> found = parse(given.front());
    if (!found) throw WrongValue(about(found.error(), name));
    out = *found;
    return true;
  };
  command.add_option(name, set, description)->type_name("VERSION");
}

}  // namespace

CLI::Validator no_empty_value(const std::string& type) {
  return {
      [type](const std::string& given) { return given.empty() ? text("expected {}, found ''", type) : ""; },
      ""};
}

CLI::Validator size_in_bytes(const std::string& name, SizeBounds bounds) {
  return {[name, bounds](std::string& given) -> std::string {
            const auto size = parse_size(given, bounds);
            if (!size) throw WrongValue(about(size.error(), name));
            given = std::to_string(*size);
            return {};
          },
          ""};
}

CLI::Validator whole_number() {
  return {[](std::string& given) -> std::string {
            const bool is_number = given.find_first_not_of("0123456789") == std::string::npos;
            return is_number ? "" : text("expected a whole number, found {}", quote(given));
          },
          ""};
}

CLI::Validator tolerance() {
  return {[](std::string& given) -> std::string {
            double number = 0;
            const char* const end = given.data() + given.size();
            const auto [read, error] = std::from_chars(given.data(), end, number);
            if (error == std::errc() && read == end && number >= 0) return "";
            return text("expected a number from 0 on, such as 1e-5, found {}", quote(given));
          },
          ""};
}

std::array<CLI::Option*, 2> add_tolerances(CLI::App& command, std::optional<double>& atol,
                                           std::optional<double>& rtol) {
  return {add_option(command, "--atol", "X", atol,
                     "Accept outputs that differ from the expected ones by at most X, integers too (default: "
                     "that of the dtype in torch.testing, 1e-5 for float32; integers 0)")
              ->check(tolerance()),
          add_option(command, "--rtol", "X", rtol,
                     "Accept floating-point outputs that differ by at most X times the expected value, in "
                     "addition to --atol (default: that of the dtype in torch.testing, 1.3e-6 for float32)")
              ->check(tolerance())};
}

CLI::Option* add_list(CLI::App& command, const std::string& name, const std::string& type,
                      std::vector<std::string>& values, const std::string& description) {
  return add_option(command, name, type, values, description + "; may be given several times")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* add_choice(CLI::App& command, const std::string& name, const std::vector<std::string>& choices,
                        std::string& value, const std::string& description) {
  const auto check = [choices](std::string& given) -> std::string {
    if (std::ranges::find(choices, given) != choices.end()) return "";
    return text("expected {}, found {}", CLI::detail::join(choices, " or "), quote(given));
  };
  return add_option(command, name, CLI::detail::join(choices, "|"), value, description)
      ->check(CLI::Validator(check, ""));
}

std::array<CLI::Option*, 2> add_limits(CLI::App& command, WriteOptions& options) {
  return {
      add_size(command, "--max-memory", options.max_memory,
               "Refuse a plan that needs more memory than this, such as 16M: exit with 1, and write nothing"),
      add_size(command, "--max-disk", options.max_disk,
               "Refuse a plan whose files have more bytes in all than this, such as 2G: exit with 1, and "
               "write nothing; the default is 4 times the input if names share data")};
}

CLI::Option* add_payload_alignment(CLI::App& command, std::uint32_t& alignment) {
  return add_alignment(command, "--align", alignment,
                       "Begin the payloads of the container at multiples of this size, a power of two, such "
                       "as a page's 16K, so that they can be mapped and cloned; the default is 1");
}

CLI::Option* add_names_option(CLI::App& command, std::vector<std::string>& files) {
  return add_list(command, "--names", "NAMES.json", files,
                  "Read the names that keys of named data stand for from this JSON object; the default is "
                  "MODEL.names.json beside MODEL.pte");
}

Result<KeyNames> read_names(const std::vector<std::string>& files) {
  KeyNames out;
  for (const std::string& path : files) {
    ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(path));
    ETSTREAM_ASSIGN(KeyNames names, read_key_names(file));
    out.merge(names);
  }
  return out;
}

void add_partial_option(CLI::App& command, bool& partial) {
  command.add_flag("--partial", partial,
                   "Take each file of weights by itself, even if it is one of several; for an index, take "
                   "the files that are there");
}

void add_write_options(CLI::App& command, WriteOptions& options) {
  add_limits(command, options);
  add_no_sync(command, options);
}

void add_no_sync(CLI::App& command, WriteOptions& options) {
  command.add_flag("--no-sync", options.no_sync, "Leave the written data in the page cache, as cp does");
}

void add_output_path(CLI::App& command, OutputOptions& options, const std::string& what,
                     const std::string& example) {
  add_option(command, "-o,--output", example, options.output, what + "; - is standard output");
}

void add_output_flags(CLI::App& command, OutputOptions& options) {
  command.add_flag("--dry-run", options.dry_run, "Show the plan of the file and write nothing");
  add_write_options(command, options);
  command.add_flag("--json", options.json, "Report as JSON on standard output");
}

void exclude_with(const CLI::App& command, const std::string& choice,
                  const std::vector<std::string>& options) {
  for (const std::string& name : options) {
    const CLI::Option* const option = command.get_option_no_throw(name);
    if (option != nullptr && option->count() != 0) throw CLI::ExcludesError(name, choice);
  }
}

void check_report(bool json, const std::vector<std::string>& outputs) {
  if (json && std::ranges::any_of(outputs, is_standard_output)) {
    throw CLI::ValidationError("--json and the output can't both go to standard output");
  }
}

void check_output(const CLI::App& command, const OutputOptions& options) {
  if (command.count("--output") == 0 && !options.dry_run) throw CLI::RequiredError("--output");
  check_report(options.json && !options.dry_run, {options.output});
}

void add_as_of(CLI::App& command, std::optional<ExecutorchRelease>& as_of) {
  add_version(command, "--as-of",
              "Write the same bytes as this release of ExecuTorch, from 1.0 to " + name_of(kLatestRelease),
              as_of, executorch_release);
}

void add_flatbuffers(CLI::App& command, std::optional<VtableSharing>& vtables) {
  add_version(command, "--flatbuffers",
              "Write the same bytes as ExecuTorch with this version of Python's flatbuffers", vtables,
              vtable_sharing);
}

void add_metadata_option(CLI::App& command, std::vector<std::string>& given) {
  add_list(
      command, "--metadata", "KEY=VALUE", given,
      "Store this fact about the model in the program, as named data metadata.KEY: an integer, a number, a "
      "list such as [1,2], text, or @FILE for the content of a file");
}

Result<std::map<std::string, ByteSource>> read_metadata_options(const std::vector<std::string>& given) {
  std::map<std::string, ByteSource> out;
  for (const std::string& each : given) {
    const auto equals = each.find('=');
    if (equals == std::string::npos || equals == 0) {
      return make_error(ErrorCode::kInvalidArgument, "--metadata: expected KEY=VALUE, found {}", quote(each));
    }
    const std::string key = each.substr(0, equals);
    const std::string value = each.substr(equals + 1);
    ByteSource bytes;
    if (value.starts_with('@')) {
      ETSTREAM_ASSIGN(bytes, ByteSource::file(value.substr(1)));
    } else {
      ETSTREAM_ASSIGN(const MetadataValue parsed, parse_metadata_value(value));
      bytes = encode(parsed);
    }
    if (out.try_emplace(key, std::move(bytes)).second) continue;
    return make_error(ErrorCode::kInvalidArgument, "--metadata: key {} comes twice", quote(key));
  }
  return out;
}

}  // namespace etstream::cli
