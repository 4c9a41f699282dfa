// SPDX-License-Identifier: BSD-3-Clause
#include "weights/sharded_safetensors.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "flatbuffer/json_stream.h"
#include "weights/safetensors.h"

namespace etstream {
namespace {

using Kind = JsonEvent::Kind;

/// The names of tensors, by the file they are in.
using Shards = std::map<std::string, std::vector<std::string>, std::less<>>;

class IndexHandler final : public JsonHandler {
 public:
  explicit IndexHandler(Shards& shards) : shards_(shards) {}

  Result<void> on(const JsonEvent& event) override {
    if (depth_ == 0 && event.kind != Kind::kBeginObject) return unexpected(event, "an object");
    if (depth_ == 1 && event.kind == Kind::kKey) {
      next_is_map_ = event.string == "weight_map";
      if (next_is_map_ && std::exchange(seen_map_, true)) return unexpected(event, "weight_map once");
    } else if (depth_ == 1 && next_is_map_) {
      if (event.kind != Kind::kBeginObject) return unexpected(event, "an object as weight_map");
      in_map_ = true;
      next_is_map_ = false;
    } else if (in_map_ && depth_ == 2) {
      ETSTREAM_TRY(on_map(event));
    }
    if (event.kind == Kind::kBeginObject || event.kind == Kind::kBeginArray) ++depth_;
    if (event.kind == Kind::kEndObject || event.kind == Kind::kEndArray) --depth_;
    if (depth_ == 1 && event.kind == Kind::kEndObject) in_map_ = false;
    return {};
  }

  [[nodiscard]] bool seen_map() const noexcept { return seen_map_; }

 private:
  Result<void> on_map(const JsonEvent& event) {
    if (event.kind == JsonEvent::Kind::kKey) {
      name_ = event.string;
    } else if (event.kind == JsonEvent::Kind::kString) {
      ETSTREAM_TRY(check_file(event.string));
      auto shard = shards_.find(event.string);
      if (shard == shards_.end()) shard = shards_.try_emplace(std::string(event.string)).first;
      shard->second.push_back(std::move(name_));
    } else if (event.kind != JsonEvent::Kind::kEndObject) {
      return unexpected(event, "the name of a file in weight_map");
    }
    return {};
  }

  /// A shard lies beside the index; who wrote that must not choose what is read elsewhere.
  static Result<void> check_file(std::string_view file) {
    if (!file.empty() && file != "." && file != ".." &&
        file.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos) {
      return {};
    }
    return make_error(ErrorCode::kCorrupt, "expected the name of a file beside it in weight_map, found ",
                      quote(file));
  }

  static Error unexpected(const JsonEvent& event, std::string_view expected) {
    return make_error(ErrorCode::kCorrupt, "expected ", expected, ", found ", name_of(event.kind));
  }

  Shards& shards_;
  int depth_ = 0;
  bool next_is_map_ = false;
  bool seen_map_ = false;
  bool in_map_ = false;
  std::string name_;
};

/// Those of a shard's tensors that the index says are in it, which are all there.
Result<void> add_shard(const ByteSource& index, const std::string& path, std::vector<std::string>& names,
                       const OpenFile& open_file, Checkpoint& out) {
  std::sort(names.begin(), names.end());
  const auto repeated = std::adjacent_find(names.begin(), names.end());
  if (repeated != names.end()) {
    return make_error(ErrorCode::kCorrupt, index.name(), ": tensor ", quote(*repeated), " comes twice");
  }
  ETSTREAM_ASSIGN(const ByteSource file, open_file(path));
  ETSTREAM_ASSIGN(auto tensors, open_safetensors(file));
  std::vector<bool> found(names.size());
  std::size_t count = 0;
  for (CheckpointTensor& tensor : tensors) {
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
  return make_error(ErrorCode::kCorrupt, index.name(), ": expected tensor ",
                    quote(names[static_cast<std::size_t>(missing)]), " in ", path,
                    ", which has none of that name");
}

}  // namespace

Result<Checkpoint> open_sharded_safetensors(const ByteSource& index, const std::string& folder,
                                            const OpenFile& open_file) {
  Shards shards;
  IndexHandler handler(shards);
  ETSTREAM_TRY(parse_json(index, handler));
  if (!handler.seen_map()) {
    return make_error(ErrorCode::kCorrupt, index.name(),
                      ": expected the index of a safetensors checkpoint, an object with weight_map");
  }
  Checkpoint out;
  for (auto& [file, names] : shards) {
    ETSTREAM_TRY(add_shard(index, folder + file, names, open_file, out));
  }
  return out;
}

}  // namespace etstream
