// SPDX-License-Identifier: BSD-3-Clause
#include "formats/tensor/converted_floats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/derived_storage.h"

namespace etstream {
namespace {

// Elements are converted by blocks: from `from` to float32, and from there to `to`. The loops have a fixed
// length and arrays of their own, so that compilers turn them into vector instructions.
constexpr std::size_t kBlock = 512;
using Block = std::array<std::byte, kBlock * sizeof(double)>;
using Float32Block = std::array<std::uint32_t, kBlock>;

using Decode = void (*)(const Block& in, Float32Block& out);
using Encode = void (*)(const Float32Block& in, Block& out);

template <class Stored, auto kToFloat32>
void decode_block(const Block& in, Float32Block& out) {
  std::array<Stored, kBlock> stored;
  std::memcpy(stored.data(), in.data(), sizeof(stored));
  for (std::size_t i = 0; i < kBlock; ++i) out[i] = kToFloat32(stored[i]);
}

template <class Stored, auto kFromFloat32>
void encode_block(const Float32Block& in, Block& out) {
  std::array<Stored, kBlock> stored;
  for (std::size_t i = 0; i < kBlock; ++i) stored[i] = static_cast<Stored>(kFromFloat32(in[i]));
  std::memcpy(out.data(), stored.data(), sizeof(stored));
}

void decode_float32(const Block& in, Float32Block& out) { std::memcpy(out.data(), in.data(), sizeof(out)); }

void encode_float32(const Float32Block& in, Block& out) { std::memcpy(out.data(), in.data(), sizeof(in)); }

constexpr std::uint32_t from_double(double value) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

constexpr double to_double(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// Converts like torch's vectorised loops, which take float32 and float64.
constexpr std::uint32_t to_bfloat16_with_other_nan(std::uint32_t bits) {
  return (bits & 0x7FFFFFFFU) > kFloat32Infinity ? 0xFFFFU : encode_float<kBFloat16>(bits);
}

struct FloatType {
  ScalarType type;
  Decode decode;
  Encode encode;
};

template <FloatFormat kFormat, class Stored = typename FloatBits<kFormat>::Stored>
constexpr FloatType small_type(ScalarType type) {
  return {type, decode_block<Stored, float32_bits<kFormat>>, encode_block<Stored, encode_float<kFormat>>};
}

constexpr std::array kFloatTypes = {
    small_type<kFloat16>(ScalarType::kFloat16),
    small_type<kBFloat16>(ScalarType::kBFloat16),
    FloatType{ScalarType::kFloat32, decode_float32, encode_float32},
    FloatType{ScalarType::kFloat64, decode_block<double, from_double>, encode_block<double, to_double>},
    small_type<kFloat8E5M2>(ScalarType::kFloat8E5M2),
    small_type<kFloat8E4M3FN>(ScalarType::kFloat8E4M3FN),
    small_type<kFloat8E5M2FNUZ>(ScalarType::kFloat8E5M2FNUZ),
    small_type<kFloat8E4M3FNUZ>(ScalarType::kFloat8E4M3FNUZ),
};

Result<FloatType> find_float_type(ScalarType type, const ByteSource& source) {
  for (const FloatType& known : kFloatTypes) {
    if (known.type == type) return known;
  }
  return error_in(ErrorCode::kInvalidArgument, source.name(), "expected a floating-point type, found {}",
                  name_of(type));
}

Encode find_encode(ScalarType from, const FloatType& to) {
  const bool vectorised = from == ScalarType::kFloat32 || from == ScalarType::kFloat64;
  if (!vectorised || to.type != ScalarType::kBFloat16) return to.encode;
  return encode_block<std::uint16_t, to_bfloat16_with_other_nan>;
}

class ConvertedFloats final : public DerivedStorage {
 public:
  ConvertedFloats(ByteSource source, const FloatType& from, const FloatType& to)
      : source_(std::move(source)),
        from_size_(item_size(from.type)),
        to_size_(item_size(to.type)),
        decode_(from.decode),
        encode_(find_encode(from.type, to)) {}

  std::uint64_t size() const noexcept override { return source_.size() / from_size_ * to_size_; }
  std::string name() const override { return source_.name(); }
  void for_each_part(const std::function<void(const ByteSource&)>& see) const override { see(source_); }

  /// Keeps the pages of the element in which the range ends, as it may be read again.
  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept override {
    const std::uint64_t first = offset / to_size_ * from_size_;
    source_.drop_pages(first, (offset + size) / to_size_ * from_size_ - first);
  }

  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t end = (offset + out.size() - 1) / to_size_ + 1;  // in elements, as what follows
    const std::uint64_t piece = kPiece / from_size_;
    std::uint64_t at = offset / to_size_;
    auto skip = static_cast<std::size_t>(offset % to_size_);  // of the first element
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(
        static_cast<std::size_t>(std::min(end - at, piece) * from_size_));
    while (at < end) {
      const auto n = static_cast<std::size_t>(std::min(end - at, piece));
      const std::span bytes(buffer.get(), n * static_cast<std::size_t>(from_size_));
      ETSTREAM_TRY(source_.read_at(at * from_size_, bytes));
      out = out.subspan(convert(bytes, skip, out));
      skip = 0;
      at += n;
    }
    return {};
  }

 private:
  static constexpr std::uint64_t kPiece = 65536;

  /// Fills `out` with the elements from `bytes`, without the first `skip` bytes of the result. Returns the
  /// number of bytes.
  std::size_t convert(std::span<const std::byte> bytes, std::size_t skip, std::span<std::byte> out) const {
    Block in{};
    Float32Block float32;
    Block converted;
    std::size_t done = 0;
    while (!bytes.empty()) {
      const std::size_t n = std::min<std::size_t>(kBlock * from_size_, bytes.size());
      std::memcpy(in.data(), bytes.data(), n);
      decode_(in, float32);
      encode_(float32, converted);
      const std::size_t size = std::min<std::size_t>(n / from_size_ * to_size_ - skip, out.size() - done);
      std::memcpy(out.data() + done, converted.data() + skip, size);
      bytes = bytes.subspan(n);
      done += size;
      skip = 0;
    }
    return done;
  }

  const ByteSource source_;
  const std::uint64_t from_size_;
  const std::uint64_t to_size_;
  const Decode decode_;
  const Encode encode_;
};

}  // namespace

Result<ByteSource> convert_floats(ByteSource source, ScalarType from, ScalarType to) {
  ETSTREAM_ASSIGN(const FloatType from_type, find_float_type(from, source));
  ETSTREAM_ASSIGN(const FloatType to_type, find_float_type(to, source));
  if (source.size() % item_size(from) != 0) {
    return error_in(ErrorCode::kInvalidArgument, source.name(),
                    "expected elements of {}, {} bytes each, found {} bytes", name_of(from), item_size(from),
                    source.size());
  }
  if (!checked_multiply(source.size() / item_size(from), item_size(to))) {
    return error_in(ErrorCode::kTooLarge, source.name(), "its {} elements take over 2^64 - 1 bytes as {}",
                    source.size() / item_size(from), name_of(to));
  }
  if (from == to) return source;
  return ByteSource(std::make_shared<ConvertedFloats>(std::move(source), from_type, to_type));
}

}  // namespace etstream
