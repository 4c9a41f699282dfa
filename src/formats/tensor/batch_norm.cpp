// SPDX-License-Identifier: BSD-3-Clause
#include "formats/tensor/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/base/try.h"
#include "core/io/derived_storage.h"

namespace etstream {
namespace {

/// Calls `compute(channel)` for each channel and returns the results.
template <class Compute>
std::vector<float> for_channels(const BatchNorm& norm, Compute compute) {
  std::vector<float> out(norm.mean.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = compute(i);
  return out;
}

float inverse_deviation(const BatchNorm& norm, std::size_t i) {
  return 1.0F / std::sqrt(norm.variance[i] + norm.epsilon);
}

double deviation(const BatchNorm& norm, std::size_t i) {
  return std::sqrt(double{norm.variance[i]} + double{norm.epsilon});
}

class ScaledChannels final : public DerivedStorage {
 public:
  ScaledChannels(ByteSource floats, std::vector<float> factors, std::uint64_t inner)
      : floats_(std::move(floats)), factors_(std::move(factors)), inner_(inner) {}

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
      for (std::size_t i = 0; i < floats.size(); ++i) {
        floats[i] *= factors_[static_cast<std::size_t>((first + i) / inner_ % factors_.size())];
      }
      const auto bytes = std::as_bytes(floats).subspan(skip);
      const auto part = bytes.first(std::min(bytes.size(), out.size()));
      std::memcpy(out.data(), part.data(), part.size());
      out = out.subspan(part.size());
      offset += part.size();
    }
    return {};
  }

 private:
  static constexpr std::size_t kPiece = 16384;

  const ByteSource floats_;
  const std::vector<float> factors_;
  const std::uint64_t inner_;
};

}  // namespace

std::vector<float> folded_factors(const BatchNorm& norm) {
  return for_channels(norm, [&](std::size_t i) { return norm.weight[i] * inverse_deviation(norm, i); });
}

std::vector<float> folded_bias(const BatchNorm& norm, std::span<const float> own, bool is_linear) {
  return for_channels(norm, [&](std::size_t i) {
    const float centered = (own.empty() ? 0.0F : own[i]) - norm.mean[i];
    const float inverse = inverse_deviation(norm, i);
    if (is_linear) return centered * (norm.weight[i] * inverse) + norm.bias[i];
    return centered * inverse * norm.weight[i] + norm.bias[i];
  });
}

std::vector<float> weights_of(const BatchNorm& norm) {
  return for_channels(
      norm, [&](std::size_t i) { return static_cast<float>(double{norm.weight[i]} / deviation(norm, i)); });
}

std::vector<float> bias_of(const BatchNorm& norm) {
  return for_channels(norm, [&](std::size_t i) {
    return static_cast<float>(-double{norm.mean[i]} * double{norm.weight[i]} / deviation(norm, i) +
                              double{norm.bias[i]});
  });
}

ByteSource scale_channels(ByteSource floats, std::vector<float> factors, std::uint64_t inner) {
  return ByteSource(std::make_shared<ScaledChannels>(std::move(floats), std::move(factors), inner));
}

}  // namespace etstream
