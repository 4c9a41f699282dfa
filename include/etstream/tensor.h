// SPDX-License-Identifier: BSD-3-Clause
//
// The element types of tensors.
//
//   const etstream::ScalarType type = etstream::find_scalar_type("bfloat16").value();
//   const std::vector<std::int32_t> sizes = {1, 3, 224, 224};
//   const std::uint64_t bytes = etstream::byte_size(type, sizes).value();
//
// A tensor, or another input or output of a method.
//
//   etstream::Tensor image{etstream::ScalarType::kUInt8, {1, 3, 8, 8}, etstream::contiguous_dim_order(4),
//                          etstream::ByteSource::zeros(192)};
//   const std::vector<etstream::Value> inputs = {std::move(image), 3.5};
//
// The order in which a tensor's elements are stored.
//
//   const etstream::Tensor nchw{etstream::ScalarType::kUInt8, {1, 3, 8, 8}, {0, 1, 2, 3},
//                               etstream::ByteSource::zeros(192)};
//   const auto channels_last = etstream::with_dim_order(nchw, {0, 2, 3, 1});
//   if (!channels_last) return channels_last.error();
//
// TensorLayout: how to read the bytes of a tensor.
//
//   const etstream::TensorLayout weight{etstream::ScalarType::kFloat32, {2, 3}, {0, 1}};
//   const auto bytes = etstream::byte_size(weight.scalar_type, weight.sizes);
//   std::printf("%zu bytes\n", static_cast<std::size_t>(bytes.value()));
//
// The tensors of a checkpoint, as read from and written to each format of weights.
//
//   etstream::Checkpoint checkpoint;
//   checkpoint.tensors.push_back({"scale", "F32", etstream::TensorLayout{}, etstream::ByteSource::zeros(4)});
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
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

/// The numbers are those in ExecuTorch's files (exir/scalar_type.py of ExecuTorch 1.5.1).
enum class ScalarType : std::int8_t {
  kUInt8 = 0,
  kInt8 = 1,
  kInt16 = 2,
  kInt32 = 3,
  kInt64 = 4,
  kFloat16 = 5,
  kFloat32 = 6,
  kFloat64 = 7,
  kComplex32 = 8,
  kComplex64 = 9,
  kComplex128 = 10,
  kBool = 11,
  kQInt8 = 12,
  kQUInt8 = 13,
  kQInt32 = 14,
  kBFloat16 = 15,
  kQUInt4x2 = 16,
  kQUInt2x4 = 17,
  kBits16 = 22,
  kFloat8E5M2 = 23,
  kFloat8E4M3FN = 24,
  kFloat8E5M2FNUZ = 25,
  kFloat8E4M3FNUZ = 26,
  kUInt16 = 27,
  kUInt32 = 28,
  kUInt64 = 29,
};

/// Returns the size of an element in bytes: 1, 2, 4, 8 or 16; 0 for a number that is none of the above.
[[nodiscard]] ETSTREAM_EXPORT std::uint64_t item_size(ScalarType type) noexcept;
/// Returns whether it is a floating-point type, of 8 to 64 bits.
[[nodiscard]] ETSTREAM_EXPORT bool is_floating_point(ScalarType type) noexcept;
/// Returns the name that torch gives it: "float32", "float8_e4m3fn"; "unknown" for a number that is none of
/// the above.
[[nodiscard]] ETSTREAM_EXPORT std::string_view name_of(ScalarType type) noexcept;
/// Finds the type that torch, safetensors or people call `name`: "float16", "torch.half", "F16", "fp16".
[[nodiscard]] ETSTREAM_EXPORT std::optional<ScalarType> find_scalar_type(std::string_view name) noexcept;
/// Returns the size of a dense tensor in bytes: the product of `sizes`, times item_size(). Errors:
/// kInvalidArgument for a negative size or an unknown type, kTooLarge over 2^64 - 1.
[[nodiscard]] ETSTREAM_EXPORT Result<std::uint64_t> byte_size(ScalarType type,
                                                              std::span<const std::int32_t> sizes);

/// The most dimensions that an ExecuTorch tensor can have.
inline constexpr std::size_t kMostDimensions = 16;

/// `data` holds numel(sizes) elements of `scalar_type`, little-endian, dense, in the order that `dim_order`
/// gives. A tensor without elements has no data; one without dimensions has one element.
struct Tensor {
  ScalarType scalar_type = ScalarType::kFloat32;
  std::vector<std::int32_t> sizes;      // none is negative
  std::vector<std::uint8_t> dim_order;  // the dimensions, outermost first: 0, 1, 2... where contiguous
  ByteSource data;
  /// True if nobody has asked for the order of this contiguous tensor: a plan of a bundle lays its elements
  /// out in the order that the method has.
  bool any_order = false;
};

/// Returns 0, 1, ... `dimensions` - 1: the dim_order of a contiguous tensor.
[[nodiscard]] ETSTREAM_EXPORT std::vector<std::uint8_t> contiguous_dim_order(std::size_t dimensions);

/// An argument or a result of a method. std::monostate is no value, which the format can hold but no method
/// accepts.
using Value = std::variant<std::monostate, Tensor, std::int64_t, bool, double>;

/// Returns whether the elements of tensors of `sizes` are stored in the same order under both dim_orders,
/// which are permutations of the dimensions: a dimension of size 1 may be anywhere, and without elements all
/// orders are the same.
[[nodiscard]] ETSTREAM_EXPORT bool lie_alike(const std::vector<std::int32_t>& sizes,
                                             const std::vector<std::uint8_t>& one,
                                             const std::vector<std::uint8_t>& other);

/// Returns the tensor with its data in the order of `dim_order`: the same source if that is the same order,
/// otherwise one that reads the elements from where they lie, in that order, in bounded memory. Errors:
/// kInvalidArgument for an order that is not a permutation of the dimensions, an unknown dtype or data that
/// does not have the size that the shape implies; kTooLarge.
[[nodiscard]] ETSTREAM_EXPORT Result<Tensor> with_dim_order(const Tensor& tensor,
                                                            std::vector<std::uint8_t> dim_order);

/// The type and the shape of a tensor, and the order of its elements.
struct TensorLayout {
  ScalarType scalar_type = ScalarType::kFloat32;
  std::vector<std::int32_t> sizes;
  std::vector<std::uint8_t> dim_order;  // the dimensions, outermost first

  bool operator==(const TensorLayout&) const = default;
};

/// Describes the layout for people: "float32 [2, 3]".
[[nodiscard]] ETSTREAM_EXPORT std::string describe(const TensorLayout& layout);

/// A tensor with its name, whose data stays in the file.
struct CheckpointTensor {
  std::string name;
  /// The type as the file spells it: "BF16", "Q4_0"; "" for a backend's opaque data, which has no type.
  std::string type;
  /// The layout of the tensor, from which the size of `data` follows. Empty for opaque data, and for types
  /// that ExecuTorch's tensors can't have, such as quantised blocks.
  std::optional<TensorLayout> layout;
  ByteSource data;
  /// The shape of a tensor without a layout, outermost dimension first, if the file says it. It counts
  /// elements, also of types with several in a byte.
  std::optional<std::vector<std::uint64_t>> shape = std::nullopt;
  /// For quantised numbers, and for the tensor of their scales, the end of the latter's name: "_scale_inv".
  /// "" for other tensors.
  std::string_view scales = {};
  /// For numbers of FP8, the tensor of their scales, if it was opened with them.
  std::shared_ptr<const CheckpointTensor> own_scales = nullptr;
};

/// The tensors of a file, or of all files of a set.
struct Checkpoint {
  std::vector<std::string> files;         // the paths of all files that were opened
  std::vector<CheckpointTensor> tensors;  // in file order
};

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
  /// The energy of the expected values by that of the errors, in dB (SQNR); the cosine of the angle between
  /// the two; and whether the largest of both is at one place (top-1): all over the pairs that are finite.
  double signal_to_noise = 0;
  double cosine = 0;
  bool same_largest = true;
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
