// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/match.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "formats/tensor/converted_floats.h"
#include "formats/tensor/dimensions.h"

namespace etstream {
namespace {

/// The difference of two elements.
struct Difference {
  double absolute = 0;
  bool passes = true;
  bool finite = true;  // both elements are
};

/// Returns the distance exactly, which a difference of doubles would not be.
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

/// Returns the difference of two finite elements, which is `absolute`.
Difference finite_difference(double absolute, double expected, const Tolerance& tolerance) noexcept {
  // A difference beyond double's range is over every tolerance, even an infinite one.
  const double relative = expected == 0 ? 0 : *tolerance.relative * expected;
  return {absolute, std::isfinite(absolute) && absolute <= *tolerance.absolute + relative, true};
}

Difference difference(double expected, double actual, const Tolerance& tolerance) noexcept {
  if (std::isfinite(expected) && std::isfinite(actual)) {
    return finite_difference(std::abs(actual - expected), std::abs(expected), tolerance);
  }
  const bool same_nan = std::isnan(expected) && std::isnan(actual) && tolerance.nan_equal;
  return {0, same_nan || expected == actual, false};
}

/// Compares complex numbers. If a part is not finite, each part has to pass by itself.
Difference difference(std::complex<double> expected, std::complex<double> actual,
                      const Tolerance& tolerance) noexcept {
  const Difference real = difference(expected.real(), actual.real(), tolerance);
  const Difference imaginary = difference(expected.imag(), actual.imag(), tolerance);
  if (!real.finite || !imaginary.finite) return {0, real.passes && imaginary.passes, false};
  return finite_difference(std::abs(actual - expected), std::abs(expected), tolerance);
}

double magnitude(std::complex<double> number) noexcept { return std::abs(number); }
template <class T>
double magnitude(T number) noexcept {
  return std::abs(static_cast<double>(number));
}

/// Goes over pairs of elements and keeps the results.
class Comparer {
 public:
  explicit Comparer(const Tolerance& tolerance) : tolerance_(tolerance) {}

  template <class T>
  void add(T expected, T actual) noexcept {
    const Difference found = difference(expected, actual, tolerance_);
    const std::uint64_t index = comparison_.elements++;
    if (found.finite) {
      add_error(index, found.absolute, magnitude(expected));
      add_energy(index, expected, actual, found.absolute);
    }
    if (found.finite ? found.absolute == 0 : found.passes) ++comparison_.equal;
    if (!found.finite && !found.passes) ++comparison_.not_finite;
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
    comparison_.signal_to_noise = error_energy_ == 0 ? std::numeric_limits<double>::infinity()
                                                     : 10 * std::log10(expected_energy_ / error_energy_);
    const double energy = std::sqrt(expected_energy_) * std::sqrt(actual_energy_);
    comparison_.cosine = energy == 0 ? 0 : product_ / energy;
    comparison_.same_largest = largest_expected_.index == largest_actual_.index;
    return comparison_;
  }

 private:
  void add_error(std::uint64_t index, double absolute, double expected) noexcept {
    ++finite_;
    sum_ += absolute;
    if (absolute > comparison_.largest_absolute_error) {
      comparison_.largest_absolute_error = absolute;
      comparison_.largest_absolute_index = index;
    }
    if (expected == 0 || !(absolute / expected > comparison_.largest_relative_error)) return;
    comparison_.largest_relative_error = absolute / expected;
    comparison_.largest_relative_index = index;
  }

  template <class T>
  void add_energy(std::uint64_t index, T expected, T actual, double error) noexcept {
    if constexpr (std::same_as<T, std::complex<double>>) {
      product_ += expected.real() * actual.real() + expected.imag() * actual.imag();
    } else {
      product_ += static_cast<double>(expected) * static_cast<double>(actual);
      largest_expected_.add(index, static_cast<double>(expected));
      largest_actual_.add(index, static_cast<double>(actual));
    }
    expected_energy_ += magnitude(expected) * magnitude(expected);
    actual_energy_ += magnitude(actual) * magnitude(actual);
    error_energy_ += error * error;
  }

  /// The first of the largest elements.
  struct Largest {
    std::uint64_t index = 0;
    double value = -std::numeric_limits<double>::infinity();

    void add(std::uint64_t at, double number) noexcept {
      if (number > value) *this = {at, number};
    }
  };

  const Tolerance tolerance_;
  Comparison comparison_;
  Largest largest_expected_;
  Largest largest_actual_;
  double expected_energy_ = 0;
  double actual_energy_ = 0;
  double error_energy_ = 0;
  double product_ = 0;
  double worst_ = 0;
  double sum_ = 0;
  std::uint64_t finite_ = 0;
};

/// Decodes an element for the comparison.
template <class T>
auto as_number(T stored) {
  if constexpr (std::floating_point<T>) {
    return static_cast<double>(stored);
  } else if constexpr (std::signed_integral<T>) {
    return std::int64_t{stored};
  } else {
    return std::uint64_t{stored};
  }
}

/// Decodes a complex element by its parts.
template <class Part, auto kDecode = as_number<Part>>
std::complex<double> as_complex(std::array<Part, 2> stored) {
  return {kDecode(stored[0]), kDecode(stored[1])};
}

/// Compares dense data of one dtype. `Stored` is the type of an element in memory, and `kDecode` decodes it.
template <class Stored, auto kDecode = as_number<Stored>>
Result<Comparison> compare_data(const ByteSource& expected, const ByteSource& actual,
                                const Tolerance& tolerance) {
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
      comparer.add(kDecode(a), kDecode(b));
    }
  }
  return comparer.finish();
}

struct ComparedType {
  ScalarType type;
  Result<Comparison> (*compare)(const ByteSource& expected, const ByteSource& actual,
                                const Tolerance& tolerance);
  bool exactly = false;  // whatever the tolerance of integers
};

constexpr ComparedType kComparedTypes[] = {
    {ScalarType::kUInt8, compare_data<std::uint8_t>},
    {ScalarType::kQUInt8, compare_data<std::uint8_t>},
    {ScalarType::kInt8, compare_data<std::int8_t>},
    {ScalarType::kQInt8, compare_data<std::int8_t>},
    {ScalarType::kInt16, compare_data<std::int16_t>},
    {ScalarType::kInt32, compare_data<std::int32_t>},
    {ScalarType::kQInt32, compare_data<std::int32_t>},
    {ScalarType::kInt64, compare_data<std::int64_t>},
    {ScalarType::kUInt16, compare_data<std::uint16_t>},
    {ScalarType::kUInt32, compare_data<std::uint32_t>},
    {ScalarType::kUInt64, compare_data<std::uint64_t>},
    {ScalarType::kBool, compare_data<std::uint8_t>, true},
    {ScalarType::kQUInt4x2, compare_data<std::uint8_t>, true},
    {ScalarType::kQUInt2x4, compare_data<std::uint8_t>, true},
    {ScalarType::kBits16, compare_data<std::uint16_t>, true},
    {ScalarType::kFloat32, compare_data<float>},
    {ScalarType::kComplex64, compare_data<std::array<float, 2>, as_complex<float>>},
    {ScalarType::kFloat64, compare_data<double>},
    {ScalarType::kComplex128, compare_data<std::array<double, 2>, as_complex<double>>},
    {ScalarType::kFloat16, compare_data<std::uint16_t, decode_float<kFloat16>>},
    {ScalarType::kComplex32,
     compare_data<std::array<std::uint16_t, 2>, as_complex<std::uint16_t, decode_float<kFloat16>>>},
    {ScalarType::kBFloat16, compare_data<std::uint16_t, decode_float<kBFloat16>>},
    {ScalarType::kFloat8E5M2, compare_data<std::uint8_t, decode_float<kFloat8E5M2>>},
    {ScalarType::kFloat8E4M3FN, compare_data<std::uint8_t, decode_float<kFloat8E4M3FN>>},
    {ScalarType::kFloat8E5M2FNUZ, compare_data<std::uint8_t, decode_float<kFloat8E5M2FNUZ>>},
    {ScalarType::kFloat8E4M3FNUZ, compare_data<std::uint8_t, decode_float<kFloat8E4M3FNUZ>>},
};

/// Returns the tolerance for elements of a dtype, with the defaults of torch.testing where none is given.
Tolerance tolerance_for(ScalarType type, const Tolerance& given) {
  struct Default {
    ScalarType type;
    double relative;
    double absolute;
  };
  static constexpr Default kDefaults[] = {
      {ScalarType::kFloat16, 1e-3, 1e-5},     {ScalarType::kComplex32, 1e-3, 1e-5},
      {ScalarType::kBFloat16, 1.6e-2, 1e-5},  {ScalarType::kFloat32, 1.3e-6, 1e-5},
      {ScalarType::kComplex64, 1.3e-6, 1e-5}, {ScalarType::kFloat64, 1e-7, 1e-7},
      {ScalarType::kComplex128, 1e-7, 1e-7}};
  const auto* const known = std::ranges::find(kDefaults, type, &Default::type);
  const bool is_known = known != std::end(kDefaults);
  Tolerance out = given;
  out.absolute = given.absolute.value_or(is_known ? known->absolute : 0);
  out.relative = given.relative.value_or(is_known ? known->relative : 0);
  return out;
}

/// Returns an error if two tensors can't be compared.
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
  return with_advice(make_error(ErrorCode::kInvalidArgument, "has dim_order {}, expected {}",
                                list_text(actual.dim_order), list_text(expected.dim_order)),
                     {"with_dim_order brings one into the order of the other"});
}

std::string_view kind_of(const Value& value) {
  static constexpr std::string_view kNames[] = {"nothing", "a tensor", "an integer", "a bool", "a double"};
  return kNames[value.index()];
}

/// Returns a number as its type prints it: 0.1 for the float32 that is 0.10000000149011612.
std::string number_text(const Number& number, bool is_float32) {
  return match(
      number,
      [&](double value) {
        return is_float32 && std::isfinite(value) ? text("{}", static_cast<float>(value)) : exact_text(value);
      },
      [](std::complex<double> value) {
        return text("{}{}{}j", exact_text(value.real()), std::signbit(value.imag()) ? "" : "+",
                    exact_text(value.imag()));
      },
      [](auto integer) { return std::to_string(integer); });
}

/// Returns " at [0, 3]"; nothing for a value that is no tensor.
std::string at(const Comparison& comparison, std::uint64_t index) {
  return comparison.layout ? text(" at {}", list_text(place_of(comparison, index))) : "";
}

std::string error_text(const Comparison& comparison, double error, std::string_view kind,
                       std::uint64_t index) {
  // More than two digits would look more exact than they are.
  return text("{:.2g} {}{}", error, kind, error == 0 ? "" : at(comparison, index));
}

std::string mismatch_text(const Comparison& comparison, const Mismatch& mismatch) {
  const std::string place = at(comparison, mismatch.index);
  const bool is_float32 = comparison.layout && comparison.layout->scalar_type == ScalarType::kFloat32;
  return text("{}{}expected {}, found {}", place, place.empty() ? " " : ", ",
              number_text(mismatch.expected, is_float32), number_text(mismatch.actual, is_float32));
}

}  // namespace

Result<Comparison> compare(const Value& expected, const Value& actual, const Tolerance& tolerance) {
  return without_exceptions([&]() -> Result<Comparison> {
    if (!tolerance.is_valid()) {
      return make_error(ErrorCode::kInvalidArgument, "a tolerance is negative or NaN");
    }
    if (expected.index() != actual.index()) {
      return make_error(ErrorCode::kInvalidArgument, "is {}, expected {}", kind_of(actual),
                        kind_of(expected));
    }
    const auto* const tensor = std::get_if<Tensor>(&expected);
    const Tolerance used = tolerance_for(tensor ? tensor->scalar_type : ScalarType::kFloat64, tolerance);
    Tolerance exact = used;
    exact.integer = 0;
    if (tensor) {
      const Tensor& given = *std::get_if<Tensor>(&actual);
      ETSTREAM_TRY(check_comparable(*tensor, given));
      // The type is known, as check_comparable() has computed its size.
      const auto* known = std::find_if(std::begin(kComparedTypes), std::end(kComparedTypes),
                                       [&](const auto& one) { return one.type == tensor->scalar_type; });
      ETSTREAM_ASSIGN(Comparison out,
                      known->compare(tensor->data, given.data, known->exactly ? exact : used));
      out.layout = TensorLayout{tensor->scalar_type, tensor->sizes, tensor->dim_order};
      return out;
    }
    Comparer comparer(std::holds_alternative<bool>(expected) ? exact : used);
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

std::vector<std::int64_t> place_of(const Comparison& comparison, std::uint64_t index) {
  if (!comparison.layout) return {};
  const auto& [type, sizes, dim_order] = *comparison.layout;
  std::vector<std::int64_t> out(sizes.size());
  for (std::size_t i = dim_order.size(); i-- > 0;) {
    const auto size = static_cast<std::uint64_t>(sizes[dim_order[i]]);
    out[dim_order[i]] = static_cast<std::int64_t>(index % size);
    index /= size;
  }
  return out;
}

std::string summary(const Comparison& comparison) {
  const std::string elements = counted(comparison.elements, "element");
  std::string out = comparison.passed()
                        ? text("{}{}", elements, comparison.elements == 1 ? " agrees" : " agree")
                        : text("{} of {} not as expected", comparison.mismatches, elements);
  out += text("; largest errors {}, {}, mean {:.2g}",
              error_text(comparison, comparison.largest_absolute_error, "absolute",
                         comparison.largest_absolute_index),
              error_text(comparison, comparison.largest_relative_error, "relative",
                         comparison.largest_relative_index),
              comparison.mean_absolute_error);
  if (comparison.layout && comparison.elements > 1 && comparison.largest_absolute_error > 0) {
    out += text("; SQNR {:.1f} dB, cosine {:.6f}, top-1 {}", comparison.signal_to_noise, comparison.cosine,
                comparison.same_largest ? "agrees" : "differs");
  }
  if (comparison.passed()) return out;
  out += "; first" + mismatch_text(comparison, *comparison.first);
  if (comparison.worst->index != comparison.first->index)
    out += "; worst" + mismatch_text(comparison, *comparison.worst);
  return out;
}

Tolerance tolerance_of(std::optional<double> absolute, std::optional<double> relative) noexcept {
  constexpr double kMost = 1e18;
  Tolerance out;
  out.absolute = absolute;
  out.relative = relative;
  if (absolute) out.integer = static_cast<std::uint64_t>(std::min(*absolute, kMost));
  return out;
}

}  // namespace etstream
