// SPDX-License-Identifier: BSD-3-Clause
#include "formats/tensor/converted_floats.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "formats/safetensors/safetensors.h"
#include "formats/tensor/converted_floats.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_paths.h"
#include "test_sources.h"
#include "test_tensor_files.h"

namespace etstream::converted_floats_test {
namespace {

constexpr std::array kFloats = {ScalarType::kFloat16,        ScalarType::kBFloat16,
                                ScalarType::kFloat32,        ScalarType::kFloat64,
                                ScalarType::kFloat8E5M2,     ScalarType::kFloat8E4M3FN,
                                ScalarType::kFloat8E5M2FNUZ, ScalarType::kFloat8E4M3FNUZ};

std::string converted(const ByteSource& source, ScalarType from, ScalarType to) {
  const auto out = convert_floats(source, from, to);
  REQUIRE_MESSAGE(out, out.error().message);
  return text_of(*out);
}

template <class Bits>
std::string bytes_of_all(const std::vector<Bits>& elements) {
  return text_of(std::as_bytes(std::span(elements)));
}

template <class Out, class In>
Out converted_one(In element, ScalarType from, ScalarType to) {
  const std::string bytes = converted(source_of(bytes_of_all(std::vector{element})), from, to);
  REQUIRE(bytes.size() == sizeof(Out));
  Out out{};
  std::memcpy(&out, bytes.data(), sizeof(Out));
  return out;
}

TEST_CASE("a double is rounded to a float first") {
  const auto from = ScalarType::kFloat64;
  CHECK(converted_one<float>(0.1, from, ScalarType::kFloat32) == 0.1F);
  CHECK(std::isinf(converted_one<float>(1e300, from, ScalarType::kFloat32)));
  // This is more than halfway to the next float16, but halfway as a float32.
  CHECK(converted_one<std::uint16_t>(1 + 0x1p-11 + 0x1p-40, from, ScalarType::kFloat16) == 0x3C00);
}

TEST_CASE("all types become what torch makes of them") {
  const auto file = ByteSource::file(kGoldenDir + "/float_conversions/expected.safetensors");
  REQUIRE_MESSAGE(file, file.error().message);
  const auto tensors = open_safetensors(*file);
  REQUIRE_MESSAGE(tensors, tensors.error().message);
  std::map<std::string, std::string> data;
  for (const CheckpointTensor& tensor : tensors->tensors) data[tensor.name] = text_of(tensor.data);
  REQUIRE(data.size() == kFloats.size() * kFloats.size());
  for (const ScalarType from : kFloats) {
    const std::string source(name_of(from));
    CHECK(data.at(source).size() >= 256);
    for (const ScalarType to : kFloats) {
      if (from == to) continue;
      const std::string name = source + " to " + std::string(name_of(to));
      CAPTURE(name);
      CHECK(converted(source_of(data.at(source)), from, to) == data.at(name));
    }
  }
}

/// Returns all bit patterns of a type of 16 or 8 bits.
template <class Bits>
std::string every_pattern() {
  std::vector<Bits> all(std::size_t{1} << (8 * sizeof(Bits)));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Bits>(i);
  return bytes_of_all(all);
}

/// Converts every pattern to `wide` and back. Patterns without sign above `nan` are NaNs, which may change.
template <class Bits>
void check_round_trip(ScalarType type, ScalarType wide, unsigned nan) {
  CAPTURE(name_of(type));
  CAPTURE(name_of(wide));
  const std::string all = every_pattern<Bits>();
  const std::string widened = converted(source_of(all), type, wide);
  const std::string back = converted(source_of(widened), wide, type);
  REQUIRE(back.size() == all.size());
  unsigned wrong = 0;
  for (std::size_t i = 0; i < all.size(); i += sizeof(Bits)) {
    Bits bits{};
    std::memcpy(&bits, all.data() + i, sizeof(Bits));
    const unsigned magnitude = bits & ((1U << (8 * sizeof(Bits) - 1)) - 1);
    if (magnitude <= nan && all.compare(i, sizeof(Bits), back, i, sizeof(Bits)) != 0) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("every number of a small type is itself again, from a larger one") {
  for (const ScalarType wide : {ScalarType::kFloat32, ScalarType::kFloat64}) {
    check_round_trip<std::uint16_t>(ScalarType::kFloat16, wide, 0x7C00);
    check_round_trip<std::uint16_t>(ScalarType::kBFloat16, wide, 0x7F80);
    check_round_trip<std::uint8_t>(ScalarType::kFloat8E5M2, wide, 0x7C);
    check_round_trip<std::uint8_t>(ScalarType::kFloat8E4M3FN, wide, 0x7F);
    check_round_trip<std::uint8_t>(ScalarType::kFloat8E5M2FNUZ, wide, 0x7F);
    check_round_trip<std::uint8_t>(ScalarType::kFloat8E4M3FNUZ, wide, 0x7F);
  }
}

TEST_CASE("what is read does not depend on where reading begins and ends") {
  // The source has several blocks and several pieces that are read at a time, and the last of each is not
  // full.
  const std::string source = patterned(8 * 30011);
  const auto check = [&](ScalarType from, ScalarType to) {
    CAPTURE(name_of(from));
    CAPTURE(name_of(to));
    const auto out = convert_floats(source_of(source), from, to).value();
    const std::string whole = text_of(out);
    REQUIRE(whole.size() == source.size() / item_size(from) * item_size(to));
    for (const std::size_t size : {1U, 2U, 7U, 4099U, 30001U}) {
      for (std::size_t at = 0; at + size <= whole.size(); at += 1 + whole.size() / 13) {
        CAPTURE(at);
        CAPTURE(size);
        CHECK(text_of(out.slice(at, size).value()) == whole.substr(at, size));
      }
      CHECK(text_of(out.slice(whole.size() - size, size).value()) == whole.substr(whole.size() - size));
    }
  };
  check(ScalarType::kFloat32, ScalarType::kBFloat16);
  check(ScalarType::kFloat64, ScalarType::kFloat16);
  check(ScalarType::kFloat16, ScalarType::kFloat64);
  check(ScalarType::kFloat8E4M3FN, ScalarType::kFloat32);
  check(ScalarType::kFloat64, ScalarType::kFloat8E5M2);
}

TEST_CASE("a read that ends in an element writes nothing behind") {
  const auto zeros = convert_floats(repeated('\0', 4096), ScalarType::kFloat32, ScalarType::kFloat16).value();
  std::string out(1030, 'x');
  REQUIRE(zeros.read_at(0, std::as_writable_bytes(std::span(out)).first(1029)));
  CHECK(out == std::string(1029, '\0') + 'x');
}

TEST_CASE("a source of any size is converted, by small pieces, and none is read that is not asked for") {
  const auto storage = std::make_shared<RecordingStorage>(std::uint64_t{1} << 40);
  const auto out = convert_floats(ByteSource(storage), ScalarType::kFloat32, ScalarType::kBFloat16).value();
  CHECK(out.size() == std::uint64_t{1} << 39);
  CHECK(out.name() == "recording");
  CHECK(text_of(out.slice((std::uint64_t{1} << 38) + 1, 2).value()) == std::string(2, '\0'));
  CHECK(storage->read() == RecordingStorage::Ranges{{std::uint64_t{1} << 39, 8}});
  std::vector<std::byte> bytes(1 << 20);
  REQUIRE(out.read_at(0, bytes));
  std::uint64_t total = 0;
  for (const auto& [offset, size] : storage->read()) {
    CHECK(size <= 65536);
    total += size;
  }
  CHECK(total == 8 + (2U << 20));
}

TEST_CASE("no elements are converted to none, and elements to their own type as they are") {
  CHECK(converted(ByteSource(), ScalarType::kFloat32, ScalarType::kFloat16).empty());
  const ByteSource source = source_of("\x01\xFF");
  const auto same = convert_floats(source, ScalarType::kBFloat16, ScalarType::kBFloat16).value();
  CHECK(same.offset_in(source) == 0);
}

TEST_CASE("only whole elements that were read are forgotten") {
  const auto storage = std::make_shared<RecordingStorage>(400);
  const auto out = convert_floats(ByteSource(storage), ScalarType::kFloat32, ScalarType::kFloat16).value();
  out.drop_pages(0, 50);
  out.drop_pages(51, 50);
  CHECK(storage->forgotten() == RecordingStorage::Ranges{{0, 100}, {100, 100}});
}

TEST_CASE("what reading the source gives is passed on") {
  const auto out = convert_floats(failing(400, 200), ScalarType::kFloat32, ScalarType::kFloat16).value();
  std::vector<std::byte> bytes(101);
  CHECK(out.read_at(0, std::span(bytes).first(100)));
  CHECK(error_of(out.read_at(0, bytes)) == containing("the disk is on fire"));

  const TemporaryFolder folder;
  put_file(folder / "x", "12345678");
  const auto file = ByteSource::file(folder / "x").value();
  const auto changed = convert_floats(file, ScalarType::kFloat32, ScalarType::kFloat16).value();
  CHECK(changed.check_unchanged());
  put_file(folder / "x", "1234");
  CHECK_FALSE(changed.check_unchanged());
}

TEST_CASE("what is no floating-point data is refused") {
  const ByteSource source = repeated('x', 8);
  CHECK(error_of(convert_floats(source, ScalarType::kInt32, ScalarType::kFloat32)) ==
        exactly("kInvalidArgument: fill: expected a floating-point type, found int32"));
  CHECK(error_of(convert_floats(source, ScalarType::kFloat32, ScalarType::kBool)) ==
        exactly("kInvalidArgument: fill: expected a floating-point type, found bool"));
  CHECK(error_of(convert_floats(repeated('x', 7), ScalarType::kBFloat16, ScalarType::kBFloat16)) ==
        exactly("kInvalidArgument: fill: expected elements of bfloat16, 2 bytes each, found 7 bytes"));
  CHECK(code_of(convert_floats(repeated('x', std::uint64_t{1} << 61), ScalarType::kFloat8E5M2,
                               ScalarType::kFloat64)) == "kTooLarge");
}

}  // namespace
}  // namespace etstream::converted_floats_test
