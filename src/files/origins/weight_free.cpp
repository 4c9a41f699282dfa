// SPDX-License-Identifier: BSD-3-Clause
#include "files/origins/weight_free.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numbers>
#include <optional>
#include <span>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/tensor.h"
#include "formats/tensor/converted_floats.h"

namespace etstream {
namespace {

constexpr std::uint64_t kPiece = 8192;           // elements that are read at once
constexpr std::uint64_t kMostColumns = 1 << 16;  // of a table of positions

/// The elements of a payload as float64, whatever their type.
class Numbers {
 public:
  [[nodiscard]] static std::optional<Numbers> open(const ByteSource& data, ScalarType type) {
    switch (type) {
      case ScalarType::kFloat16:
      case ScalarType::kBFloat16:
      case ScalarType::kFloat32:
      case ScalarType::kFloat64: {
        auto converted = convert_floats(data, type, ScalarType::kFloat64);
        if (!converted) return std::nullopt;
        return Numbers(*std::move(converted), ScalarType::kFloat64);
      }
      case ScalarType::kUInt8:
      case ScalarType::kInt8:
      case ScalarType::kInt16:
      case ScalarType::kInt32:
      case ScalarType::kInt64:
      case ScalarType::kBool:
        return Numbers(data, type);
      default:
        return std::nullopt;
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return data_.size() / item_size(type_); }

  /// Calls `see(index, number)` in order until it returns false. Returns whether it never did.
  template <class See>
  Result<bool> for_each(See see) const {
    std::vector<std::byte> bytes(static_cast<std::size_t>(kPiece * item_size(type_)));
    for (std::uint64_t at = 0; at < size(); at += kPiece) {
      const auto n = static_cast<std::size_t>(std::min(kPiece, size() - at));
      ETSTREAM_TRY(data_.read_at(at * item_size(type_), std::span(bytes).first(n * item_size(type_))));
      for (std::size_t i = 0; i < n; ++i) {
        if (!see(at + i, number(bytes.data() + i * item_size(type_)))) return false;
      }
    }
    return true;
  }

 private:
  Numbers(ByteSource data, ScalarType type) : data_(std::move(data)), type_(type) {}

  [[nodiscard]] double number(const std::byte* from) const {
    const auto as = [&]<class T>(T value) {
      std::memcpy(&value, from, sizeof(value));
      return static_cast<double>(value);
    };
    switch (type_) {
      case ScalarType::kFloat64:
        return as(double{});
      case ScalarType::kInt64:
        return as(std::int64_t{});
      case ScalarType::kInt32:
        return as(std::int32_t{});
      case ScalarType::kInt16:
        return as(std::int16_t{});
      case ScalarType::kInt8:
        return as(std::int8_t{});
      default:
        return as(std::uint8_t{});
    }
  }

  ByteSource data_;
  ScalarType type_;
};

/// Returns whether all elements are those of an arithmetic sequence of integers, and how it goes on.
Result<std::string> as_sequence(const Numbers& numbers) {
  double first = 0;
  double step = 0;
  ETSTREAM_ASSIGN(const bool is_one, numbers.for_each([&](std::uint64_t i, double number) {
    if (i == 0) first = number;
    if (i == 1) step = number - first;
    return number == std::floor(number) && number == first + static_cast<double>(i) * step;
  }));
  if (!is_one || step == 0) return std::string();
  return text("numbers from {} in steps of {}", exact_text(first), exact_text(step));
}

/// Describes elements of one value, or of two of which one is 0, 1 or an extreme, as masks have.
Result<std::string> as_mask(const Numbers& numbers, bool is_float) {
  std::vector<double> values;
  ETSTREAM_ASSIGN(const bool is_mask, numbers.for_each([&](std::uint64_t, double number) {
    if (std::isnan(number)) return false;
    if (std::ranges::find(values, number) == values.end()) values.push_back(number);
    return values.size() <= 2;
  }));
  if (!is_mask) return std::string();
  if (values.size() == 1) {
    return text("the number {}{}", exact_text(values[0]), numbers.size() == 1 ? "" : " everywhere");
  }
  constexpr double kExtreme = 60000;  // that float16 has too
  const auto is_of_mask = [](double value) {
    return value == 0 || value == 1 || std::abs(value) >= kExtreme;
  };
  if (is_float && !(is_of_mask(values[0]) && is_of_mask(values[1]))) return std::string();
  return text("a mask of {} and {}", exact_text(values[0]), exact_text(values[1]));
}

/// Follows the angle of a column of cosines or sines, which grows by the same step each row, at most by 1.
/// Types of 16 bits know an angle badly, so that the step becomes exact only over many rows. Row 0, whose
/// angle is 0, is not to be seen.
class Angle {
 public:
  void see(std::uint64_t row, double value, bool is_cosine) {
    constexpr double kClear = 0.85;  // a value up to which it tells the angle well
    const bool is_clear = std::abs(value) < kClear;
    if (is_followed_ && !is_clear) return;
    const double angle = is_cosine ? std::acos(value) : std::asin(value);
    const auto number = static_cast<double>(row);
    if (!is_followed_) {
      step_ = std::abs(angle) / number;
      is_followed_ = is_clear;
      return;
    }
    // Two angles in each turn have this value; the one nearest to what is expected counts.
    constexpr double kTurn = 2 * std::numbers::pi;
    const double expected = step_ * number;
    const double other = is_cosine ? -angle : std::numbers::pi - angle;
    double nearest = angle + std::round((expected - angle) / kTurn) * kTurn;
    const double second = other + std::round((expected - other) / kTurn) * kTurn;
    if (std::abs(second - expected) < std::abs(nearest - expected)) nearest = second;
    step_ = nearest / number;
  }
  [[nodiscard]] double at(std::uint64_t row) const { return step_ * static_cast<double>(row); }
  [[nodiscard]] double step() const { return step_; }

 private:
  double step_ = 0;
  bool is_followed_ = false;
};

/// Describes rows i with cos(i * step) or sin(i * step), each column having a step of its own from 0 to 1.
Result<std::string> as_positions(const Numbers& numbers, std::uint64_t columns, bool are_cosines) {
  if (columns == 0 || columns > kMostColumns || numbers.size() / columns < 4) return std::string();
  constexpr double kTolerance = 0.0625;  // what bfloat16 and steps in float32 need
  std::vector<Angle> angles(static_cast<std::size_t>(columns));
  ETSTREAM_ASSIGN(const bool in_range, numbers.for_each([&](std::uint64_t i, double number) {
    if (!(std::abs(number) <= 1)) return false;
    if (i < columns) return number == (are_cosines ? 1 : 0);
    Angle& angle = angles[static_cast<std::size_t>(i % columns)];
    angle.see(i / columns, number, are_cosines);
    return angle.step() <= 1 + kTolerance;
  }));
  if (!in_range) return std::string();
  ETSTREAM_ASSIGN(const bool fits, numbers.for_each([&](std::uint64_t i, double number) {
    const double angle = angles[static_cast<std::size_t>(i % columns)].at(i / columns);
    return std::abs((are_cosines ? std::cos(angle) : std::sin(angle)) - number) <= kTolerance;
  }));
  if (!fits) return std::string();
  return std::string(are_cosines ? "cosines of positions" : "sines of positions");
}

}  // namespace

Result<std::string> describe_weight_free(const ByteSource& data, const TensorLayout& layout) {
  const auto numbers = Numbers::open(data, layout.scalar_type);
  if (!numbers) return std::string();
  if (numbers->size() == 0) return std::string("no elements");
  const bool is_float = is_floating_point(layout.scalar_type);
  ETSTREAM_ASSIGN(std::string out, as_mask(*numbers, is_float));
  if (out.empty()) {
    ETSTREAM_ASSIGN(out, as_sequence(*numbers));
  }
  // Quantizers of ExecuTorch store no weights in 64 bits.
  if (out.empty() && layout.scalar_type == ScalarType::kInt64) out = "integers of 64 bits";
  if (!is_float || layout.sizes.empty()) return out;
  for (const bool are_cosines : {true, false}) {
    if (!out.empty()) break;
    const auto columns = static_cast<std::uint64_t>(std::max(layout.sizes.back(), 0));
    ETSTREAM_ASSIGN(out, as_positions(*numbers, columns, are_cosines));
  }
  return out;
}

}  // namespace etstream
