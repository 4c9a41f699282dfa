// SPDX-License-Identifier: BSD-3-Clause
#include "formats/tensor/scaled_floats.h"

#include <algorithm>
#include <bit>
#include <cstddef>
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
#include "formats/tensor/converted_floats.h"

namespace etstream {
namespace {

constexpr std::size_t kScaledAtOnce = 16384;  // elements

class ScaledFloats : public DerivedStorage {
 public:
  explicit ScaledFloats(ByteSource floats) : floats_(std::move(floats)) {}

  std::uint64_t size() const noexcept override { return floats_.size(); }
  std::string name() const override { return floats_.name(); }
  void for_each_part(const std::function<void(const ByteSource&)>& see) const override { see(floats_); }
  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept override {
    floats_.drop_pages(offset, size);
  }

  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto buffer = std::make_unique_for_overwrite<float[]>(kScaledAtOnce);
    while (!out.empty()) {
      const std::uint64_t first = offset / sizeof(float);
      const auto skip = static_cast<std::size_t>(offset % sizeof(float));
      const std::uint64_t wanted = (skip + out.size() - 1) / sizeof(float) + 1;
      const std::span floats(buffer.get(),
                             static_cast<std::size_t>(std::min<std::uint64_t>(wanted, kScaledAtOnce)));
      ETSTREAM_TRY(floats_.read_at(first * sizeof(float), std::as_writable_bytes(floats)));
      ETSTREAM_TRY(scale(first, floats));
      const auto bytes = std::as_bytes(floats).subspan(skip);
      const auto part = bytes.first(std::min(bytes.size(), out.size()));
      std::memcpy(out.data(), part.data(), part.size());
      out = out.subspan(part.size());
      offset += part.size();
    }
    return {};
  }

 private:
  /// Multiplies the elements from `first` on, at most kScaledAtOnce.
  virtual Result<void> scale(std::uint64_t first, std::span<float> floats) const = 0;

  const ByteSource floats_;
};

class ScaledChannels final : public ScaledFloats {
 public:
  ScaledChannels(ByteSource floats, std::vector<float> factors, std::uint64_t inner)
      : ScaledFloats(std::move(floats)), factors_(std::move(factors)), inner_(inner) {}

 private:
  Result<void> scale(std::uint64_t first, std::span<float> floats) const override {
    for (std::size_t i = 0; i < floats.size(); ++i) {
      floats[i] *= factors_[static_cast<std::size_t>((first + i) / inner_ % factors_.size())];
    }
    return {};
  }

  const std::vector<float> factors_;
  const std::uint64_t inner_;
};

class ScaledBlocks final : public ScaledFloats {
 public:
  ScaledBlocks(ByteSource floats, ByteSource factors, const MatrixBlocks& blocks)
      : ScaledFloats(std::move(floats)), factors_(std::move(factors)), blocks_(blocks) {}

  void for_each_part(const std::function<void(const ByteSource&)>& see) const override {
    ScaledFloats::for_each_part(see);
    see(factors_);
  }

 private:
  Result<void> scale(std::uint64_t first, std::span<float> floats) const override {
    const std::uint64_t columns = blocks_.columns;
    const std::uint64_t block_rows = blocks_.block_rows;
    const std::uint64_t block_columns = blocks_.block_columns;
    const auto factor_of = [&, own = columns / block_columns](std::uint64_t at) {
      return at / columns / block_rows * own + at % columns / block_columns;
    };
    std::vector<float> factors;
    std::uint64_t begin = 0;  // the first of `factors`
    const std::uint64_t end = first + floats.size();
    for (std::uint64_t at = first; at < end;) {
      const std::uint64_t row_end = std::min(end, (at / columns + 1) * columns);
      // The factors of a part of a row are at most as many as its elements.
      if (factor_of(at) < begin || factor_of(row_end - 1) >= begin + factors.size()) {
        begin = factor_of(at);
        const std::uint64_t last = (end - 1) / columns * columns + columns - 1;
        factors.resize(
            static_cast<std::size_t>(std::min<std::uint64_t>(kScaledAtOnce, factor_of(last) + 1 - begin)));
        ETSTREAM_TRY(factors_.read_at(begin * sizeof(float), std::as_writable_bytes(std::span(factors))));
      }
      while (at < row_end) {
        const float factor = factors[static_cast<std::size_t>(factor_of(at) - begin)];
        const std::uint64_t stop = std::min(row_end, at + block_columns - at % columns % block_columns);
        for (; at < stop; ++at) floats[static_cast<std::size_t>(at - first)] *= factor;
      }
    }
    return {};
  }

  const ByteSource factors_;
  const MatrixBlocks blocks_;
};

constexpr std::uint64_t kReadAtOnce = 65536;  // elements that are read at once

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
  [[nodiscard]] bool are_large() const noexcept { return how_.group > kReadAtOnce; }

  /// Computes the scales of large groups, each of which a read would have to see.
  Result<void> keep_scales() {
    if (!are_large()) return {};
    const Buffer buffer = make_buffer();
    for (std::uint64_t i = 0; i < size(); ++i) {
      std::uint32_t largest = 0;
      for (std::uint64_t at = 0; at < how_.group; at += kReadAtOnce) {
        ETSTREAM_ASSIGN(const auto piece,
                        read(i * how_.group + at, std::min(kReadAtOnce, how_.group - at), buffer));
        largest = std::max(largest, largest_magnitude(piece));
      }
      floats_.drop_pages(i * how_.group * sizeof(float), how_.group * sizeof(float));
      ETSTREAM_ASSIGN(scales_.emplace_back(), scale_of(largest, i));
    }
    return {};
  }

  using Buffer = std::unique_ptr<float[]>;
  [[nodiscard]] static Buffer make_buffer() { return std::make_unique_for_overwrite<float[]>(kReadAtOnce); }

  /// Reads `count` floats, at most kReadAtOnce, from `first` on.
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
      largest =
          std::max(largest, static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(each) & 0x7FFFFFFFU));
    }
    return static_cast<std::uint32_t>(largest);
  }

  Result<float> scale_of(std::uint32_t largest, std::uint64_t group) const {
    if (largest >= kFloat32Infinity) {
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
    const auto integers = std::make_unique_for_overwrite<std::int8_t[]>(kReadAtOnce);
    for (std::uint64_t at = offset * per_byte_; at < end;) {
      // A piece has whole groups, or is inside a large one.
      const std::uint64_t first = groups_.are_large() ? at : at / group * group;
      const std::uint64_t most = groups_.are_large() ? std::min(kReadAtOnce, (at / group + 1) * group - at)
                                                     : kReadAtOnce / group * group;
      const std::uint64_t last = groups_.are_large() ? end : (end + group - 1) / group * group;
      ETSTREAM_ASSIGN(const auto floats, groups_.read(first, std::min(most, last - first), buffer));
      for (std::size_t done = 0; done < floats.size();) {
        const auto part = floats.subspan(
            done, std::min(static_cast<std::size_t>(std::min(group, kReadAtOnce)), floats.size() - done));
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
          ETSTREAM_ASSIGN(floats,
                          groups_.read(i * group, std::min(left, kReadAtOnce / group) * group, buffer));
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

ByteSource scale_channels(ByteSource floats, std::vector<float> factors, std::uint64_t inner) {
  return ByteSource(std::make_shared<ScaledChannels>(std::move(floats), std::move(factors), inner));
}

ByteSource scale_blocks(ByteSource floats, ByteSource factors, const MatrixBlocks& blocks) {
  return ByteSource(std::make_shared<ScaledBlocks>(std::move(floats), std::move(factors), blocks));
}

Result<ByteSource> quantize(ByteSource floats, const Quantization& how, const std::string& tensor) {
  return make<QuantizedFloats>(std::move(floats), how, tensor, how.highest - how.lowest < 16 ? 2 : 1);
}

Result<ByteSource> scales_of(ByteSource floats, const Quantization& how, const std::string& tensor) {
  return make<GroupScales>(std::move(floats), how, tensor, 1);
}

}  // namespace etstream
