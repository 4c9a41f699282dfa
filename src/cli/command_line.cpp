// SPDX-License-Identifier: BSD-3-Clause
#include "cli/command_line.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "cli/help.h"
#include "cli/output.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/checkpoint.h"
#include "etstream/packed_file.h"
#include "etstream/program.h"
#include "etstream/version.h"

namespace etstream::cli {
namespace {

/// Adds an option whose text `parse` reads into `out`.
template <class T>
void add_version(CLI::App& command, const std::string& name, const std::string& type,
                 const std::string& description, std::optional<T>& out,
                 Result<T> (*parse)(std::string_view)) {
  const CLI::callback_t set = [&out, name, parse](const CLI::results_t& given) {
    const Result<T> found = parse(given.front());
    if (!found) refuse(about(found.error(), name));
    out = *found;
    return true;
  };
  command.add_option(name, set, description)->type_name(type);
}

/// Puts an option into the section of common options, with the description that it has there.
Option common(Option option) {
  for (const auto& [name, description] : kCommonOptions) {
    if (name.starts_with(option.get()->get_name())) option.get()->description(std::string(description));
  }
  return Option(option.get()->group(kCommonGroup));
}

}  // namespace

std::unique_ptr<CLI::App> make_command_line(ChosenCommand& chosen) {
  auto app = std::make_unique<CLI::App>(
      "Writes ExecuTorch's files in one pass, with memory that does not grow with them.", "etstream");
  app->set_version_flag("-V,--version", "etstream " ETSTREAM_VERSION);
  app->require_subcommand(0, 1);
  app->formatter(std::make_shared<HelpPage>());  // of all subcommands too
  for (const auto add : {
         add_bundle_command, add_compare_command, add_compile_command, add_convert_command,
             add_decompile_command, add_diff_command, add_embed_command, add_explain_command,
             add_extract_command, add_fat_command, add_help_command, add_inspect_command, add_pack_command,
#if defined(ETSTREAM_HEAP_LIBRARY)
             add_profile_command,
#endif
             add_ptd_command, add_pte_command, add_ptn_command, add_reweight_command,
#if defined(ETSTREAM_HEAP_LIBRARY)
             add_run_command,
#endif
             add_share_command, add_unpack_command, add_verify_command
       }) {
    add(*app, chosen);
  }
  return app;
}

CLI::App& add_subcommand(CLI::App& app, const std::string& name, const std::string& description,
                         const std::function<void(const CLI::App&)>& parsed) {
  CLI::App* const command = app.add_subcommand(name, description);
  command->callback([=] { parsed(*command); });
  return *command;
}

void refuse(const Error& error) { throw WrongValue(error); }
void refuse(const std::string& words) { refuse(Error{ErrorCode::kInvalidArgument, words}); }
void refuse_without(const std::string& name) { throw CLI::RequiredError(name); }

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  return CLI::detail::join(words, std::string(between));
}

bool is_given(const CLI::App& command, const std::string& option) { return command.count(option) != 0; }

Option Option::required() const { return Option(option_->required()); }
Option Option::needs(Option other) const { return Option(option_->needs(other.option_)); }
Option Option::excludes(Option other) const { return Option(option_->excludes(other.option_)); }
Option Option::expected(int least, int most) const { return Option(option_->expected(least, most)); }
Option Option::one_each() const { return Option(option_->allow_extra_args(false)); }
Option Option::checked(const std::function<std::string(const std::string&)>& check) const {
  return Option(option_->check(CLI::Validator([check](std::string& given) { return check(given); }, "")));
}

Option Option::whole_number() const {
  return checked([](const std::string& given) -> std::string {
    const bool is_number = given.find_first_not_of("0123456789") == std::string::npos;
    return is_number ? "" : text("expected a whole number, found {}", quote(given));
  });
}

Option Option::size(SizeBounds bounds) const {
  const auto to_bytes = [name = option_->get_name(), bounds](std::string& given) -> std::string {
    const auto size = parse_size(given, bounds);
    if (!size) refuse(about(size.error(), name));
    given = std::to_string(*size);
    return {};
  };
  return Option(option_->transform(CLI::Validator(to_bytes, "")));
}

template <class T>
Option add_argument(CLI::App& command, const std::string& name, T& value, const std::string& description) {
  return Option(command.add_option(name, value, description));
}

template <class T>
Option add_option(CLI::App& command, const std::string& name, const std::string& type, T& value,
                  const std::string& description) {
  const Option option(command.add_option(name, value, description)->type_name(type));
  if (type == kName) return option;
  return option.checked([type](const std::string& given) -> std::string {
    return given.empty() ? text("expected {}, found ''", type) : "";
  });
}

template Option add_argument(CLI::App&, const std::string&, std::string&, const std::string&);
template Option add_argument(CLI::App&, const std::string&, std::vector<std::string>&, const std::string&);
template Option add_argument(CLI::App&, const std::string&, std::optional<std::string>&, const std::string&);
#define ETSTREAM_OPTION_OF(T) \
  template Option add_option(CLI::App&, const std::string&, const std::string&, T&, const std::string&)
ETSTREAM_OPTION_OF(std::string);
ETSTREAM_OPTION_OF(std::vector<std::string>);
ETSTREAM_OPTION_OF(std::uint32_t);
ETSTREAM_OPTION_OF(std::uint64_t);
ETSTREAM_OPTION_OF(std::optional<std::string>);
ETSTREAM_OPTION_OF(std::optional<std::uint32_t>);
ETSTREAM_OPTION_OF(std::optional<std::uint64_t>);
#undef ETSTREAM_OPTION_OF

Option add_flag(CLI::App& command, const std::string& name, bool& value, const std::string& description) {
  return Option(command.add_flag(name, value, description));
}

Option add_list(CLI::App& command, const std::string& name, const std::string& type,
                std::vector<std::string>& values, const std::string& description) {
  const Option option = add_option(command, name, type, values, description + "; can be repeated");
  option.get()->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return option;
}

Option add_choice(CLI::App& command, const std::string& name, const std::vector<std::string>& choices,
                  std::string& value, const std::string& description) {
  const auto check = [choices](const std::string& given) -> std::string {
    if (std::ranges::find(choices, given) != choices.end()) return "";
    return text("expected {}, found {}", joined(choices, " or "), quote(given));
  };
  return add_option(command, name, joined(choices, "|"), value, description).checked(check);
}

Option add_tolerance(CLI::App& command, const std::string& name, std::optional<double>& value,
                     const std::string& description) {
  const auto check = [](const std::string& given) -> std::string {
    double number = 0;
    const char* const end = given.data() + given.size();
    const auto [read, error] = std::from_chars(given.data(), end, number);
    if (error == std::errc() && read == end && number >= 0) return "";
    return text("expected a number from 0 on, such as 1e-5, found {}", quote(given));
  };
  return Option(command.add_option(name, value, description)->type_name("X")).checked(check);
}

Option option_of(CLI::App& command, const std::string& name) { return Option(command.get_option(name)); }

void add_footer(CLI::App& command, const std::string& words) { command.footer(words); }

std::array<Option, 2> add_tolerances(CLI::App& command, std::optional<double>& atol,
                                     std::optional<double>& rtol) {
  return {
      add_tolerance(command, "--atol", atol,
                    "Accept outputs that differ by at most X, integers too (default: that of the dtype in "
                    "torch.testing, 1e-5 for float32; integers 0)"),
      add_tolerance(command, "--rtol", rtol,
                    "Accept a further difference of X times the expected value, of floating-point outputs "
                    "(default: that of the dtype in torch.testing, 1.3e-6 for float32)")};
}

std::array<Option, 2> add_limits(CLI::App& command, CommonOptions& options) {
  return {common(add_size(command, "--max-memory", options.max_memory, "")),
          common(add_size(command, "--max-disk", options.max_disk, ""))};
}

Option add_payload_alignment(CLI::App& command, std::uint32_t& alignment) {
  return add_alignment(
      command, "--align", alignment,
      "Begin payloads in the container at multiples of this size, such as 16K, so that they can "
      "be mapped; the default is 1");
}

Option add_names_option(CLI::App& command, std::vector<std::string>& files) {
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

void add_base_option(CLI::App& command) {
  static std::vector<std::string> paths;  // of the one subcommand that runs
  const Option option = add_list(command, "--base", "OLD", paths,
                                 "Read an update with OLD, the file or the checkpoint that it was made from");
  option.get()->each([](const std::string& /*path*/) {
    set_default_base([](std::span<const std::byte> recipe, bool checks_all) -> Result<ByteSource> {
      ETSTREAM_ASSIGN(const UpdateBase base, UpdateBase::open(paths));
      return base.opener()(recipe, checks_all);
    });
  });
}

void add_partial_option(CLI::App& command, bool& partial) {
  add_flag(command, "--partial", partial,
           "Take a file of a set of weights without the others; of an index, those that are there");
}

void add_common_options(CLI::App& command, CommonOptions& options) {
  common(add_flag(command, "--dry-run", options.dry_run, ""));
  add_limits(command, options);
  add_no_sync(command, options);
  add_json(command, options.json);
}

void add_no_sync(CLI::App& command, CommonOptions& options) {
  common(add_flag(command, "--no-sync", options.no_sync, ""));
}

void add_json(CLI::App& command, bool& json) { common(add_flag(command, "--json", json, "")); }

void add_output_path(CLI::App& command, OutputOptions& options, const std::string& what,
                     const std::string& example) {
  add_option(command, "-o,--output", example, options.output, what + "; - is standard output");
}

void exclude_with(const CLI::App& command, const std::string& choice,
                  const std::vector<std::string>& options) {
  for (const std::string& name : options) {
    const CLI::Option* const option = command.get_option_no_throw(name);
    if (option != nullptr && option->count() != 0) refuse(text("{} excludes {}", name, choice));
  }
}

void check_report(bool json, const std::vector<std::string>& outputs) {
  if (json && std::ranges::any_of(outputs, is_standard_output)) {
    refuse("--json and the output can't both go to standard output");
  }
}

void check_output(const CLI::App& command, const OutputOptions& options) {
  if (!is_given(command, "--output") && !options.dry_run) refuse_without("--output");
  check_report(options.json && !options.dry_run, {options.output});
}

void add_as_of(CLI::App& command, std::optional<ExecutorchRelease>& as_of) {
  std::vector<std::string> names;
  for (int each = 0; each <= static_cast<int>(kLatestRelease); ++each) {
    names.push_back(name_of(static_cast<ExecutorchRelease>(each)));
  }
  add_version(command, "--as-of", joined(names, "|"), "Write the bytes of this release of ExecuTorch", as_of,
              executorch_release);
}

void add_flatbuffers(CLI::App& command, std::optional<VtableSharing>& vtables) {
  add_version(command, "--flatbuffers", "VERSION", "Write the bytes of this version of Python's flatbuffers",
              vtables, vtable_sharing);
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
