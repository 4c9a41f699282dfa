// SPDX-License-Identifier: BSD-3-Clause
#include "formats/checkpoint/checkpoint_index.h"

#include <string_view>
#include <utility>

#include "core/base/file_name.h"
#include "core/base/repeated.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/json/json_reader.h"

namespace etstream {
namespace {

using Kind = JsonReader::Kind;

/// Refuses the name of a shard that is not beside the index: an index must not make us read files elsewhere.
Result<void> check_file(std::string_view file) {
  if (is_file_name(file)) return {};
  return make_error(ErrorCode::kCorrupt, "expected the name of a file beside it in weight_map, found {}",
                    quote(file));
}

Result<void> read_map(JsonReader& json, CheckpointIndex& out) {
  const JsonTape::Value map = json.next();
  if (map.kind != Kind::kObject) return json.unexpected(json.take(), "an object as weight_map");
  return json.members([&](std::string_view tensor) -> Result<void> {
    const JsonTape::Value file = json.take();
    if (file.kind != Kind::kString) return json.unexpected(file, "the name of a file in weight_map");
    ETSTREAM_TRY(check_file(file.string));
    auto shard = out.files.find(file.string);
    if (shard == out.files.end()) shard = out.files.try_emplace(std::string(file.string)).first;
    shard->second.emplace_back(tensor);
    return {};
  });
}

/// Reads total_size. Some writers give it as a number with a point, and others omit it.
Result<void> read_metadata(JsonReader& json, CheckpointIndex& out) {
  if (json.next().kind != Kind::kObject) {
    json.take();
    return {};
  }
  return json.members([&](std::string_view key) -> Result<void> {
    constexpr double kMost = 9007199254740992;  // up to which a double has all integers
    const JsonTape::Value value = json.take();
    if (key != "total_size") return {};
    if (value.kind == Kind::kInteger && value.integer >= 0) {
      out.total_size = static_cast<std::uint64_t>(value.integer);
    } else if (value.kind == Kind::kDouble && value.number >= 0 && value.number <= kMost) {
      out.total_size = static_cast<std::uint64_t>(value.number);
    }
    return {};
  });
}

/// Refuses a tensor that comes twice, in one file or in two.
Result<void> check_names(const ByteSource& file, const CheckpointIndex& index) {
  std::vector<std::string_view> names;
  for (const auto& [shard, tensors] : index.files) names.insert(names.end(), tensors.begin(), tensors.end());
  const auto repeated = first_repeated(names);
  if (!repeated) return {};
  return error_in(ErrorCode::kCorrupt, file.name(), "tensor {} comes twice", quote(*repeated));
}

}  // namespace

Result<std::optional<CheckpointIndex>> read_checkpoint_index(const ByteSource& file) {
  CheckpointIndex out;
  bool has_map = false;
  ETSTREAM_TRY(read_json(file, ErrorCode::kCorrupt, [&](JsonReader& json) {
    return json.members([&](std::string_view key) -> Result<void> {
      if (key == "weight_map") {
        if (std::exchange(has_map, true)) return json.error("expected weight_map once, found a key");
        return read_map(json, out);
      }
      if (key == "metadata") return read_metadata(json, out);
      json.take();
      return {};
    });
  }));
  if (!has_map) return std::optional<CheckpointIndex>();
  ETSTREAM_TRY(check_names(file, out));
  return std::optional(std::move(out));
}

}  // namespace etstream
