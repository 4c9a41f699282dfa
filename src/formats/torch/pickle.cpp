// SPDX-License-Identifier: BSD-3-Clause
#include "formats/torch/pickle.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

namespace etstream {
namespace {

constexpr auto kTorchTypes = std::to_array<TorchType>({
    {"uint8", "ByteStorage", 1, ScalarType::kUInt8, {}},
    {"int8", "CharStorage", 1, ScalarType::kInt8, {}},
    {"int16", "ShortStorage", 2, ScalarType::kInt16, {}},
    {"int32", "IntStorage", 4, ScalarType::kInt32, {}},
    {"int64", "LongStorage", 8, ScalarType::kInt64, {}},
    {"float16", "HalfStorage", 2, ScalarType::kFloat16, {}},
    {"float32", "FloatStorage", 4, ScalarType::kFloat32, {}},
    {"float64", "DoubleStorage", 8, ScalarType::kFloat64, {}},
    {"complex64", "ComplexFloatStorage", 8, ScalarType::kComplex64, {}},
    {"complex128", "ComplexDoubleStorage", 16, ScalarType::kComplex128, {}},
    {"bool", "BoolStorage", 1, ScalarType::kBool, {}},
    {"bfloat16", "BFloat16Storage", 2, ScalarType::kBFloat16, {}},
    {"complex32", {}, 4, ScalarType::kComplex32, {}},
    {"bits16", {}, 2, ScalarType::kBits16, {}},
    {"float8_e5m2", {}, 1, ScalarType::kFloat8E5M2, {}},
    {"float8_e4m3fn", {}, 1, ScalarType::kFloat8E4M3FN, {}},
    {"float8_e5m2fnuz", {}, 1, ScalarType::kFloat8E5M2FNUZ, {}},
    {"float8_e4m3fnuz", {}, 1, ScalarType::kFloat8E4M3FNUZ, {}},
    {"uint16", {}, 2, ScalarType::kUInt16, {}},
    {"uint32", {}, 4, ScalarType::kUInt32, {}},
    {"uint64", {}, 8, ScalarType::kUInt64, {}},
    {"float8_e8m0fnu", {}, 1, {}, "F8_E8M0"},
    {"float4_e2m1fn_x2", {}, 1, {}, "F4", 2},
    {"qint8", "QInt8Storage", 1, {}, {}},
    {"quint8", "QUInt8Storage", 1, {}, {}},
    {"qint32", "QInt32Storage", 4, {}, {}},
    {"quint4x2", "QUInt4x2Storage", 1, {}, {}},
    {"quint2x4", "QUInt2x4Storage", 1, {}, {}},
    {"bits8", {}, 1, {}, {}},
    {"bits1x8", {}, 1, {}, {}},
    {"bits2x4", {}, 1, {}, {}},
    {"bits4x2", {}, 1, {}, {}},
});

template <class Value>
const TorchType* find_by(Value TorchType::*member, const Value& value) noexcept {
  const auto* const found = std::ranges::find(kTorchTypes, value, member);
  return found == kTorchTypes.end() ? nullptr : found;
}

}  // namespace

const TorchType* torch_type(ScalarType type) noexcept {
  return find_by(&TorchType::type, std::optional(type));
}

const TorchType* torch_type_of_safetensors(std::string_view name) noexcept {
  return name.empty() ? nullptr : find_by(&TorchType::safetensors, name);
}

const TorchType* torch_type_of_dtype(std::string_view name) noexcept {
  return find_by(&TorchType::name, name);
}

const TorchType* torch_type_of_storage(std::string_view name) noexcept {
  return name.empty() ? nullptr : find_by(&TorchType::storage, name);
}

PickleWriter::PickleWriter() {
  put(PickleOpcode::kProtocol);
  put_bytes(std::uint8_t{2});
}

template <class Integer>
void PickleWriter::put_bytes(Integer number) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void PickleWriter::put_text(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void PickleWriter::put_integer(std::uint64_t number) {
  if (number <= std::numeric_limits<std::uint8_t>::max()) {
    put(PickleOpcode::kBinInt1);
    put_bytes(static_cast<std::uint8_t>(number));
  } else if (number <= std::numeric_limits<std::uint16_t>::max()) {
    put(PickleOpcode::kBinInt2);
    put_bytes(static_cast<std::uint16_t>(number));
  } else if (number <= static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
    put(PickleOpcode::kBinInt);
    put_bytes(static_cast<std::int32_t>(number));
  } else {
    // The number and its sign take the fewest bytes that hold them.
    std::uint8_t size = 1;
    while (size < sizeof(number) && number >> (8U * size - 1) != 0) ++size;
    put(PickleOpcode::kLong1);
    put_bytes(size);
    const auto bytes = std::as_bytes(std::span(&number, 1)).first(size);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
}

void PickleWriter::put_string(std::string_view string) {
  put(PickleOpcode::kBinUnicode);
  put_bytes(static_cast<std::uint32_t>(string.size()));
  put_text(string);
  memoize();
}

/// Puts the object that was kept under `key`, or else keeps the next one under it.
bool PickleWriter::put_known(const std::string& key) {
  const auto [found, is_new] = shared_.try_emplace(key, kept_);
  if (is_new) return false;
  if (found->second <= std::numeric_limits<std::uint8_t>::max()) {
    put(PickleOpcode::kBinGet);
    put_bytes(static_cast<std::uint8_t>(found->second));
  } else {
    put(PickleOpcode::kLongBinGet);
    put_bytes(found->second);
  }
  return true;
}

void PickleWriter::put_shared_string(const std::string& string) {
  if (!put_known(string)) put_string(string);
}

void PickleWriter::put_global(const std::string& module, std::string_view name) {
  const std::string lines = module + "\n" + std::string(name) + "\n";
  if (put_known(lines)) return;
  put(PickleOpcode::kGlobal);
  put_text(lines);
  memoize();
}

void PickleWriter::put_tuple(const std::vector<std::uint64_t>& numbers) {
  if (numbers.empty()) return put(PickleOpcode::kEmptyTuple);
  constexpr PickleOpcode kShort[] = {PickleOpcode::kTuple1, PickleOpcode::kTuple2, PickleOpcode::kTuple3};
  const bool is_short = numbers.size() <= std::size(kShort);
  if (!is_short) put(PickleOpcode::kMark);
  for (const std::uint64_t number : numbers) put_integer(number);
  put(is_short ? kShort[numbers.size() - 1] : PickleOpcode::kTuple);
  memoize();
}

void PickleWriter::memoize() {
  if (kept_ <= std::numeric_limits<std::uint8_t>::max()) {
    put(PickleOpcode::kBinPut);
    put_bytes(static_cast<std::uint8_t>(kept_));
  } else {
    put(PickleOpcode::kLongBinPut);
    put_bytes(kept_);
  }
  ++kept_;
}

std::vector<std::byte> PickleWriter::finish() && {
  put(PickleOpcode::kStop);
  return std::move(bytes_);
}

}  // namespace etstream
