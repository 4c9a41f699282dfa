// SPDX-License-Identifier: BSD-3-Clause
#include "formats/tensor/converted_floats.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <map>
#include <string>
#include <vector>

#include "formats/safetensors/safetensors.h"
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

TEST_CASE("a double is rounded to a float first") {
  // This is more than halfway to the next float16, but halfway as a float32.
  const std::string bytes = little_endian(std::bit_cast<std::uint64_t>(1 + 0x1p-11 + 0x1p-40), 8);
  CHECK(converted(source_of(bytes), ScalarType::kFloat64, ScalarType::kFloat16) == std::string("\0\x3c", 2));
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
