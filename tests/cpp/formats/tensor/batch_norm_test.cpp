// SPDX-License-Identifier: BSD-3-Clause
//
// The bits were computed with numpy, in the order of torch's operations; each order gives others.
#include "formats/tensor/batch_norm.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "test_sources.h"

namespace etstream::batch_norm_test {
namespace {

using Bits = std::vector<std::uint32_t>;

BatchNorm norm() {
  return {.mean = {-0.25F, 0.0625F, 2.0F},
          .variance = {2.25F, 6.625F, 2.125F},
          .weight = {3.5625F, -3.75F, -2.875F},
          .bias = {2.5625F, 3.5625F, -2.0625F},
          .epsilon = 1e-5F};
}

Bits bits_of(const std::vector<float>& floats) {
  Bits out;
  for (const float each : floats) out.push_back(std::bit_cast<std::uint32_t>(each));
  return out;
}

TEST_CASE("weights before a batch norm get its factors, and the bias what is left, to the last bit") {
  CHECK(bits_of(folded_factors(norm())) == Bits{0x4017ffea, 0xbfba7c9b, 0xbffc7200});
  const std::vector<float> own = {-1.5625F, 2.9375F, -0.625F};
  CHECK(bits_of(folded_bias(norm(), own, false)) == Bits{0xbf0dff90, 0xbf204c80, 0x404755a2});
  CHECK(bits_of(folded_bias(norm(), own, true)) == Bits{0xbf0dff8c, 0xbf204c78, 0x404755a0});
  CHECK(bits_of(folded_bias(norm(), {}, false)) == Bits{0x4049fffa, 0x4069d3e5, 0x3ff0e400});
}

TEST_CASE("a batch norm as a convolution is computed in float64") {
  CHECK(bits_of(weights_of(norm())) == Bits{0x4017ffea, 0xbfba7c9b, 0xbffc7201});
  CHECK(bits_of(bias_of(norm())) == Bits{0x4049fffa, 0x4069d3e5, 0x3ff0e401});
}

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

TEST_CASE("what scaled channels no longer need is dropped from what they are made of") {
  const auto storage = std::make_shared<RecordingStorage>(64);
  scale_channels(ByteSource(storage), {2.0F}, 1).drop_pages(8, 16);
  CHECK((storage->forgotten() == RecordingStorage::Ranges{{8, 16}}));
}

}  // namespace
}  // namespace etstream::batch_norm_test
