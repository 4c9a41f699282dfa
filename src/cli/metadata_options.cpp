// SPDX-License-Identifier: BSD-3-Clause
#include "cli/metadata_options.h"

#include "base/text.h"
#include "base/try.h"
#include "etstream/program_metadata.h"

namespace etstream::cli {

void add_metadata_option(CLI::App& command, std::vector<std::string>& given) {
  command
      .add_option(
          "--metadata", given,
          "Have the program say this of its model, as named data metadata.KEY: an integer, a number, a "
          "list such as [1,2], text, or @FILE for the content of a file; may be given several times")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
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
