// SPDX-License-Identifier: BSD-3-Clause
#include "weights/sharded_safetensors.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "flatbuffer/json_reader.h"
#include "weights/safetensors.h"

namespace etstream {
namespace {

using Kind = JsonReader::Kind;

/// The names of tensors, by the file they are in.
using Shards = std::map<std::string, std::vector<std::string>, std::less<>>;

/// A shard lies beside the index; who wrote that must not choose what is read elsewhere.
Result<void> check_file(std::string_view file) {
  if (!file.empty() && file != "." && file != ".." &&
      file.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos) {
    return {};
  }
  return make_error(ErrorCode::kCorrupt, "expected the name of a file beside it in weight_map, found {}",
                    quote(file));
}

Result<void> read_map(JsonReader& json, Shards& shards) {
  const JsonTape::Value map = json.next();
  if (map.kind != Kind::kObject) return json.unexpected(json.take(), "an object as weight_map");
  return json.members([&](std::string_view tensor) -> Result<void> {
    const JsonTape::Value file = json.take();
    if (file.kind != Kind::kString) return json.unexpected(file, "the name of a file in weight_map");
    ETSTREAM_TRY(check_file(file.string));
    auto shard = shards.find(file.string);
    if (shard == shards.end()) shard = shards.try_emplace(std::string(file.string)).first;
    shard->second.emplace_back(tensor);
    return {};
  });
}

/// None for an index without a map.
Result<std::optional<Shards>> read_index(const ByteSource& index) {
  std::optional<Shards> shards;
  ETSTREAM_TRY(read_json(index, ErrorCode::kCorrupt, [&](JsonReader& json) {
    return json.members([&](std::string_view key) -> Result<void> {
      if (key == "weight_map" && shards) return json.error("expected weight_map once, found a key");
      if (key == "weight_map") return read_map(json, shards.emplace());
      json.take();
      return {};
    });
  }));
  return shards;
}

/// Those of a shard's tensors that the index says are in it, which are all there.
Result<void> add_shard(const ByteSource& index, const std::string& path, std::vector<std::string>& names,
                       const OpenFile& open_file, Checkpoint& out) {
  std::sort(names.begin(), names.end());
  const auto repeated = std::adjacent_find(names.begin(), names.end());
  if (repeated != names.end()) {
    return make_error(ErrorCode::kCorrupt, "{}: tensor {} comes twice", index.name(), quote(*repeated));
  }
  ETSTREAM_ASSIGN(const ByteSource file, open_file(path));
  ETSTREAM_ASSIGN(SafetensorsFile shard, open_safetensors(file));
  std::vector<bool> found(names.size());
  std::size_t count = 0;
  for (CheckpointTensor& tensor : shard.tensors) {
    const auto name = std::lower_bound(names.begin(), names.end(), tensor.name);
    if (name == names.end() || *name != tensor.name) continue;
    found[static_cast<std::size_t>(name - names.begin())] = true;
    ++count;
    out.tensors.push_back(std::move(tensor));
  }
  if (count == names.size()) {
    out.files.push_back(path);
    return {};
  }
  const auto missing = std::find(found.begin(), found.end(), false) - found.begin();
  return make_error(ErrorCode::kCorrupt, "{}: expected tensor {} in {}, which has none of that name",
                    index.name(), quote(names[static_cast<std::size_t>(missing)]), path);
}

}  // namespace

Result<Checkpoint> open_sharded_safetensors(const ByteSource& index, const std::string& folder,
                                            const OpenFile& open_file) {
  ETSTREAM_ASSIGN(auto shards, read_index(index));
  if (!shards) {
    return make_error(ErrorCode::kCorrupt,
                      "{}: expected the index of a safetensors checkpoint, an object with weight_map",
                      index.name());
  }
  Checkpoint out;
  for (auto& [file, names] : *shards) {
    ETSTREAM_TRY(add_shard(index, folder + file, names, open_file, out));
  }
  return out;
}

}  // namespace etstream
