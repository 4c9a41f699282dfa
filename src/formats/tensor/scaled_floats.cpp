// SPDX-License-Identifier: BSD-3-Clause
#include "formats/tensor/scaled_floats.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "core/base/try.h"
#include "core/io/derived_storage.h"

namespace etstream {
namespace {

constexpr std::size_t kPiece = 16384;

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
    const auto buffer = std::make_unique_for_overwrite<float[]>(kPiece);
    while (!out.empty()) {
      const std::uint64_t first = offset / sizeof(float);
      const auto skip = static_cast<std::size_t>(offset % sizeof(float));
      const std::uint64_t wanted = (skip + out.size() - 1) / sizeof(float) + 1;
      const std::span floats(buffer.get(), static_cast<std::size_t>(std::min<std::uint64_t>(wanted, kPiece)));
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
  /// Multiplies the elements from `first` on, at most kPiece.
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
            static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, factor_of(last) + 1 - begin)));
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

}  // namespace

ByteSource scale_channels(ByteSource floats, std::vector<float> factors, std::uint64_t inner) {
  return ByteSource(std::make_shared<ScaledChannels>(std::move(floats), std::move(factors), inner));
}

ByteSource scale_blocks(ByteSource floats, ByteSource factors, const MatrixBlocks& blocks) {
  return ByteSource(std::make_shared<ScaledBlocks>(std::move(floats), std::move(factors), blocks));
}

}  // namespace etstream
