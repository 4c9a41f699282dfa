// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/tensor_data_shards.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/packed_file.h"

namespace etstream {
namespace {

constexpr std::string_view kEnding = ".ptd";

/// A buffer, and the entries that share it, by key.
struct KeyGroup {
  std::uint32_t buffer = 0;
  std::vector<const TensorData::Entry*> entries;
};

/// Returns the buffers that have entries, sorted by their first keys.
Result<std::vector<KeyGroup>> sorted_groups(const TensorData& data) {
  std::vector<KeyGroup> all(data.buffers.size());
  for (const TensorData::Entry& entry : data.entries) {
    if (entry.buffer >= all.size()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "tensor data: key {}: expected a buffer below {}, found {}", quote(entry.key),
                        all.size(), entry.buffer);
    }
    all[entry.buffer].entries.push_back(&entry);
  }
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    all[i].buffer = i;
    std::ranges::sort(all[i].entries, {}, &TensorData::Entry::key);
  }
  std::erase_if(all, [](const KeyGroup& group) { return group.entries.empty(); });
  std::ranges::sort(all, {},
                    [](const KeyGroup& group) { return std::string_view(group.entries.front()->key); });
  return all;
}

/// Returns the tensor data of some groups: entries by key, and buffers in the order of the entries.
TensorData shard_of(const TensorData& data, std::span<const KeyGroup> groups) {
  TensorData out;
  out.segment_alignment = data.segment_alignment;
  out.unchecked = data.unchecked;
  for (const KeyGroup& group : groups) {
    for (const TensorData::Entry* const entry : group.entries) out.entries.push_back(*entry);
  }
  std::ranges::sort(out.entries, {}, &TensorData::Entry::key);
  std::map<std::uint32_t, std::uint32_t> numbers;  // here, by those there
  for (TensorData::Entry& entry : out.entries) {
    const auto [number, is_new] =
        numbers.try_emplace(entry.buffer, static_cast<std::uint32_t>(out.buffers.size()));
    if (is_new) out.buffers.push_back(data.buffers[entry.buffer]);
    entry.buffer = number->second;
  }
  return out;
}

}  // namespace

Result<std::vector<TensorData>> split(const TensorData& data, std::uint64_t most) {
  return without_exceptions([&]() -> Result<std::vector<TensorData>> {
    if (most == 0) {
      return make_error(ErrorCode::kInvalidArgument, "a shard of at most 0 bytes: expected at least 1");
    }
    ETSTREAM_ASSIGN(const std::vector<KeyGroup> groups, sorted_groups(data));
    std::vector<TensorData> out;
    auto begin = groups.begin();
    std::uint64_t size = 0;
    for (auto group = groups.begin(); group != groups.end(); ++group) {
      const std::uint64_t bytes = data.buffers[group->buffer].data.size();
      if (bytes > most) {
        return make_error(
            ErrorCode::kInvalidArgument,
            "{} has {}, and a shard at most {}: give shards at least as many, as no data is cut",
            quote(group->entries.front()->key), counted(bytes, "byte"), most);
      }
      if (bytes > most - size && group != begin) {
        out.push_back(shard_of(data, {begin, group}));
        begin = group;
        size = 0;
      }
      size += bytes;
    }
    if (begin != groups.end() || out.empty()) out.push_back(shard_of(data, {begin, groups.end()}));
    return out;
  });
}

std::string shard_path(const std::string& path, std::uint32_t number, std::uint32_t count) {
  std::string_view stem = unpacked_name(path);
  const std::string_view suffix = std::string_view(path).substr(stem.size());
  if (stem.ends_with(kEnding)) stem.remove_suffix(kEnding.size());
  return text("{}-{:05}-of-{:05}{}{}", stem, number, count, kEnding, suffix);
}

}  // namespace etstream
