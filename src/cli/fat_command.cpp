// SPDX-License-Identifier: BSD-3-Clause
//
// etstream fat pack NAME=FILE... -o OUT.fat, fat extract FILE NAME -o OUT
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/plan_report.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/fat_container.h"
#include "etstream/fat_container_file.h"

namespace etstream::cli {
namespace {

struct FatPackArguments : OutputOptions {
  std::vector<std::string> payloads;
  std::uint32_t alignment = 1;
  bool no_dedup = false;
};

Result<void> fat_pack(const FatPackArguments& arguments) {
  FatContainer container{
      .payloads = {}, .alignment = arguments.alignment, .share_equal = !arguments.no_dedup};
  for (const std::string& each : arguments.payloads) {
    const auto equals = each.find('=');
    if (equals == std::string::npos) {
      return make_error(ErrorCode::kInvalidArgument, "expected NAME=FILE, found {}", quote(each));
    }
    ETSTREAM_ASSIGN(ByteSource data, ByteSource::file(each.substr(equals + 1)));
    container.payloads.push_back({each.substr(0, equals), std::move(data)});
  }
  ETSTREAM_ASSIGN(const FilePlan planned, plan(container));
  return show_or_write(planned, arguments, "payload", container.payloads.size());
}

struct FatExtractArguments : OutputOptions {
  std::string file;
  std::string name;
};

Result<void> fat_extract(const FatExtractArguments& arguments) {
  ETSTREAM_ASSIGN(ByteSource source, ByteSource::file(arguments.file));
  ETSTREAM_ASSIGN(const FatContainerFile container, FatContainerFile::open(std::move(source)));
  const FatPayload* const payload = container.find(arguments.name);
  if (payload == nullptr) {
    return error_in(ErrorCode::kNotFound, arguments.file, "there is no payload {}; there are {}",
                    quote(arguments.name), names_text(container.payloads(), &FatPayload::name));
  }
  return show_or_write(
      plan_copy(payload->data, "payload"), arguments,
      {{"output", arguments.output}, {"payload", payload->name}, {"size", payload->data.size()}},
      text("payload {}, {}", quote(payload->name), readable_size(payload->data.size())));
}

void add_fat_pack(CLI::App& fat, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<FatPackArguments>(
      fat, chosen, "pack", "Pack files as the payloads of a fat container", fat_pack, check_output);
  command
      .add_option("PAYLOAD", arguments.payloads,
                  "A payload's name, such as that of its backend, and its file; readers prefer payloads in "
                  "this order")
      ->type_name("NAME=FILE")
      ->required();
  add_output_path(command, arguments, "The container", "OUT.fat");
  add_payload_alignment(command, arguments.alignment);
  command.add_flag("--no-dedup", arguments.no_dedup,
                   "Store every payload, even if others have equal bytes; payloads are then read only once");
  add_common_options(command, arguments);
}

void add_fat_extract(CLI::App& fat, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<FatExtractArguments>(
      fat, chosen, "extract", "Take a payload out of a fat container", fat_extract, check_output);
  command.add_option("FILE", arguments.file, "A fat container")->required();
  command.add_option("NAME", arguments.name, "The payload's name")->required();
  add_output_path(command, arguments, "The payload", "OUT");
  add_common_options(command, arguments);
}

}  // namespace

void add_fat_command(CLI::App& app, ChosenCommand& chosen) {
  CLI::App* command = app.add_subcommand(
      "fat", "Pack and take apart fat containers: one payload for each backend, in one file");
  command->require_subcommand(1);
  add_fat_pack(*command, chosen);
  add_fat_extract(*command, chosen);
}

}  // namespace etstream::cli
