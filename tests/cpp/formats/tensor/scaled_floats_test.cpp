// SPDX-License-Identifier: BSD-3-Clause
//
// The integers and scales were worked out by hand, or with numpy as torchao's formulas are.
#include "formats/tensor/scaled_floats.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "test_errors.h"
#include "test_sources.h"

namespace etstream::scaled_floats_test {
namespace {

using Floats = std::vector<float>;

ByteSource source_of_floats(std::span<const float> floats) {
  const auto bytes = std::as_bytes(floats);
  return ByteSource::owned({bytes.begin(), bytes.end()});
}

/// Checks that parts of `source` are those of the whole, whichever are read.
void check_parts(const ByteSource& source, std::size_t step) {
  const std::string whole = text_of(source);
  for (std::size_t offset = 0; offset < whole.size(); offset += step) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7}, step,
                                   step + 1, whole.size() - offset}) {
      if (offset + size > whole.size()) continue;
      CAPTURE(offset);
      CAPTURE(size);
      std::string part(size, '\0');
      REQUIRE(source.read_at(offset, std::as_writable_bytes(std::span(part))));
      REQUIRE((part == whole.substr(offset, size)));
    }
  }
}

TEST_CASE("each channel is multiplied by its factor, whichever part is read") {
  std::vector<float> floats;
  for (int i = 0; i < 24; ++i) floats.push_back(static_cast<float>(i));
  const ByteSource scaled = scale_channels(source_of_floats(floats), {1.0F, 10.0F, -1.0F}, 4);
  std::vector<float> expected;
  for (int i = 0; i < 24; ++i) {
    const float factors[] = {1.0F, 10.0F, -1.0F};
    expected.push_back(static_cast<float>(i) * factors[i / 4 % 3]);
  }
  CHECK((text_of(scaled) == text_of(std::as_bytes(std::span(expected)))));
  check_parts(scaled, 1);
}

TEST_CASE("more elements than are read at once have the factors of their channels") {
  std::vector<float> expected;
  for (int i = 0; i < 40000; ++i) expected.push_back(i / 7 % 2 == 0 ? 2.0F : 3.0F);
  const Floats ones(expected.size(), 1.0F);
  CHECK((text_of(scale_channels(source_of_floats(ones), {2.0F, 3.0F}, 7)) ==
         text_of(std::as_bytes(std::span(expected)))));
}

TEST_CASE("each block of a matrix is multiplied by its factor, whichever part is read") {
  constexpr std::size_t kCount = 60000;  // more than is read at once
  const std::vector<float> ones(kCount, 1.0F);
  std::vector<float> factors(kCount);
  for (std::size_t i = 0; i < kCount; ++i) factors[i] = static_cast<float>(i);
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

constexpr float kSmallest = std::numeric_limits<float>::min();

using Integers = std::vector<int>;

std::string bytes_after(const Result<ByteSource>& made) {
  REQUIRE_MESSAGE(made, made.error().message);
  return text_of(*made);
}

Integers integers_of(const Floats& floats, const Quantization& how) {
  Integers out;
  for (const char c : bytes_after(quantize(source_of_floats(floats), how, "w"))) {
    out.push_back(static_cast<signed char>(c));
  }
  return out;
}

Floats scales(const Floats& floats, const Quantization& how) {
  const std::string bytes = bytes_after(scales_of(source_of_floats(floats), how, "w"));
  Floats out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

/// Returns numbers of many magnitudes, among them groups of zeros.
Floats numbers(std::size_t count) {
  const std::string bytes = patterned(count);
  Floats out;
  for (std::size_t i = 0; i < count; ++i) {
    const int byte = static_cast<signed char>(bytes[i]);
    out.push_back(i / 16 % 7 == 3 ? 0.0F : std::ldexp(static_cast<float>(byte), static_cast<int>(i % 5) - 6));
  }
  return out;
}

TEST_CASE("a scale is the largest magnitude over half of the range, and ties go to the even integer") {
  const Floats floats = {127.5F, -127.5F, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F};
  const Quantization how = {8, -128, 127, kSmallest};
  CHECK(scales(floats, how) == Floats(1, 1.0F));
  CHECK(integers_of(floats, how) == Integers{127, -128, 0, 2, 2, 0, -2, -2});
  Floats negative = floats;
  for (float& each : negative) each = -2 * each;
  CHECK(scales(negative, how) == Floats(1, 2.0F));
  CHECK(integers_of(negative, how) == Integers{-128, 127, 0, -2, -2, 0, 2, 2});
}

TEST_CASE("each group has a scale of its own") {
  const Floats floats = {0.126F, -0.132F, 0.64F, 0.105F, -0.536F, 0.362F, 1.304F, 0.947F};
  Quantization how = {4, -128, 127, kSmallest};
  CHECK(integers_of(floats, how) == Integers{25, -26, 127, 21, -52, 35, 127, 93});
  CHECK(scales(floats, how) == Floats{std::bit_cast<float>(0x3ba47b86), std::bit_cast<float>(0x3c27910a)});
  how.group = 2;
  CHECK(integers_of(floats, how) == Integers{122, -127, 127, 21, -128, 86, 127, 93});
  CHECK(scales(floats, how) == Floats{std::bit_cast<float>(0x3a87b2b5), std::bit_cast<float>(0x3ba47b86),
                                      std::bit_cast<float>(0x3b89c10d), std::bit_cast<float>(0x3c27910a)});
  // The observers of pt2e leave the lowest integer out.
  how = {4, -127, 127, 1.0F / 4096};
  CHECK(integers_of(floats, how) == Integers{25, -26, 127, 21, -52, 35, 127, 92});
  CHECK(scales(floats, how)[0] == 0.64F / 127.0F);
}

TEST_CASE("scales are no less than the least, which zeros have") {
  const Floats zeros = {0.0F, -0.0F, 0.0F, 0.0F};
  CHECK(scales(zeros, {4, -128, 127, kSmallest}) == Floats(1, kSmallest));
  CHECK(integers_of(zeros, {4, -128, 127, kSmallest}) == Integers(4, 0));
  const Floats tiny = {0.01F, -0.02F, 0.03F, 0.0F};
  CHECK(scales(tiny, {4, -127, 127, 1.0F / 4096}) == Floats(1, 1.0F / 4096));
  CHECK(integers_of(tiny, {4, -127, 127, 1.0F / 4096}) == Integers{41, -82, 123, 0});
  constexpr float kMost = std::numeric_limits<float>::max();
  CHECK(scales({kMost, 1.0F}, {2, -128, 127, kSmallest}) == Floats(1, kMost / 127.5F));
  CHECK(scales({std::bit_cast<float>(0x3F800001)}, {1, -2, 0, kSmallest}) ==
        Floats(1, std::bit_cast<float>(0x3F800001)));
  const float denormal = std::numeric_limits<float>::denorm_min();
  CHECK(integers_of({denormal, -denormal}, {2, -128, 127, kSmallest}) == Integers{0, 0});
}

TEST_CASE("integers of four bits are two a byte, less the lowest, in either order") {
  const Floats floats = {7.5F, -7.5F, 0.5F, 1.0F, 2.5F, -3.0F, 4.0F, -4.6F};
  Quantization how = {8, -8, 7, kSmallest};
  CHECK(bytes_after(quantize(source_of_floats(floats), how, "w")) == "\x0F\x98\x5A\x3C");
  how.high_is_first = true;
  CHECK(bytes_after(quantize(source_of_floats(floats), how, "w")) == "\xF0\x89\xA5\xC3");
  CHECK(scales(floats, how) == Floats(1, 1.0F));
}

TEST_CASE("bfloat16 rounds the scale, its inverse and each product") {
  const Floats floats = {0.345703125F, 0.8203125F,   0.330078125F, -1.3046875F,
                         0.90625F,     0.447265625F, -0.53515625F, 0.58203125F};
  Quantization how = {8, -128, 127, kSmallest};
  CHECK(integers_of(floats, how) == Integers{34, 80, 32, -128, 89, 44, -52, 57});
  CHECK(scales(floats, how) == Floats(1, 0.010232843458652496F));
  how.in_bfloat16 = true;
  CHECK(integers_of(floats, how) == Integers{34, 80, 32, -127, 88, 44, -52, 57});
  CHECK(scales(floats, how) == Floats(1, 0.01025390625F));
}

TEST_CASE("any part of the result is that of the whole") {
  for (const std::uint64_t group : {2U, 16U, 30U, 480U}) {
    CAPTURE(group);
    const ByteSource floats = source_of_floats(numbers(960));
    for (const Quantization& how :
         {Quantization{group, -128, 127, kSmallest}, Quantization{group, -8, 7, kSmallest}}) {
      check_parts(quantize(floats, how, "w").value(), 13);
      check_parts(scales_of(floats, how, "w").value(), 5);
    }
  }
}

TEST_CASE("groups that are larger than what is read at once are as small ones are") {
  constexpr std::uint64_t kGroup = 70000;
  Floats floats = numbers(3 * kGroup);
  floats[kGroup - 1] =
      2550.0F;  // at the end of a group, and at the beginning of one, so that all of it counts
  floats[kGroup] = -5100.0F;
  for (std::size_t i = 0; i < kGroup; ++i) floats[2 * kGroup + i] /= 1024;
  const Quantization how = {kGroup, -128, 127, kSmallest};
  const Floats found = scales(floats, how);
  REQUIRE(found.size() == 3);
  CHECK(found[0] == 20.0F);
  const Integers integers = integers_of(floats, how);
  for (std::size_t i = 0; i < 3; ++i) {
    const Floats own(floats.begin() + static_cast<std::ptrdiff_t>(i * kGroup),
                     floats.begin() + static_cast<std::ptrdiff_t>((i + 1) * kGroup));
    const float largest = std::abs(*std::ranges::max_element(own, {}, [](float x) { return std::abs(x); }));
    CHECK(found[i] == largest / 127.5F);
    bool are_same = true;
    for (std::size_t at = 0; at < kGroup; ++at) {
      const float product = own[at] * (1.0F / found[i]);
      const float within = std::min(std::max(std::nearbyint(product), -128.0F), 127.0F);
      are_same = are_same && integers[i * kGroup + at] == static_cast<int>(within);
    }
    CHECK(are_same);
  }
  check_parts(quantize(source_of_floats(floats), how, "w").value(), 32749);
  check_parts(scales_of(source_of_floats(floats), how, "w").value(), 1);
  // Many small groups are more than is read at once, too.
  const ByteSource halves = quantize(source_of_floats(floats), {1000, -8, 7, kSmallest}, "w").value();
  check_parts(halves, 16381);
  check_parts(scales_of(source_of_floats(floats), {6, -8, 7, kSmallest}, "w").value(), 32749);
}

TEST_CASE("infinities and NaN are refused, with their group") {
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    Floats floats(12, 1.0F);
    floats[6] = bad;
    const Quantization how = {4, -128, 127, kSmallest};
    for (const auto& made :
         {quantize(source_of_floats(floats), how, "w"), scales_of(source_of_floats(floats), how, "w")}) {
      REQUIRE(made);
      std::string out(made->size(), '\0');
      const std::string expected =
          "kInvalidArgument: memory: tensor 'w': elements 4 to 7 are to be quantized: expected numbers, "
          "found "
          "an infinity or a NaN";
      CHECK(error_of(made->read_at(0, std::as_writable_bytes(std::span(out)))) == exactly(expected));
      CHECK(made->read_at(0, std::as_writable_bytes(std::span(out)).first(made->size() / 3)));
    }
    // Large groups are read beforehand.
    floats.resize(65536, 1.0F);
    CHECK(quantize(source_of_floats(floats), {65536, -128, 127, kSmallest}, "w"));
    floats.resize(140000, 1.0F);
    CHECK(error_of(quantize(source_of_floats(floats), {70000, -128, 127, kSmallest}, "w")) ==
          containing("tensor 'w': elements 0 to 69999 are"));
  }
}

TEST_CASE("data that does not end with a group is refused, and so is an odd group in half bytes") {
  const ByteSource floats = source_of_floats(numbers(12));
  const auto refused = [&](const ByteSource& source, const Quantization& how) {
    return error_of(quantize(source, how, "w"));
  };
  CHECK(
      refused(floats, {5, -128, 127, kSmallest}) ==
      exactly("kInvalidArgument: memory: expected whole groups of 5 elements, each a multiple of 1, found 48 "
              "bytes"));
  CHECK(refused(floats, {0, -128, 127, kSmallest}) == containing("whole groups of 0 elements"));
  CHECK(refused(floats, {3, -8, 7, kSmallest}) == containing("each a multiple of 2"));
  CHECK(refused(source_of("12345"), {1, -128, 127, kSmallest}) == containing("found 5 bytes"));
  CHECK(code_of(scales_of(floats, {24, -128, 127, kSmallest}, "w")) == exactly("kInvalidArgument"));
  CHECK(quantize(floats, {3, -128, 127, kSmallest}, "w"));
  CHECK(scales_of(floats, {3, -8, 7, kSmallest}, "w"));
  CHECK(bytes_after(quantize(ByteSource(), {4, -128, 127, kSmallest}, "w")).empty());
}

TEST_CASE("the pages of the floats are dropped with those of what they became") {
  const auto storage = std::make_shared<RecordingStorage>(4096);
  const ByteSource floats(storage);
  quantize(floats, {32, -128, 127, kSmallest}, "w").value().drop_pages(8, 16);
  quantize(floats, {32, -8, 7, kSmallest}, "w").value().drop_pages(8, 16);
  scales_of(floats, {32, -8, 7, kSmallest}, "w").value().drop_pages(8, 16);
  CHECK((storage->forgotten() == RecordingStorage::Ranges{{32, 64}, {64, 128}, {256, 512}}));
}

}  // namespace

}  // namespace etstream::scaled_floats_test
