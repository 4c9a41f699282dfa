// SPDX-License-Identifier: BSD-3-Clause
#include "formats/torch/pickle.h"

#include <algorithm>
#include <array>
#include <optional>

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

}  // namespace etstream
