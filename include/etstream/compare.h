// SPDX-License-Identifier: BSD-3-Clause
//
// Compares what a method returned with what a test case expects, for every dtype, and measures the
// difference.
//
//   const std::vector<float> given = {0.5F, 1.0F};
//   const auto bytes = std::as_bytes(std::span(given));
//   etstream::Tensor actual{etstream::ScalarType::kFloat32, {2}, {0}, etstream::ByteSource::memory(bytes)};
//   const auto comparison = etstream::compare(etstream::Tensor(actual), actual, {.relative = 1e-3});
//   if (!comparison) return comparison.error();
//   if (!comparison->passed()) std::puts(etstream::summary(*comparison).c_str());
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "etstream/export.h"
#include "etstream/result.h"
#include "etstream/tensor.h"
#include "etstream/tensor_layout.h"

namespace etstream {

/// The largest difference between an actual element `a` and the expected `e`.
struct Tolerance {
  /// Floating-point elements and doubles pass if |a - e| <= absolute + relative * |e|, as in NumPy's and
  /// torch's allclose; of complex ones, |x| is the modulus. By default these are what
  /// torch.testing.assert_close() has for the dtype: 1e-5 and 1.3e-6 for float32, 1e-3 for float16, 1.6e-2
  /// for bfloat16, and 1e-7 both for float64 and doubles; 0 for types of 8 bits.
  std::optional<double> absolute = {};
  std::optional<double> relative = {};
  /// Integers pass if |a - e| <= integer. ExecuTorch compares them with 0, the default: by the rule above, a
  /// token ID over 100,000 would pass for the next one. Rounding in quantized outputs needs 1.
  std::uint64_t integer = 0;
  /// NaN equals NaN, as in ExecuTorch: the model returned each expected NaN before it was exported. If false,
  /// each NaN is a mismatch.
  bool nan_equal = true;

  /// Returns whether no member is negative or NaN, as every function that takes a tolerance expects.
  [[nodiscard]] bool is_valid() const noexcept {
    return absolute.value_or(0) >= 0 && relative.value_or(0) >= 0;
  }
};

/// Returns the default tolerance with the given values in place of its own. Integers may differ by `absolute`
/// too.
[[nodiscard]] ETSTREAM_EXPORT Tolerance tolerance_of(std::optional<double> absolute,
                                                     std::optional<double> relative) noexcept;

/// An element or a scalar. Signed and unsigned integers are stored as such; bool, packed and bits types as
/// the unsigned integer of their bytes; floating-point types as a double, and complex ones as two, which hold
/// each of their values.
using Number = std::variant<std::int64_t, std::uint64_t, double, std::complex<double>>;

/// Two elements that differ by more than the tolerance.
struct Mismatch {
  std::uint64_t index = 0;  // of the element, in the order of the data
  Number expected;
  Number actual;
};

/// The result of compare(). Errors are over the pairs in which both are finite. An error is infinite if the
/// difference exceeds double's range, and errors of integers are exact up to 2^53.
struct Comparison {
  std::uint64_t elements = 0;
  std::uint64_t equal = 0;  // how many are, whatever the tolerance; NaN equals NaN where it passes
  std::uint64_t mismatches = 0;
  std::uint64_t not_finite = 0;  // how many are unequal, as one of both is NaN or infinite
  double largest_absolute_error = 0;
  double mean_absolute_error = 0;
  /// |a - e| / |e|, over the pairs whose e is not 0.
  double largest_relative_error = 0;
  /// The indices of the first elements with these errors, as Mismatch::index; 0 where the error is 0.
  std::uint64_t largest_absolute_index = 0;
  std::uint64_t largest_relative_index = 0;
  std::optional<Mismatch> first;  // the first mismatch
  /// The mismatch with the largest absolute error, or the first with a NaN or an infinity.
  std::optional<Mismatch> worst;
  std::optional<TensorLayout> layout;  // of the tensors; none for other values

  /// Returns whether all elements are within the tolerance.
  [[nodiscard]] bool passed() const noexcept { return mismatches == 0; }
};

/// Compares two values of the same kind. Tensors must have the same dtype, shape and element order, and are
/// compared by element. Infinities equal only themselves, and so does a complex element with one by each of
/// its parts; 0 equals -0. Integers follow Tolerance::integer; bool, quint4x2, quint2x4 and bits16 must have
/// the same bits. std::monostate equals std::monostate. Data is read in pieces of 64 KiB. Errors:
/// kInvalidArgument, saying what differs, for values that can't be compared, a tensor of an unknown dtype,
/// data that does not have the size that its shape implies, or a tolerance that is negative or NaN; read
/// errors.
[[nodiscard]] ETSTREAM_EXPORT Result<Comparison> compare(const Value& expected, const Value& actual,
                                                         const Tolerance& tolerance = {});

/// Returns the place of an element of the tensors that were compared, one index for each dimension. `index`,
/// below `elements`, is as in Mismatch. Empty for values other than tensors.
[[nodiscard]] ETSTREAM_EXPORT std::vector<std::int64_t> place_of(const Comparison& comparison,
                                                                 std::uint64_t index);

/// Describes the result in one line for people: "10 elements agree; largest errors 1e-07 absolute at [0, 3],
/// 2e-06 relative at [0, 1]", or how many elements don't agree, and the first and the worst of them.
[[nodiscard]] ETSTREAM_EXPORT std::string summary(const Comparison& comparison);

}  // namespace etstream
