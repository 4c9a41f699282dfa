// SPDX-License-Identifier: BSD-3-Clause
#include "core/packed/piece_coder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "test_errors.h"
#include "test_sources.h"

namespace etstream::piece_coder_test {
namespace {

using packed::kMostOverhead;
using packed::kPieceSize;
using packed::PieceHeader;

struct Coded {
  PieceHeader header;
  std::vector<std::byte> frames;
};

std::vector<std::byte> encode(packed::PieceEncoder& encoder, const std::string& piece) {
  std::vector<std::byte> out(packed::kMostCoded);
  const auto size = encoder.encode(bytes_of(piece), out);
  REQUIRE_MESSAGE(size, size.error().message);
  REQUIRE(*size > sizeof(PieceHeader));
  out.resize(*size);
  return out;
}

Coded encode(const std::string& piece) {
  packed::PieceEncoder encoder;
  const std::vector<std::byte> out = encode(encoder, piece);
  Coded coded;
  std::memcpy(&coded.header, out.data(), sizeof(coded.header));
  coded.frames.assign(out.begin() + sizeof(coded.header), out.end());
  return coded;
}

Result<std::string> decode(const Coded& coded, std::size_t size) {
  packed::PieceDecoder decoder;
  std::string out(size, '?');
  const auto done = decoder.decode(coded.header, coded.frames, std::as_writable_bytes(std::span(out)));
  if (!done) return done.error();
  return out;
}

/// Encodes a piece, and checks what must hold for any.
PieceHeader checked(const std::string& piece) {
  CAPTURE(piece.size());
  const Coded coded = encode(piece);
  CHECK(coded.header.original_size == piece.size());
  CHECK(coded.header.coded_size == coded.frames.size());
  CHECK(coded.frames.size() <= piece.size() + kMostOverhead);
  const auto decoded = decode(coded, piece.size());
  REQUIRE_MESSAGE(decoded, decoded.error().message);
  CHECK((*decoded == piece));
  return coded.header;
}

using Random = std::mt19937;

/// Returns `size` bytes, of which `next` gives each.
std::string bytes_from(std::size_t size, const std::function<int()>& next) {
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(next());
  return out;
}

std::string random_bytes(std::size_t size) {
  return bytes_from(size, [random = Random(1)]() mutable { return static_cast<int>(random()); });
}

/// Returns numbers with a normal distribution, of which `bits` makes elements. The first begins at `phase`.
template <class Element>
std::string normals(std::size_t size, std::size_t phase, const std::function<Element(float)>& bits) {
  Random random(1);
  std::normal_distribution<float> normal(0, 0.02F);
  std::string out;
  while (out.size() < size + sizeof(Element)) {
    const Element element = bits(normal(random));
    out.append(reinterpret_cast<const char*>(&element), sizeof(element));
  }
  return out.substr((sizeof(Element) - phase) % sizeof(Element), size);
}

std::uint32_t bits_of(float number) { return std::bit_cast<std::uint32_t>(number); }
std::string fp32(std::size_t size, std::size_t phase) { return normals<std::uint32_t>(size, phase, bits_of); }
std::string bf16(std::size_t size, std::size_t phase) {
  return normals<std::uint16_t>(size, phase,
                                [](float f) { return static_cast<std::uint16_t>(bits_of(f) >> 16); });
}
/// Cuts what a half has no room for; the numbers have none that are too small for it.
std::string fp16(std::size_t size, std::size_t phase) {
  return normals<std::uint16_t>(size, phase, [](float f) {
    const std::uint32_t bits = bits_of(std::copysign(std::max(std::abs(f), 0.0001F), f));
    const std::uint32_t exponent = (bits >> 23 & 255U) - 127 + 15;
    return static_cast<std::uint16_t>(bits >> 31 << 15 | exponent << 10 | (bits >> 13 & 1023U));
  });
}
std::string int8(std::size_t size) {
  return bytes_from(size, [random = Random(1), normal = std::normal_distribution<float>(0, 20)]() mutable {
    return static_cast<int>(std::clamp(normal(random), -127.0F, 127.0F));
  });
}
std::string int4(std::size_t size) {
  return bytes_from(size, [random = Random(1), normal = std::normal_distribution<float>(8, 2)]() mutable {
    const auto half = [&] { return static_cast<int>(std::clamp(normal(random), 0.0F, 15.0F)); };
    const int low = half();
    return half() << 4 | low;
  });
}
std::string text(std::size_t size) {
  std::string out;
  for (int i = 0; out.size() < size; ++i) out += "layers." + std::to_string(i * i) + ".weight, ";
  return out.substr(0, size);
}

/// Returns how many bytes an entropy coder needs for these.
double entropy_of(const std::string& bytes) {
  std::array<double, 256> counts{};
  for (const char c : bytes) ++counts[static_cast<unsigned char>(c)];
  double bits = 0;
  for (const double count : counts) {
    if (count > 0) bits += count * std::log2(static_cast<double>(bytes.size()) / count);
  }
  return bits / 8;
}

TEST_CASE("what repeats is coded by matches") {
  CHECK(checked(std::string(kPieceSize, '\0')).coded_size < 100);
  const std::string words = text(kPieceSize);
  const PieceHeader header = checked(words);
  CHECK(header.arrangement == packed::Arrangement());
  CHECK(header.coded_size < 0.5 * entropy_of(words));
}

TEST_CASE("bytes of any value are stored") {
  const PieceHeader header = checked(random_bytes(kPieceSize));
  CHECK(header.arrangement == packed::Arrangement());
  CHECK(header.coded_size == kPieceSize + 33);
}

TEST_CASE("integers of 8 and 4 bits are coded by their entropy") {
  for (const std::string& piece : {int8(kPieceSize), int4(kPieceSize)}) {
    const PieceHeader header = checked(piece);
    CHECK(header.arrangement == packed::Arrangement());
    CHECK(header.coded_size < 1.02 * entropy_of(piece));
    CHECK(header.coded_size < 0.95 * static_cast<double>(piece.size()));
  }
}

TEST_CASE("floats are split in planes from where their elements begin") {
  struct Case {
    const char* name;
    std::function<std::string(std::size_t, std::size_t)> make;
    packed::Arrangement arrangement;
    double most;  // of the piece's size
  };
  const std::vector<Case> cases{
      {"bf16", bf16, {2, 1, 0}, 0.70},
      {"fp16", fp16, {2, 1, 0}, 0.92},
      {"fp32", fp32, {4, 1, 0}, 0.86},
  };
  for (const Case& each : cases) {
    for (std::uint32_t phase = 0; phase < each.arrangement.element_size; ++phase) {
      CAPTURE(each.name);
      CAPTURE(phase);
      // In the smaller one, parts of the sample would begin inside of elements.
      for (const std::size_t size : {std::size_t{kPieceSize}, std::size_t{113'195}}) {
        CAPTURE(size);
        const PieceHeader header = checked(each.make(size, phase));
        CHECK(header.arrangement.element_size == each.arrangement.element_size);
        CHECK(header.arrangement.rotation == each.arrangement.rotation);
        // Elements of four bytes have other places that are as good, so the place is checked of two bytes
        // alone.
        if (each.arrangement.element_size == 2) CHECK(header.arrangement.first_element == phase);
        CHECK(header.coded_size < each.most * static_cast<double>(size));
      }
    }
  }
}

TEST_CASE("pieces of any size and kind are restored, and not much larger") {
  constexpr std::size_t kSample = 32 << 10;
  constexpr std::size_t kBlock = 128 << 10;
  std::vector<std::size_t> sizes{kSample - 1, kSample,    kSample + 1, kSample + 3,   kBlock - 1,
                                 kBlock,      kBlock + 1, 333333,      kPieceSize - 1};
  for (std::size_t size = 1; size < 70; ++size) sizes.push_back(size);
  for (const std::size_t size : sizes) {
    checked(std::string(size, 'x'));
    checked(random_bytes(size));
    checked(text(size));
    checked(int8(size));
    for (std::size_t phase = 0; phase < 4; ++phase) {
      checked(bf16(size, phase % 2));
      checked(fp32(size, phase));
    }
  }
}

TEST_CASE("a sample that misleads makes no piece larger") {
  // Zeros in the places of the sample, and bytes of any value elsewhere.
  std::string piece = random_bytes(kPieceSize);
  constexpr std::size_t kPart = 8 << 10;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t at = (kPieceSize - kPart) / 3 * i;
    std::fill_n(piece.begin() + static_cast<std::ptrdiff_t>(at - at % 4), kPart, '\0');
  }
  checked(piece);
}

TEST_CASE("an encoder has the same bytes for a piece whatever it encoded before") {
  packed::PieceEncoder encoder;
  const std::string piece = fp32(kPieceSize, 0);
  const std::vector<std::byte> first = encode(encoder, piece);
  for (const std::string& other : {text(70000), random_bytes(100), bf16(kPieceSize, 1)}) {
    encode(encoder, other);
  }
  CHECK((encode(encoder, piece) == first));
}

}  // namespace
}  // namespace etstream::piece_coder_test
