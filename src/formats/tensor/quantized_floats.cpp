// SPDX-License-Identifier: BSD-3-Clause
#include "formats/tensor/quantized_floats.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/derived_storage.h"
#include "formats/tensor/float_formats.h"

namespace etstream {
namespace {

constexpr std::uint64_t kPiece = 65536;  // elements that are read at once
constexpr std::uint32_t kMagnitude = 0x7FFFFFFF;
constexpr std::uint32_t kInfinity = 0x7F800000;

/// Returns the nearest bfloat16.
float rounded(float number) {
  return std::bit_cast<float>(
      float32_bits<kBFloat16>(encode_float<kBFloat16>(std::bit_cast<std::uint32_t>(number))));
}

/// Reads groups of floats, and knows their scales.
class Groups {
 public:
  Groups(ByteSource floats, const Quantization& how, std::string tensor)
      : floats_(std::move(floats)), how_(how), tensor_(std::move(tensor)) {}

  [[nodiscard]] const ByteSource& floats() const noexcept { return floats_; }
  [[nodiscard]] const Quantization& how() const noexcept { return how_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return elements() / how_.group; }
  [[nodiscard]] std::uint64_t elements() const noexcept { return floats_.size() / sizeof(float); }
  [[nodiscard]] bool are_large() const noexcept { return how_.group > kPiece; }

  /// Computes the scales of large groups, each of which a read would have to see.
  Result<void> keep_scales() {
    if (!are_large()) return {};
    const Buffer buffer = make_buffer();
    for (std::uint64_t i = 0; i < size(); ++i) {
      std::uint32_t largest = 0;
      for (std::uint64_t at = 0; at < how_.group; at += kPiece) {
        ETSTREAM_ASSIGN(const auto piece,
                        read(i * how_.group + at, std::min(kPiece, how_.group - at), buffer));
        largest = std::max(largest, largest_magnitude(piece));
      }
      floats_.drop_pages(i * how_.group * sizeof(float), how_.group * sizeof(float));
      ETSTREAM_ASSIGN(scales_.emplace_back(), scale_of(largest, i));
    }
    return {};
  }

  using Buffer = std::unique_ptr<float[]>;
  [[nodiscard]] static Buffer make_buffer() { return std::make_unique_for_overwrite<float[]>(kPiece); }

  /// Reads `count` floats, at most kPiece, from `first` on.
  Result<std::span<const float>> read(std::uint64_t first, std::uint64_t count, const Buffer& buffer) const {
    const std::span floats(buffer.get(), static_cast<std::size_t>(count));
    ETSTREAM_TRY(floats_.read_at(first * sizeof(float), std::as_writable_bytes(floats)));
    return std::span<const float>(floats);
  }

  /// Returns the scale of group `i`, which is large, or whose floats these are.
  Result<float> scale(std::uint64_t i, std::span<const float> floats) const {
    return are_large() ? scales_[static_cast<std::size_t>(i)] : scale_of(largest_magnitude(floats), i);
  }

 private:
  /// Compares bits, as positive numbers are in the order of their bits.
  static std::uint32_t largest_magnitude(std::span<const float> floats) {
    std::int32_t largest = 0;
    for (const float each : floats) {
      largest = std::max(largest, static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(each) & kMagnitude));
    }
    return static_cast<std::uint32_t>(largest);
  }

  Result<float> scale_of(std::uint32_t largest, std::uint64_t group) const {
    if (largest >= kInfinity) {
      return error_in(
          ErrorCode::kInvalidArgument, floats_.name(),
          "tensor {}: elements {} to {} are to be quantized: expected numbers, found an infinity or a NaN",
          quote(tensor_), group * how_.group, (group + 1) * how_.group - 1);
    }
    const float half_range = static_cast<float>(how_.highest - how_.lowest) / 2;
    const float scale = std::bit_cast<float>(largest) / half_range;
    return std::max(how_.in_bfloat16 ? rounded(scale) : scale, how_.least_scale);
  }

  ByteSource floats_;
  Quantization how_;
  std::string tensor_;  // its name
  std::vector<float> scales_;
};

/// Writes the nearest integer to each float over the scale.
void quantize_group(std::span<const float> floats, float scale, const Quantization& how, std::int8_t* out) {
  // Adding this rounds a float of at most 2^22 to an integer, ties to even.
  constexpr float kRound = 12582912.0F;
  const float inverse = how.in_bfloat16 ? rounded(1.0F / scale) : 1.0F / scale;
  const auto lowest = static_cast<float>(how.lowest);
  const auto highest = static_cast<float>(how.highest);
  const auto integer = [&](float product) {
    const float within = std::min(std::max(product, lowest), highest);
    return static_cast<std::int8_t>(static_cast<int>(within + kRound - kRound));
  };
  if (how.in_bfloat16) {
    for (std::size_t i = 0; i < floats.size(); ++i) out[i] = integer(rounded(floats[i] * inverse));
  } else {
    for (std::size_t i = 0; i < floats.size(); ++i) out[i] = integer(floats[i] * inverse);
  }
}

class QuantizedStorage : public DerivedStorage {
 public:
  explicit QuantizedStorage(Groups groups) : groups_(std::move(groups)) {}
  std::string name() const override { return groups_.floats().name(); }
  void for_each_part(const std::function<void(const ByteSource&)>& see) const override {
    see(groups_.floats());
  }

 protected:
  const Groups groups_;
};

class QuantizedFloats final : public QuantizedStorage {
 public:
  using QuantizedStorage::QuantizedStorage;

  std::uint64_t size() const noexcept override { return groups_.elements() / per_byte_; }

  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept override {
    const std::uint64_t each = per_byte_ * sizeof(float);
    groups_.floats().drop_pages(offset * each, size * each);
  }

  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t group = groups_.how().group;
    const std::uint64_t end = (offset + out.size()) * per_byte_;  // in elements, as what follows
    const Groups::Buffer buffer = Groups::make_buffer();
    const auto integers = std::make_unique_for_overwrite<std::int8_t[]>(kPiece);
    for (std::uint64_t at = offset * per_byte_; at < end;) {
      // A piece has whole groups, or is inside a large one.
      const std::uint64_t first = groups_.are_large() ? at : at / group * group;
      const std::uint64_t most =
          groups_.are_large() ? std::min(kPiece, (at / group + 1) * group - at) : kPiece / group * group;
      const std::uint64_t last = groups_.are_large() ? end : (end + group - 1) / group * group;
      ETSTREAM_ASSIGN(const auto floats, groups_.read(first, std::min(most, last - first), buffer));
      for (std::size_t done = 0; done < floats.size();) {
        const auto part = floats.subspan(
            done, std::min(static_cast<std::size_t>(std::min(group, kPiece)), floats.size() - done));
        ETSTREAM_ASSIGN(const float scale, groups_.scale((first + done) / group, part));
        quantize_group(part, scale, groups_.how(), integers.get() + done);
        done += part.size();
      }
      const std::uint64_t stop = std::min(end, first + floats.size());
      store(integers.get() + (at - first), out.first(static_cast<std::size_t>((stop - at) / per_byte_)));
      out = out.subspan(static_cast<std::size_t>((stop - at) / per_byte_));
      at = stop;
    }
    return {};
  }

 private:
  void store(const std::int8_t* integers, std::span<std::byte> out) const {
    if (per_byte_ == 1) {
      std::memcpy(out.data(), integers, out.size());
      return;
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      const int first = integers[2 * i] - groups_.how().lowest;
      const int second = integers[2 * i + 1] - groups_.how().lowest;
      out[i] =
          static_cast<std::byte>(groups_.how().high_is_first ? first << 4 | second : first | second << 4);
    }
  }

  const std::uint64_t per_byte_ = groups_.how().highest - groups_.how().lowest < 16 ? 2 : 1;
};

class GroupScales final : public QuantizedStorage {
 public:
  using QuantizedStorage::QuantizedStorage;

  std::uint64_t size() const noexcept override { return groups_.size() * sizeof(float); }

  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept override {
    groups_.floats().drop_pages(offset * groups_.how().group, size * groups_.how().group);
  }

  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t group = groups_.how().group;
    const Groups::Buffer buffer = Groups::make_buffer();
    std::span<const float> floats;
    for (std::uint64_t i = offset / sizeof(float); !out.empty(); ++i) {
      if (!groups_.are_large()) {
        // One read has as many groups as are needed, or fit.
        if (floats.empty()) {
          const std::uint64_t left =
              std::min<std::uint64_t>(out.size() / sizeof(float) + 2, groups_.size() - i);
          ETSTREAM_ASSIGN(floats, groups_.read(i * group, std::min(left, kPiece / group) * group, buffer));
        }
      }
      const auto own = floats.first(std::min(static_cast<std::size_t>(group), floats.size()));
      ETSTREAM_ASSIGN(const float scale, groups_.scale(i, own));
      floats = floats.subspan(own.size());
      const auto bytes = std::as_bytes(std::span(&scale, 1)).subspan(offset % sizeof(float));
      const auto part = bytes.first(std::min(bytes.size(), out.size()));
      std::memcpy(out.data(), part.data(), part.size());
      out = out.subspan(part.size());
      offset += part.size();
    }
    return {};
  }
};

template <class Storage>
Result<ByteSource> make(ByteSource floats, const Quantization& how, const std::string& tensor,
                        std::uint64_t least_group) {
  if (how.group == 0 || how.group % least_group != 0 || floats.size() % (how.group * sizeof(float)) != 0) {
    return error_in(ErrorCode::kInvalidArgument, floats.name(),
                    "expected whole groups of {}, each a multiple of {}, found {}",
                    counted(how.group, "element"), least_group, counted(floats.size(), "byte"));
  }
  Groups groups(std::move(floats), how, tensor);
  ETSTREAM_TRY(groups.keep_scales());
  return ByteSource(std::make_shared<Storage>(std::move(groups)));
}

}  // namespace

Result<ByteSource> quantize(ByteSource floats, const Quantization& how, const std::string& tensor) {
  return make<QuantizedFloats>(std::move(floats), how, tensor, how.highest - how.lowest < 16 ? 2 : 1);
}

Result<ByteSource> scales_of(ByteSource floats, const Quantization& how, const std::string& tensor) {
  return make<GroupScales>(std::move(floats), how, tensor, 1);
}

}  // namespace etstream
