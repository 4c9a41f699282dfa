// SPDX-License-Identifier: BSD-3-Clause
//
// Whether what a method gave is what a test case expects, for every dtype, and how far it is from it.
//
//   const std::vector<float> given = {0.5F, 1.0F};
//   const auto bytes = std::as_bytes(std::span(given));
//   etstream::Tensor actual{etstream::ScalarType::kFloat32, {2}, {0}, etstream::ByteSource::memory(bytes)};
//   const auto comparison = etstream::compare(etstream::Tensor(actual), actual, {.relative = 1e-3});
//   if (!comparison) return comparison.error();
//   if (!comparison->passed()) std::puts(etstream::summary(*comparison).c_str());
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "etstream/export.h"
#include "etstream/result.h"
#include "etstream/tensor.h"

namespace etstream {

/// How far an actual element `a` may be from the expected `e`. None is negative or NaN.
struct Tolerance {
  /// Floating-point elements and doubles pass if |a - e| <= absolute + relative * |e|, as in NumPy's and
  /// torch's allclose. The values are those that ExecuTorch 1.5.1 verifies bundled programs with by default.
  double absolute = 1e-8;
  double relative = 1e-5;
  /// Integers pass if |a - e| <= integer. 0, as ExecuTorch compares them: by the rule above a token's number
  /// over 100,000 would pass for the next one. 1 is what rounding takes in quantized outputs.
  std::uint64_t integer = 0;
  /// NaN equals NaN, as ExecuTorch has it: where the expected output has one, so does the model before it was
  /// exported. Without it each NaN is a mismatch.
  bool nan_equal = true;
};

/// An element or a scalar. Signed and unsigned integers as such; bool, packed and bits types as the unsigned
/// integer that their bytes are; floating-point types as a double, which holds each of their values. A
/// complex element is two of these: its real part, then its imaginary one.
using Number = std::variant<std::int64_t, std::uint64_t, double>;

struct Mismatch {
  std::uint64_t index = 0;  // of the element, in the order in which both data lie
  Number expected;
  Number actual;
};

/// What compare() found. Errors are over the pairs in which both are finite; they are infinite where the
/// difference is beyond double's range, and those of integers are exact up to 2^53.
struct Comparison {
  std::uint64_t elements = 0;
  std::uint64_t mismatches = 0;
  double largest_absolute_error = 0;
  double mean_absolute_error = 0;
  /// |a - e| / |e|, of those whose e is not 0.
  double largest_relative_error = 0;
  std::optional<Mismatch> first;  // of the mismatches
  /// The one with the largest absolute error, or the first with a NaN or an infinity.
  std::optional<Mismatch> worst;

  [[nodiscard]] bool passed() const noexcept { return mismatches == 0; }
};

/// Compares two values of one kind; of tensors, which have one dtype, one shape and one order of dimensions,
/// each element. Infinities equal only themselves, zeros each other. Integers follow Tolerance::integer;
/// bool, quint4x2, quint2x4 and bits16 must have the same bits. Nothing equals nothing. Data is read in
/// pieces of 64 KiB. Errors: kInvalidArgument, saying what differs, for values that can't be compared, a
/// tensor of an unknown dtype, data that is not as long as its shape says, or a tolerance that is negative or
/// NaN; those of reading.
[[nodiscard]] ETSTREAM_EXPORT Result<Comparison> compare(const Value& expected, const Value& actual,
                                                         const Tolerance& tolerance = {});

/// For a person, in a line: "10 elements agree; largest errors 1e-07 absolute, 2e-06 relative", or how many
/// don't, and the first and the worst of them.
[[nodiscard]] ETSTREAM_EXPORT std::string summary(const Comparison& comparison);

}  // namespace etstream
