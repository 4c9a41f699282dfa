// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/tensor_data.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "test_errors.h"
#include "test_sources.h"

namespace etstream::tensor_data_shards_test {
namespace {

/// Returns the keys of each shard, by commas, and its number of buffers.
std::vector<std::string> described(const std::vector<TensorData>& shards) {
  std::vector<std::string> out;
  for (const TensorData& shard : shards) {
    std::string keys;
    for (const TensorData::Entry& entry : shard.entries) keys += (keys.empty() ? "" : ",") + entry.key;
    out.push_back(keys + ":" + std::to_string(shard.buffers.size()));
  }
  return out;
}

/// Buffers of 6, 4 and 2 bytes, and one that no entry has; "a" and "d" share the first.
TensorData four_keys() {
  TensorData out;
  out.segment_alignment = 64;
  for (const char* bytes : {"666666", "4444", "22", "none"}) out.buffers.push_back({source_of(bytes)});
  out.entries = {{"d", 0}, {"c", 1}, {"a", 0}, {"b", 2}};
  return out;
}

TEST_CASE("data goes by its keys into shards that have room") {
  using Shards = std::vector<std::string>;
  const auto split_by = [](std::uint64_t most) {
    const auto shards = split(four_keys(), most);
    REQUIRE_MESSAGE(shards, shards.error().message);
    for (const TensorData& shard : *shards) CHECK(shard.segment_alignment == 64);
    return described(*shards);
  };
  CHECK(split_by(6) == Shards{"a,d:1", "b,c:2"});
  CHECK(split_by(8) == Shards{"a,b,d:2", "c:1"});
  CHECK(split_by(11) == Shards{"a,b,d:2", "c:1"});
  CHECK(split_by(12) == Shards{"a,b,c,d:3"});
  CHECK(split_by(~std::uint64_t{0}) == Shards{"a,b,c,d:3"});
}

TEST_CASE("buffers of a shard are in the order in which its entries refer to them") {
  const auto shards = split(four_keys(), 12);
  REQUIRE(shards);
  const TensorData& all = shards->front();
  CHECK(text_of(all.buffers[0].data) == "666666");
  CHECK(text_of(all.buffers[1].data) == "22");
  CHECK(text_of(all.buffers[2].data) == "4444");
  CHECK(all.entries[3].buffer == 0);
}

TEST_CASE("of nothing there is one shard without anything") {
  const auto shards = split(TensorData(), 1);
  REQUIRE(shards);
  CHECK(described(*shards) == std::vector<std::string>{":0"});
}

TEST_CASE("what can't be split is refused") {
  CHECK(error_of(split(four_keys(), 5)) ==
        containing("kInvalidArgument: 'a' has 6 bytes, and a shard at most 5: "));
  CHECK(error_of(split(four_keys(), 0)) == containing("kInvalidArgument: "));
  TensorData wrong = four_keys();
  wrong.entries[0].buffer = 4;
  CHECK(error_of(split(wrong, 100)) ==
        "kInvalidArgument: tensor data: key 'd': expected a buffer below 4, found 4");
}

TEST_CASE("shards have a number and how many there are in their names") {
  CHECK(shard_path("out/w.ptd", 1, 3) == "out/w-00001-of-00003.ptd");
  CHECK(shard_path("w", 12, 123456) == "w-00012-of-123456.ptd");
}

}  // namespace
}  // namespace etstream::tensor_data_shards_test
