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

/// Puts an option into the section of common options, with the description that it has there.
CLI::Option* common(CLI::Option* option) {
  for (const auto& [name, description] : kCommonOptions) {
    if (name.starts_with(option->get_name())) option->description(std::string(description));
  }
  return option->group(kCommonGroup);
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
                     "Accept outputs that differ by at most X, integers too (default: that of the dtype in "
                     "torch.testing, 1e-5 for float32; integers 0)")
              ->check(tolerance()),
          add_option(command, "--rtol", "X", rtol,
                     "Accept a further difference of X times the expected value, of floating-point outputs "
                     "(default: that of the dtype in torch.testing, 1.3e-6 for float32)")
              ->check(tolerance())};
}

CLI::Option* add_list(CLI::App& command, const std::string& name, const std::string& type,
                      std::vector<std::string>& values, const std::string& description) {
  return add_option(command, name, type, values, description + "; can be repeated")
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

std::array<CLI::Option*, 2> add_limits(CLI::App& command, CommonOptions& options) {
  return {common(add_size(command, "--max-memory", options.max_memory, "")),
          common(add_size(command, "--max-disk", options.max_disk, ""))};
}

CLI::Option* add_payload_alignment(CLI::App& command, std::uint32_t& alignment) {
  return add_alignment(
      command, "--align", alignment,
      "Begin payloads in the container at multiples of this size, such as 16K, so that they can "
      "be mapped; the default is 1");
}

CLI::Option* add_names_option(CLI::App& command, std::vector<std::string>& files) {
  return add_list(command, "--names", "NAMES.json", files,
                  "Read what keys of named data stand for from this JSON object; the default is "
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
                   "Take a file of a set of weights without the others; of an index, those that are there");
}

void add_common_options(CLI::App& command, CommonOptions& options) {
  common(command.add_flag("--dry-run", options.dry_run));
  add_limits(command, options);
  add_no_sync(command, options);
  add_json(command, options.json);
}

void add_no_sync(CLI::App& command, CommonOptions& options) {
  common(command.add_flag("--no-sync", options.no_sync));
}

void add_json(CLI::App& command, bool& json) { common(command.add_flag("--json", json)); }

void add_output_path(CLI::App& command, OutputOptions& options, const std::string& what,
                     const std::string& example) {
  add_option(command, "-o,--output", example, options.output, what + "; - is standard output");
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
              "Write the bytes of this release of ExecuTorch, 1.0 to " + name_of(kLatestRelease), as_of,
              executorch_release);
}

void add_flatbuffers(CLI::App& command, std::optional<VtableSharing>& vtables) {
  add_version(command, "--flatbuffers", "Write the bytes of this version of Python's flatbuffers", vtables,
              vtable_sharing);
}

void add_metadata_option(CLI::App& command, std::vector<std::string>& given) {
  add_list(command, "--metadata", "KEY=VALUE", given,
           "Store a fact about the model in the program: a number, a list such as [1,2], text, or @FILE");
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
