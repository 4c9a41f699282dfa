// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/tensor.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "formats/tensor/converted_floats.h"
#include "test_errors.h"
#include "test_sources.h"
#include "test_tensor_files.h"

namespace etstream::compare_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
Tensor tensor_of(ScalarType type, const std::vector<T>& elements) {
  const auto bytes = std::as_bytes(std::span(elements));
  return {type,
          {static_cast<std::int32_t>(elements.size())},
          {0},
          ByteSource::owned({bytes.begin(), bytes.end()})};
}

Tensor floats(const std::vector<float>& elements) { return tensor_of(ScalarType::kFloat32, elements); }
Tensor doubles(const std::vector<double>& elements) { return tensor_of(ScalarType::kFloat64, elements); }

Comparison compared(const Value& expected, const Value& actual, const Tolerance& tolerance = {}) {
  auto comparison = compare(expected, actual, tolerance);
  REQUIRE_MESSAGE(comparison, comparison.error().message);
  return *comparison;
}

bool passes(double expected, double actual, const Tolerance& tolerance = {}) {
  const Comparison scalar = compared(expected, actual, tolerance);
  const Comparison element = compared(doubles({expected}), doubles({actual}), tolerance);
  CHECK(scalar.passed() == element.passed());
  return scalar.passed();
}

TEST_CASE("an element passes up to the absolute plus the relative tolerance of what is expected") {
  const Tolerance tolerance{.absolute = 0.5, .relative = 0.25};
  CHECK(passes(4, 5.5, tolerance));
  CHECK(passes(-4, -5.5, tolerance));
  CHECK(passes(4, 2.5, tolerance));
  CHECK(!passes(4, 5.500001, tolerance));
  CHECK(!passes(4, 2.499999, tolerance));
  CHECK(!passes(4, -4, tolerance));
  // The tolerance is relative to the expected element, not the actual one: otherwise this would pass.
  CHECK(passes(5.7, 4, tolerance));
  CHECK(!passes(4, 5.7, tolerance));
}

TEST_CASE("the default tolerance is the one that torch.testing has for the dtype") {
  CHECK(passes(1, 1 + 1.9e-7));
  CHECK(!passes(1, 1 + 2.1e-7));
  const auto floats = [](float element) { return tensor_of<float>(ScalarType::kFloat32, {element}); };
  CHECK(compared(floats(0), floats(1e-5F)).passed());
  CHECK(!compared(floats(0), floats(1.1e-5F)).passed());
  CHECK(compared(floats(100), floats(100.0001F)).passed());
  CHECK(!compared(floats(100), floats(100.0002F)).passed());
  const auto halves = [](ScalarType type, std::uint16_t bits) {
    return tensor_of<std::uint16_t>(type, {bits});
  };
  CHECK(compared(halves(ScalarType::kFloat16, 0x3C00), halves(ScalarType::kFloat16, 0x3C01)).passed());
  CHECK(!compared(halves(ScalarType::kFloat16, 0x3C00), halves(ScalarType::kFloat16, 0x3C02)).passed());
  CHECK(compared(halves(ScalarType::kBFloat16, 0x3F80), halves(ScalarType::kBFloat16, 0x3F82)).passed());
  CHECK(!compared(halves(ScalarType::kBFloat16, 0x3F80), halves(ScalarType::kBFloat16, 0x3F83)).passed());
}

TEST_CASE("a NaN equals a NaN unless it is not to, and nothing else") {
  const Tolerance strict{.absolute = kInfinity, .relative = 1, .nan_equal = false};
  CHECK(passes(kNan, kNan));
  CHECK(passes(-kNan, kNan));
  CHECK(!passes(kNan, kNan, strict));
  CHECK(!passes(kNan, 1, {.absolute = kInfinity}));
  CHECK(!passes(1, kNan, {.absolute = kInfinity}));
  CHECK(!passes(kNan, kInfinity));
}

TEST_CASE("infinities equal themselves, whatever the tolerance, and zeros each other") {
  const Tolerance wide{.absolute = kInfinity, .relative = 1e300};
  CHECK(passes(kInfinity, kInfinity));
  CHECK(passes(-kInfinity, -kInfinity));
  CHECK(!passes(kInfinity, -kInfinity, wide));
  CHECK(!passes(kInfinity, 1e308, wide));
  CHECK(!passes(1e308, kInfinity, wide));
  CHECK(!passes(1.7e308, -1.7e308, wide));
  CHECK(passes(0.0, -0.0, {.absolute = 0, .relative = 0}));
  CHECK(passes(0.0, 1e-9, {.absolute = kInfinity, .relative = kInfinity}));
  CHECK(!passes(0.0, 1e-9, {.absolute = 0, .relative = kInfinity}));
}

TEST_CASE("statistics are those of the finite pairs, and a summary is a line for a person") {
  const auto comparison =
      compared(floats({1, 2, 0, -4, INFINITY, NAN}), floats({1, 2.5F, 0.25F, -3, 1, NAN}));
  CHECK(comparison.not_finite == 1);
  CHECK(comparison.mean_absolute_error == 1.75 / 4);
  CHECK(comparison.first->expected == Number(2.0));
  // A difference that is not finite is worse than any that is.
  CHECK(summary(comparison) ==
        "4 of 6 elements not as expected; largest errors 1 absolute at [3], 0.25 relative at [1], mean 0.44; "
        "SQNR 12.0 dB, cosine 0.972529, top-1 agrees; first at [1], expected 2, found 2.5; worst at [4], "
        "expected inf, found 1");
  // The worst of finite ones has the largest absolute error, and comes first of equal ones.
  CHECK(summary(compared(doubles({0, 10, 0, 0}), doubles({1, 13, -3, 2}))) ==
        "4 of 4 elements not as expected; largest errors 3 absolute at [1], 0.3 relative at [1], mean 2.2; "
        "SQNR 6.4 dB, cosine 0.960988, top-1 agrees; first at [0], expected 0, found 1; worst at [1], "
        "expected 10, found 13");
  CHECK(summary(compared(doubles({1, 2}), doubles({1, 2}))) ==
        "2 elements agree; largest errors 0 absolute, 0 relative, mean 0");
  CHECK(summary(compared(true, true)) == "1 element agrees; largest errors 0 absolute, 0 relative, mean 0");
  CHECK(summary(compared(std::int64_t{7}, std::int64_t{5})) ==
        "1 of 1 element not as expected; largest errors 2 absolute, 0.29 relative, mean 2; first "
        "expected 7, found 5");
}

TEST_CASE("elements that are the same are counted, apart from those that only pass") {
  CHECK(compared(doubles({1, 2, kNan, kInfinity}), doubles({1, 2 + 1e-9, kNan, kInfinity})).equal == 3);
  CHECK(compared(doubles({kNan, 1}), doubles({1, 2})).equal == 0);
}

TEST_CASE("a tolerance that is not given is the default, and an absolute one is that of integers too") {
  const Tolerance none = tolerance_of(std::nullopt, std::nullopt);
  CHECK((none.absolute == Tolerance().absolute && none.integer == Tolerance().integer));
  CHECK(none.relative == Tolerance().relative);
  const Tolerance both = tolerance_of(2.5, 0.25);
  CHECK(both.absolute == 2.5);
  CHECK(both.integer == 2);
  CHECK(both.relative == 0.25);
  CHECK(tolerance_of(kInfinity, std::nullopt).integer == 1'000'000'000'000'000'000);
}

TEST_CASE("integers are compared exactly, where doubles are not") {
  constexpr std::int64_t kLarge = (std::int64_t{1} << 53) + 1;
  const auto signed_ones = compared(tensor_of<std::int64_t>(ScalarType::kInt64, {kLarge}),
                                    tensor_of<std::int64_t>(ScalarType::kInt64, {kLarge - 1}));
  CHECK(signed_ones.mismatches == 1);
  CHECK(signed_ones.largest_absolute_error == 1);
  CHECK(signed_ones.first->expected == Number(kLarge));
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
  const auto unsigned_ones = compared(tensor_of<std::uint64_t>(ScalarType::kUInt64, {kLargest}),
                                      tensor_of<std::uint64_t>(ScalarType::kUInt64, {kLargest - 1}));
  CHECK(unsigned_ones.first->expected == Number(kLargest));
  CHECK(compared(kLarge, kLarge - 1).mismatches == 1);
}

TEST_CASE("the difference of integers does not overflow") {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  CHECK(compared(kLeast, kMost).largest_absolute_error == std::ldexp(1.0, 64));
  CHECK(!compared(kMost, kLeast, {.integer = 1000}).passed());
  CHECK(compared(kMost, kLeast, {.integer = std::numeric_limits<std::uint64_t>::max()}).passed());
}

TEST_CASE("integers take the tolerance of their own and no other") {
  const auto expected = tensor_of<std::int8_t>(ScalarType::kQInt8, {-128, 0, 127});
  const auto actual = tensor_of<std::int8_t>(ScalarType::kQInt8, {-127, 1, 127});
  CHECK(compared(expected, actual, {.absolute = 10, .relative = 10}).mismatches == 2);
  CHECK(compared(expected, actual, {.integer = 1}).passed());
}

TEST_CASE("bools and packed elements have the same bits, whatever the tolerance") {
  const Tolerance wide{.absolute = 100, .relative = 100, .integer = 100};
  for (const auto type : {ScalarType::kBool, ScalarType::kQUInt4x2, ScalarType::kQUInt2x4}) {
    const auto one = tensor_of<std::uint8_t>(type, {1});
    CHECK(compared(one, one, wide).passed());
    CHECK(!compared(one, tensor_of<std::uint8_t>(type, {0}), wide).passed());
  }
  CHECK(!compared(tensor_of<std::uint16_t>(ScalarType::kBits16, {1}),
                  tensor_of<std::uint16_t>(ScalarType::kBits16, {0}), wide)
             .passed());
  CHECK(!compared(true, false, wide).passed());
  CHECK(compared(true, true).passed());
}

TEST_CASE("a complex element is compared as one, by the modulus of the difference") {
  const auto one = [](ScalarType type, auto... parts) {
    Tensor tensor = tensor_of(type, std::vector{parts...});
    tensor.sizes = {static_cast<std::int32_t>(sizeof...(parts) / 2)};
    return tensor;
  };
  const auto found = compared(one(ScalarType::kComplex64, 1.0F, 2.0F, 3.0F, 4.0F),
                              one(ScalarType::kComplex64, 1.0F, 2.0F, 3.0F, 5.0F));
  CHECK(summary(found) ==
        "1 of 2 elements not as expected; largest errors 1 absolute at [1], 0.2 relative at [1], mean 0.5; "
        "SQNR 14.8 dB, cosine 0.993999, top-1 agrees; first at [1], expected 3+4j, found 3+5j");
  const auto wide = Tolerance{.absolute = 0, .relative = 0.2};
  CHECK(compared(one(ScalarType::kComplex128, 3.0, 4.0), one(ScalarType::kComplex128, 3.0, 5.0), wide)
            .passed());
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(compared(one(ScalarType::kComplex128, infinity, 1.0), one(ScalarType::kComplex128, infinity, 1.0))
            .passed());
  CHECK(!compared(one(ScalarType::kComplex128, infinity, 1.0), one(ScalarType::kComplex128, infinity, 2.0))
             .passed());
  const std::uint16_t half = 0x3C00;
  CHECK(compared(one(ScalarType::kComplex32, half, half), one(ScalarType::kComplex32, half, half)).passed());
}

TEST_CASE("a small floating-point type is compared by the numbers that its codes are converted to") {
  for (const auto type :
       {ScalarType::kFloat16, ScalarType::kBFloat16, ScalarType::kFloat8E5M2, ScalarType::kFloat8E4M3FN,
        ScalarType::kFloat8E5M2FNUZ, ScalarType::kFloat8E4M3FNUZ}) {
    const int size = static_cast<int>(item_size(type));
    const auto coded = [&](std::uint32_t code) {
      return Tensor{type, {1}, {0}, source_of(little_endian(code, size))};
    };
    for (std::uint32_t code = 0; code < 1U << 8 * size; code += size == 1 ? 1 : 61) {
      CAPTURE(name_of(type));
      CAPTURE(code);
      const std::string wide = text_of(convert_floats(coded(code).data, type, ScalarType::kFloat64).value());
      double number = 0;
      std::memcpy(&number, wide.data(), sizeof(number));
      REQUIRE(compared(coded(code), coded(code)).passed());
      const auto comparison = compared(coded(code), coded(0), {.absolute = 0, .relative = 0});
      REQUIRE(comparison.first.has_value() == (number != 0));
      if (number == 0) continue;
      const double expected = std::get<double>(comparison.first->expected);
      REQUIRE((expected == number || (std::isnan(expected) && std::isnan(number))));
      REQUIRE(comparison.first->actual == Number(0.0));
    }
  }
}

TEST_CASE("data longer than a piece is compared to its end") {
  std::vector<float> expected(100'000, 1);
  std::vector<float> actual = expected;
  actual[65'536] = 2;
  actual.back() = 4;
  const auto comparison = compared(floats(expected), floats(actual));
  CHECK(comparison.elements == 100'000);
  CHECK(comparison.first->index == 65'536);
  CHECK(comparison.worst->index == 99'999);
}

TEST_CASE("what can't be read is an error") {
  Tensor unreadable = floats({1});
  unreadable.data = failing(4, 0);
  CHECK(error_of(compare(unreadable, floats({1}))) == exactly("kIo: the disk is on fire"));
  CHECK(error_of(compare(floats({1}), unreadable)) == exactly("kIo: the disk is on fire"));
}

TEST_CASE("values that can't be compared are an error, not a mismatch") {
  const auto error = [](const Value& expected, const Value& actual) {
    return error_of(compare(expected, actual));
  };
  const Tensor one = floats({1});
  CHECK(error(one, doubles({1})) == exactly("kInvalidArgument: is float64, expected float32"));
  CHECK(error(one, floats({1, 2})) == exactly("kInvalidArgument: has shape [2], expected [1]"));
  CHECK(error(one, 1.0) == exactly("kInvalidArgument: is a double, expected a tensor"));
  CHECK(error(std::int64_t{1}, true) == exactly("kInvalidArgument: is a bool, expected an integer"));
  Tensor short_data = one;
  short_data.data = ByteSource::zeros(3);
  CHECK(error(short_data, one) == exactly("kInvalidArgument: has 3 bytes of data, expected 4"));
  CHECK(error(one, short_data) == exactly("kInvalidArgument: has 3 bytes of data, expected 4"));
  Tensor unknown = one;
  unknown.scalar_type = static_cast<ScalarType>(99);
  CHECK(error(unknown, unknown) == exactly("kInvalidArgument: scalar type 99 is unknown"));
  Tensor no_order = one;
  no_order.dim_order = {1};
  CHECK(error(one, no_order) == containing("is not a permutation of its 1 dimensions"));
}

TEST_CASE("tensors in different orders of dimensions are an error, unless they lie alike") {
  const Tensor nchw{ScalarType::kUInt8, {1, 2, 2, 1}, {0, 1, 2, 3}, ByteSource::zeros(4)};
  Tensor other = nchw;
  other.dim_order = {1, 0, 3, 2};
  CHECK(compared(nchw, other).passed());
  other.dim_order = {0, 2, 1, 3};
  CHECK(error_of(compare(nchw, other)) == containing("has dim_order [0, 2, 1, 3], expected [0, 1, 2, 3]"));
}

TEST_CASE("a tolerance that means nothing is refused") {
  CHECK(error_of(compare(1.0, 1.0, {.absolute = -1})) == containing("kInvalidArgument"));
  CHECK(error_of(compare(1.0, 1.0, {.relative = kNan})) == containing("kInvalidArgument"));
}

TEST_CASE("an element has a place by the order in which the data lies") {
  const std::vector<float> data(24, 1);
  Tensor tensor = floats(data);
  tensor.sizes = {2, 3, 4};
  tensor.dim_order = {0, 2, 1};
  const Comparison found = compared(tensor, tensor);
  // In this order an index is (a * 4 + c) * 3 + b.
  CHECK(place_of(found, 0) == std::vector<std::int64_t>{0, 0, 0});
  CHECK(place_of(found, 1) == std::vector<std::int64_t>{0, 1, 0});
  CHECK(place_of(found, 3) == std::vector<std::int64_t>{0, 0, 1});
  CHECK(place_of(found, 23) == std::vector<std::int64_t>{1, 2, 3});
  CHECK(place_of(compared(std::int64_t{1}, std::int64_t{1}), 0).empty());
}

TEST_CASE("outputs are also compared as signals, and by where the largest is") {
  const Comparison turned = compared(doubles({1, 2, 0}), doubles({2, -1, 0}));
  CHECK(turned.cosine == 0);
  CHECK(!turned.same_largest);
  CHECK(turned.signal_to_noise == doctest::Approx(-3.0103));
}

}  // namespace
}  // namespace etstream::compare_test
