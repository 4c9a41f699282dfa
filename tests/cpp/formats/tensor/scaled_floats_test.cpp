// SPDX-License-Identifier: BSD-3-Clause
#include "formats/tensor/scaled_floats.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "test_sources.h"

namespace etstream::scaled_floats_test {
namespace {

TEST_CASE("each channel is multiplied by its factor, whichever part is read") {
  std::vector<float> floats;
  for (int i = 0; i < 24; ++i) floats.push_back(static_cast<float>(i));
  const auto bytes = std::as_bytes(std::span(floats));
  const ByteSource scaled =
      scale_channels(ByteSource::owned({bytes.begin(), bytes.end()}), {1.0F, 10.0F, -1.0F}, 4);
  std::vector<float> expected;
  for (int i = 0; i < 24; ++i) {
    const float factors[] = {1.0F, 10.0F, -1.0F};
    expected.push_back(static_cast<float>(i) * factors[i / 4 % 3]);
  }
  const std::string whole = text_of(scaled);
  CHECK((whole == text_of(std::as_bytes(std::span(expected)))));
  for (std::size_t offset = 0; offset < whole.size(); ++offset) {
    for (std::size_t size = 1; offset + size <= whole.size(); ++size) {
      std::string part(size, '\0');
      REQUIRE(scaled.read_at(offset, std::as_writable_bytes(std::span(part))));
      REQUIRE((part == whole.substr(offset, size)));
    }
  }
}

TEST_CASE("more elements than are read at once have the factors of their channels") {
  constexpr std::size_t kCount = 40000;
  const std::vector<float> ones(kCount, 1.0F);
  const auto bytes = std::as_bytes(std::span(ones));
  const ByteSource scaled = scale_channels(ByteSource::owned({bytes.begin(), bytes.end()}), {2.0F, 3.0F}, 7);
  std::vector<float> found(kCount);
  REQUIRE(scaled.read_at(0, std::as_writable_bytes(std::span(found))));
  bool are_right = true;
  for (std::size_t i = 0; i < kCount; ++i)
    are_right = are_right && found[i] == (i / 7 % 2 == 0 ? 2.0F : 3.0F);
  CHECK(are_right);
}

TEST_CASE("each block of a matrix is multiplied by its factor, whichever part is read") {
  constexpr std::size_t kCount = 60000;  // more than is read at once
  const std::vector<float> ones(kCount, 1.0F);
  std::vector<float> factors(kCount);
  for (std::size_t i = 0; i < kCount; ++i) factors[i] = static_cast<float>(i);
  const auto source_of_floats = [](std::span<const float> floats) {
    const auto bytes = std::as_bytes(floats);
    return ByteSource::owned({bytes.begin(), bytes.end()});
  };
  for (const MatrixBlocks& blocks : std::vector<MatrixBlocks>{
           {40, 3, 5}, {40, 1500, 40}, {1, 1, 1}, {kCount, 1, 1}, {kCount, 1, 6}, {30000, 1, 1}, {6, 2, 3}}) {
    const std::uint64_t across = blocks.columns / blocks.block_columns;
    const std::uint64_t down = kCount / blocks.columns / blocks.block_rows;
    const std::span own = std::span(factors).first(static_cast<std::size_t>(across * down));
    const ByteSource scaled = scale_blocks(source_of_floats(ones), source_of_floats(own), blocks);
    std::vector<float> expected(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::uint64_t row = i / blocks.columns / blocks.block_rows;
      expected[i] =
          factors[static_cast<std::size_t>(row * across + i % blocks.columns / blocks.block_columns)];
    }
    const auto whole = std::as_bytes(std::span(expected));
    for (const std::size_t offset : std::vector<std::size_t>{0, 3, 40001, 120002}) {
      CAPTURE(blocks.columns);
      CAPTURE(offset);
      std::vector<std::byte> part(whole.size() - offset - offset / 2);
      REQUIRE(scaled.read_at(offset, part));
      CHECK(std::ranges::equal(part, whole.subspan(offset, part.size())));
    }
  }
}

TEST_CASE("what scaled channels no longer need is dropped from what they are made of") {
  const auto storage = std::make_shared<RecordingStorage>(64);
  scale_channels(ByteSource(storage), {2.0F}, 1).drop_pages(8, 16);
  CHECK((storage->forgotten() == RecordingStorage::Ranges{{8, 16}}));
}

}  // namespace
}  // namespace etstream::scaled_floats_test
