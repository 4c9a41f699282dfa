// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/key_names.h"

#include <cstdint>
#include <string_view>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/packed_file.h"
#include "flatbuffer/json/json_reader.h"
#include "formats/segments/file_kind.h"

namespace etstream {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;

void add_name(std::string_view name, std::string& out) {
  if (!out.empty()) out += ", ";
  out += name;
}

}  // namespace

Result<KeyNames> read_key_names(const ByteSource& json) {
  return without_exceptions([&]() -> Result<KeyNames> {
    if (json.size() > kMostBytes) {
      return error_in(ErrorCode::kTooLarge, json.name(), "expected at most {} bytes of names, found {}",
                      kMostBytes, json.size());
    }
    KeyNames out;
    auto read = read_json(json, ErrorCode::kInvalidArgument, [&](JsonReader& reader) {
      return reader.different_members([&](std::string_view key) -> Result<void> {
        std::string& names = out[std::string(key)];
        const auto take_name = [&]() -> Result<void> {
          ETSTREAM_ASSIGN(const JsonTape::Value name, reader.take(JsonReader::Kind::kString));
          add_name(name.string, names);
          return {};
        };
        if (reader.next().kind == JsonReader::Kind::kArray) return reader.elements(take_name);
        return take_name();
      });
    });
    ETSTREAM_TRY(unless_other(json, {"names as JSON", {}, JsonContent::kOther}, std::move(read)));
    return out;
  });
}

Result<KeyNames> read_key_names_beside(const std::string& given, const OpenFile& open_file) {
  const std::string path(unpacked_name(given));
  const std::size_t name = path.rfind('/') + 1;
  const std::size_t dot = path.rfind('.');
  const bool has_suffix = dot != std::string::npos && dot > name;
  const auto json = open_file(text("{}.names.json", has_suffix ? path.substr(0, dot) : path));
  if (json) return read_key_names(*json);
  if (json.error().code == ErrorCode::kNotFound) return KeyNames();
  return json.error();
}

}  // namespace etstream
