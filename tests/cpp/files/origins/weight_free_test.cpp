// SPDX-License-Identifier: BSD-3-Clause
#include "files/origins/weight_free.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "files/origins/made_program.h"
#include "formats/tensor/converted_floats.h"
#include "test_errors.h"

namespace etstream::weight_free_test {
namespace {

using made::bytes_of_numbers;
using made::layout_of;

template <class Number>
std::string described(ScalarType type, const std::vector<Number>& numbers, std::vector<std::int32_t> sizes) {
  const auto out =
      describe_weight_free(source_of(bytes_of_numbers(numbers)), layout_of(type, std::move(sizes)));
  REQUIRE_MESSAGE(out, full_message(out.error()));
  return *out;
}

template <class Number>
std::string described(ScalarType type, const std::vector<Number>& numbers) {
  return described(type, numbers, {static_cast<std::int32_t>(numbers.size())});
}

std::string described_floats(const std::vector<float>& numbers) {
  return described(ScalarType::kFloat32, numbers);
}

TEST_CASE("one number, and one that is everywhere") {
  CHECK(described_floats({0.125F}) == "the number 0.125");
  CHECK(described_floats({0, 0, 0}) == "the number 0 everywhere");
  CHECK(described_floats(std::vector<float>(20000, 1.0F)) == "the number 1 everywhere");
  CHECK(described<std::int64_t>(ScalarType::kInt64, {7}) == "the number 7");
  CHECK(described<std::uint8_t>(ScalarType::kBool, {1, 1}) == "the number 1 everywhere");
  CHECK(described<std::uint16_t>(ScalarType::kBFloat16, {0x3f80, 0x3f80}) == "the number 1 everywhere");
  CHECK(described<std::int8_t>(ScalarType::kInt8, {-3, -3}) == "the number -3 everywhere");
  CHECK(described<double>(ScalarType::kFloat64, {2.5, 2.5}) == "the number 2.5 everywhere");
  // The last of many is another.
  std::vector<float> almost(20000, 0.5F);
  almost.back() = 0.25F;
  CHECK(described_floats(almost).empty());
}

TEST_CASE("a sequence of integers") {
  CHECK(described<std::int64_t>(ScalarType::kInt64, {0, 1, 2, 3}) == "numbers from 0 in steps of 1");
  CHECK(described<std::int32_t>(ScalarType::kInt32, {5, 2, -1, -4}) == "numbers from 5 in steps of -3");
  CHECK(described<std::int16_t>(ScalarType::kInt16, {300, 600, 900}) == "numbers from 300 in steps of 300");
  CHECK(described_floats({0, 1, 2, 3}) == "numbers from 0 in steps of 1");
  CHECK(described_floats({0, 0.5F, 1, 1.5F}).empty());
  CHECK(described_floats({0, 1, 2, 4}).empty());
  // Whatever else has 64 bits is no weight.
  CHECK(described<std::int64_t>(ScalarType::kInt64, {0, 1, 2, 4}) == "integers of 64 bits");
  CHECK(described<std::int32_t>(ScalarType::kInt32, {0, 1, 2, 4}).empty());
}

TEST_CASE("a mask") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(described_floats({0, -infinity, 0, 0}) == "a mask of 0 and -inf");
  CHECK(described_floats({1, 0, 1, 1}) == "a mask of 1 and 0");
  CHECK(described_floats({0, -65504, 0, 0}) == "a mask of 0 and -65504");
  CHECK(described<std::uint8_t>(ScalarType::kBool, {0, 1, 1}) == "a mask of 0 and 1");
  CHECK(described<std::int32_t>(ScalarType::kInt32, {9, -4, 9}) == "a mask of 9 and -4");
  // Two numbers that no mask has may be weights, and so may three.
  CHECK(described_floats({0.5F, 0, 0.5F}).empty());
  CHECK(described_floats({0, 1, -infinity}).empty());
  CHECK(described_floats({0, 0.5F, 0}).empty());
  CHECK(described_floats({0, 60000, 0}) == "a mask of 0 and 60000");
  CHECK(described_floats({0, 59999, 0}).empty());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(described_floats({nan, nan}).empty());
  CHECK(described_floats({nan}).empty());
  CHECK(described(ScalarType::kFloat32, std::vector<float>{nan}, {}).empty());
}

/// A table of positions as models have it: a row for each, a column for each frequency.
std::vector<float> table(int rows, int columns, double (*function)(double), double scale = 1) {
  std::vector<float> out;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const double frequency = 1 / std::pow(10000.0, static_cast<double>(j) / columns);
      out.push_back(static_cast<float>(scale * function(i * frequency)));
    }
  }
  return out;
}

std::string described_table(const std::vector<float>& numbers, std::int32_t columns,
                            ScalarType type = ScalarType::kFloat32) {
  const auto as_type =
      convert_floats(source_of(bytes_of_numbers(numbers)), ScalarType::kFloat32, type).value();
  const auto rows = static_cast<std::int32_t>(numbers.size()) / columns;
  const auto out = describe_weight_free(as_type, layout_of(type, {rows, columns}));
  REQUIRE_MESSAGE(out, full_message(out.error()));
  return *out;
}

TEST_CASE("tables of the cosines or sines of positions") {
  for (const ScalarType type : {ScalarType::kFloat32, ScalarType::kBFloat16, ScalarType::kFloat16}) {
    CHECK(described_table(table(128, 32, std::cos), 32, type) == "cosines of positions");
    CHECK(described_table(table(128, 32, std::sin), 32, type) == "sines of positions");
    CHECK(described_table(table(2048, 8, std::cos), 8, type) == "cosines of positions");
    CHECK(described_table(table(2048, 8, std::sin), 8, type) == "sines of positions");
  }
}

TEST_CASE("a table of positions has 1 to 65536 columns, and 4 rows or more") {
  CHECK(described_table(table(4, 65536, std::cos), 65536) == "cosines of positions");
  CHECK(described_table(table(4, 65537, std::cos), 65537).empty());
  CHECK(described_table(table(8, 1, std::cos), 1) == "cosines of positions");
  CHECK(described(ScalarType::kFloat32, table(8, 1, std::cos), {0}).empty());
}

TEST_CASE("a trained table is none of positions") {
  CHECK(described_table(made::numbers(1024, 3), 8).empty());
  // Nor is one that training has moved, or that does not begin at position 0.
  std::vector<float> moved = table(128, 8, std::cos);
  moved[900] += moved[900] > 0 ? -0.2F : 0.2F;
  CHECK(described_table(moved, 8).empty());
  std::vector<float> beyond = table(128, 8, std::cos);
  beyond[44 * 8] += 0.03F;  // which was 0.9998
  CHECK(described_table(beyond, 8).empty());
  std::vector<float> sines = table(128, 8, std::sin);
  sines[3] = 0.01F;
  CHECK(described_table(sines, 8).empty());
  CHECK(described_table(table(128, 8, std::cos, 0.5), 8).empty());
  CHECK(described_table(table(128, 8, std::sin, 2), 8).empty());
  // Few rows are no table.
  CHECK(described_table(table(3, 8, std::cos), 8).empty());
  // Frequencies are at most 1.
  const auto fast = [](double x) { return std::cos(2 * x); };
  CHECK(described_table(table(128, 8, fast), 8).empty());
}

TEST_CASE("what has no numbers here has no description") {
  CHECK(described<std::uint16_t>(ScalarType::kUInt16, {1, 1}).empty());
  CHECK(described_floats({}) == "no elements");
  CHECK(describe_weight_free(source_of("abc"), layout_of(ScalarType::kFloat32, {1})).value().empty());
  const auto failed = describe_weight_free(failing(16, 8), layout_of(ScalarType::kFloat32, {4}));
  CHECK(code_of(failed) == exactly("kIo"));
}

}  // namespace
}  // namespace etstream::weight_free_test
