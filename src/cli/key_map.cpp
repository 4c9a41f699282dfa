// SPDX-License-Identifier: BSD-3-Clause
#include "cli/key_map.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/try.h"
#include "etstream/byte_source.h"

namespace etstream::cli {

Result<std::map<std::string, std::string>> read_key_map(const std::string& path) {
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20;
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(path));
  if (file.size() > kMost) {
    return make_error(ErrorCode::kTooLarge, path, ": expected at most ", kMost, " bytes, found ",
                      file.size());
  }
  std::string text_of(static_cast<std::size_t>(file.size()), '\0');
  ETSTREAM_TRY(file.read_at(0, std::as_writable_bytes(std::span(text_of))));
  const auto parsed = nlohmann::json::parse(text_of, nullptr, false);
  if (!parsed.is_object()) return make_error(ErrorCode::kInvalidArgument, path, ": expected a JSON object");
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : parsed.items()) {
    if (!value.is_string()) {
      return make_error(ErrorCode::kInvalidArgument, path, ": ", quote(key), ": expected a string, found ",
                        value.type_name());
    }
    out[key] = value.get<std::string>();
  }
  return out;
}

}  // namespace etstream::cli
