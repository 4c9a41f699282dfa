// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/compare.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstring>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "etstream/dim_order.h"
#include "tensor/dimensions.h"
#include "tensor/float_formats.h"

namespace etstream {
namespace {

/// What the difference of two elements amounts to.
struct Difference {
  double absolute = 0;
  bool passes = true;
  bool finite = true;  // both elements are
};

/// Exact, which a difference of doubles would not be.
template <std::integral T>
std::uint64_t distance(T a, T b) noexcept {
  return a < b ? static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a)
               : static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b);
}

template <std::integral T>
Difference difference(T expected, T actual, const Tolerance& tolerance) noexcept {
  const std::uint64_t exact = distance(expected, actual);
  return {static_cast<double>(exact), exact <= tolerance.integer, true};
}

Difference difference(double expected, double actual, const Tolerance& tolerance) noexcept {
  if (std::isfinite(expected) && std::isfinite(actual)) {
    const double absolute = std::abs(actual - expected);
    // A difference beyond double's range is over every tolerance, one that is infinite too.
    const bool passes =
        std::isfinite(absolute) && absolute <= tolerance.absolute + tolerance.relative * std::abs(expected);
    return {absolute, passes, true};
  }
  const bool same_nan = std::isnan(expected) && std::isnan(actual) && tolerance.nan_equal;
  return {0, same_nan || expected == actual, false};
}

/// Goes over pairs of elements and keeps what is to be told of them.
class Comparer {
 public:
  explicit Comparer(const Tolerance& tolerance) : tolerance_(tolerance) {}

  template <class T>
  void add(T expected, T actual) noexcept {
    const Difference found = difference(expected, actual, tolerance_);
    const std::uint64_t index = comparison_.elements++;
    if (found.finite) add_error(found.absolute, std::abs(static_cast<double>(expected)));
    if (found.passes) return;
    const Mismatch mismatch{index, expected, actual};
    if (comparison_.mismatches++ == 0) comparison_.first = mismatch;
    const double badness = found.finite ? found.absolute : std::numeric_limits<double>::infinity();
    if (comparison_.worst && badness <= worst_) return;
    comparison_.worst = mismatch;
    worst_ = badness;
  }

  [[nodiscard]] Comparison finish() {
    if (finite_ > 0) comparison_.mean_absolute_error = sum_ / static_cast<double>(finite_);
    return comparison_;
  }

 private:
  void add_error(double absolute, double expected) noexcept {
    ++finite_;
    sum_ += absolute;
    comparison_.largest_absolute_error = std::max(comparison_.largest_absolute_error, absolute);
    if (expected == 0) return;
    comparison_.largest_relative_error = std::max(comparison_.largest_relative_error, absolute / expected);
  }

  const Tolerance tolerance_;
  Comparison comparison_;
  double worst_ = 0;
  double sum_ = 0;
  std::uint64_t finite_ = 0;
};

/// Compares dense data of one dtype: `Stored` is how an element lies, `decode` what it is.
template <class Stored, class Decode>
Result<Comparison> compare_data(const ByteSource& expected, const ByteSource& actual,
                                const Tolerance& tolerance, Decode decode) {
  constexpr std::size_t kPiece = 65536;
  Comparer comparer(tolerance);
  std::vector<std::byte> one(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, expected.size())));
  std::vector<std::byte> other(one.size());
  for (std::uint64_t at = 0; at < expected.size(); at += kPiece) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, expected.size() - at));
    ETSTREAM_TRY(expected.read_at(at, std::span(one).first(n)));
    ETSTREAM_TRY(actual.read_at(at, std::span(other).first(n)));
    for (std::size_t i = 0; i < n; i += sizeof(Stored)) {
      Stored a{};
      Stored b{};
      std::memcpy(&a, one.data() + i, sizeof(Stored));
      std::memcpy(&b, other.data() + i, sizeof(Stored));
      comparer.add(decode(a), decode(b));
    }
  }
  return comparer.finish();
}

Result<Comparison> compare_elements(ScalarType type, const ByteSource& expected, const ByteSource& actual,
                                    const Tolerance& tolerance) {
  Tolerance exact = tolerance;
  exact.integer = 0;
  const auto as_signed = [](std::signed_integral auto stored) { return std::int64_t{stored}; };
  const auto as_unsigned = [](std::unsigned_integral auto stored) { return std::uint64_t{stored}; };
  const auto as_double = [](std::floating_point auto stored) { return static_cast<double>(stored); };
  switch (type) {
    case ScalarType::kUInt8:
    case ScalarType::kQUInt8:
      return compare_data<std::uint8_t>(expected, actual, tolerance, as_unsigned);
    case ScalarType::kInt8:
    case ScalarType::kQInt8:
      return compare_data<std::int8_t>(expected, actual, tolerance, as_signed);
    case ScalarType::kInt16:
      return compare_data<std::int16_t>(expected, actual, tolerance, as_signed);
    case ScalarType::kInt32:
    case ScalarType::kQInt32:
      return compare_data<std::int32_t>(expected, actual, tolerance, as_signed);
    case ScalarType::kInt64:
      return compare_data<std::int64_t>(expected, actual, tolerance, as_signed);
    case ScalarType::kUInt16:
      return compare_data<std::uint16_t>(expected, actual, tolerance, as_unsigned);
    case ScalarType::kUInt32:
      return compare_data<std::uint32_t>(expected, actual, tolerance, as_unsigned);
    case ScalarType::kUInt64:
      return compare_data<std::uint64_t>(expected, actual, tolerance, as_unsigned);
    case ScalarType::kBool:
    case ScalarType::kQUInt4x2:
    case ScalarType::kQUInt2x4:
      return compare_data<std::uint8_t>(expected, actual, exact, as_unsigned);
    case ScalarType::kBits16:
      return compare_data<std::uint16_t>(expected, actual, exact, as_unsigned);
    case ScalarType::kFloat32:
    case ScalarType::kComplex64:
      return compare_data<float>(expected, actual, tolerance, as_double);
    case ScalarType::kFloat64:
    case ScalarType::kComplex128:
      return compare_data<double>(expected, actual, tolerance, as_double);
    case ScalarType::kFloat16:
    case ScalarType::kComplex32:
      return compare_data<std::uint16_t>(expected, actual, tolerance, decode_float<kFloat16>);
    case ScalarType::kBFloat16:
      return compare_data<std::uint16_t>(expected, actual, tolerance, decode_float<kBFloat16>);
    case ScalarType::kFloat8E5M2:
      return compare_data<std::uint8_t>(expected, actual, tolerance, decode_float<kFloat8E5M2>);
    case ScalarType::kFloat8E4M3FN:
      return compare_data<std::uint8_t>(expected, actual, tolerance, decode_float<kFloat8E4M3FN>);
    case ScalarType::kFloat8E5M2FNUZ:
      return compare_data<std::uint8_t>(expected, actual, tolerance, decode_float<kFloat8E5M2FNUZ>);
    case ScalarType::kFloat8E4M3FNUZ:
      return compare_data<std::uint8_t>(expected, actual, tolerance, decode_float<kFloat8E4M3FNUZ>);
  }
  return make_error(ErrorCode::kInvalidArgument, "scalar type {} is unknown", static_cast<int>(type));
}

/// What keeps two tensors from being compared.
Result<void> check_comparable(const Tensor& expected, const Tensor& actual) {
  if (expected.scalar_type != actual.scalar_type) {
    return make_error(ErrorCode::kInvalidArgument, "is {}, expected {}", name_of(actual.scalar_type),
                      name_of(expected.scalar_type));
  }
  if (expected.sizes != actual.sizes) {
    return make_error(ErrorCode::kInvalidArgument, "has shape {}, expected {}", list_text(actual.sizes),
                      list_text(expected.sizes));
  }
  for (const Tensor* tensor : {&expected, &actual}) {
    ETSTREAM_ASSIGN(const std::uint64_t bytes, byte_size(tensor->scalar_type, tensor->sizes));
    if (!is_permutation(tensor->dim_order, tensor->sizes.size())) {
      return make_error(ErrorCode::kInvalidArgument,
                        "has dim_order {}, which is not a permutation of its {} dimensions",
                        list_text(tensor->dim_order), tensor->sizes.size());
    }
    if (tensor->data.size() == bytes) continue;
    return make_error(ErrorCode::kInvalidArgument, "has {} bytes of data, expected {}", tensor->data.size(),
                      bytes);
  }
  if (lie_alike(expected.sizes, expected.dim_order, actual.dim_order)) return {};
  return make_error(ErrorCode::kInvalidArgument,
                    "has dim_order {}, expected {}; with_dim_order brings one into the order of the other",
                    list_text(actual.dim_order), list_text(expected.dim_order));
}

std::string_view kind_of(const Value& value) {
  static constexpr std::string_view kNames[] = {"nothing", "a tensor", "an integer", "a bool", "a double"};
  return kNames[value.index()];
}

std::string number_text(double value) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

/// Errors are told in two digits; more would be read as if they meant something.
std::string error_text(double error) {
  std::array<char, 32> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), error, std::chars_format::general, 2);
  return {digits.data(), end.ptr};
}

std::string number_text(const Number& number) {
  if (const auto* value = std::get_if<double>(&number)) return number_text(*value);
  if (const auto* value = std::get_if<std::int64_t>(&number)) return std::to_string(*value);
  return std::to_string(std::get<std::uint64_t>(number));
}

std::string mismatch_text(const Mismatch& mismatch) {
  return text("at {}, expected {}, found {}", mismatch.index, number_text(mismatch.expected),
              number_text(mismatch.actual));
}

}  // namespace

Result<Comparison> compare(const Value& expected, const Value& actual, const Tolerance& tolerance) {
  return without_exceptions([&]() -> Result<Comparison> {
    // Written so that NaN is refused too.
    if (!(tolerance.absolute >= 0 && tolerance.relative >= 0)) {
      return make_error(ErrorCode::kInvalidArgument, "a tolerance is negative or NaN");
    }
    if (expected.index() != actual.index()) {
      return make_error(ErrorCode::kInvalidArgument, "is {}, expected {}", kind_of(actual),
                        kind_of(expected));
    }
    if (const auto* tensor = std::get_if<Tensor>(&expected)) {
      const Tensor& given = *std::get_if<Tensor>(&actual);
      ETSTREAM_TRY(check_comparable(*tensor, given));
      return compare_elements(tensor->scalar_type, tensor->data, given.data, tolerance);
    }
    Tolerance of_kind = tolerance;
    if (std::holds_alternative<bool>(expected)) of_kind.integer = 0;
    Comparer comparer(of_kind);
    if (const auto* integer = std::get_if<std::int64_t>(&expected)) {
      comparer.add(*integer, *std::get_if<std::int64_t>(&actual));
    } else if (const auto* number = std::get_if<double>(&expected)) {
      comparer.add(*number, *std::get_if<double>(&actual));
    } else if (const auto* truth = std::get_if<bool>(&expected)) {
      comparer.add(std::uint64_t{*truth}, std::uint64_t{*std::get_if<bool>(&actual)});
    }
    return comparer.finish();
  });
}

std::string summary(const Comparison& comparison) {
  const std::string elements = counted(comparison.elements, "element");
  std::string out = comparison.passed()
                        ? text("{}{}", elements, comparison.elements == 1 ? " agrees" : " agree")
                        : text("{} of {} not as expected", comparison.mismatches, elements);
  out += text("; largest errors {} absolute, {} relative, mean {}",
              error_text(comparison.largest_absolute_error), error_text(comparison.largest_relative_error),
              error_text(comparison.mean_absolute_error));
  if (comparison.passed()) return out;
  out += "; first " + mismatch_text(*comparison.first);
  if (comparison.worst->index != comparison.first->index)
    out += "; worst " + mismatch_text(*comparison.worst);
  return out;
}

}  // namespace etstream
