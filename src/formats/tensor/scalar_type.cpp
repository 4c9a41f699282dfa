// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/scalar_type.h"

#include <algorithm>
#include <array>

#include "core/base/checked.h"
#include "core/base/text.h"

namespace etstream {
namespace {

struct Entry {
  ScalarType type;
  std::uint64_t item_size;
  std::string_view name;
};

constexpr std::array kScalarTypes = {
    Entry{ScalarType::kUInt8, 1, "uint8"},
    Entry{ScalarType::kInt8, 1, "int8"},
    Entry{ScalarType::kInt16, 2, "int16"},
    Entry{ScalarType::kInt32, 4, "int32"},
    Entry{ScalarType::kInt64, 8, "int64"},
    Entry{ScalarType::kFloat16, 2, "float16"},
    Entry{ScalarType::kFloat32, 4, "float32"},
    Entry{ScalarType::kFloat64, 8, "float64"},
    Entry{ScalarType::kComplex32, 4, "complex32"},
    Entry{ScalarType::kComplex64, 8, "complex64"},
    Entry{ScalarType::kComplex128, 16, "complex128"},
    Entry{ScalarType::kBool, 1, "bool"},
    Entry{ScalarType::kQInt8, 1, "qint8"},
    Entry{ScalarType::kQUInt8, 1, "quint8"},
    Entry{ScalarType::kQInt32, 4, "qint32"},
    Entry{ScalarType::kBFloat16, 2, "bfloat16"},
    Entry{ScalarType::kQUInt4x2, 1, "quint4x2"},
    Entry{ScalarType::kQUInt2x4, 1, "quint2x4"},
    Entry{ScalarType::kBits16, 2, "bits16"},
    Entry{ScalarType::kFloat8E5M2, 1, "float8_e5m2"},
    Entry{ScalarType::kFloat8E4M3FN, 1, "float8_e4m3fn"},
    Entry{ScalarType::kFloat8E5M2FNUZ, 1, "float8_e5m2fnuz"},
    Entry{ScalarType::kFloat8E4M3FNUZ, 1, "float8_e4m3fnuz"},
    Entry{ScalarType::kUInt16, 2, "uint16"},
    Entry{ScalarType::kUInt32, 4, "uint32"},
    Entry{ScalarType::kUInt64, 8, "uint64"},
};

struct Spelling {
  std::string_view name;
  ScalarType type;
};

/// Other names for types: torch's second ones, short ones, and those of safetensors and GGUF.
constexpr std::array kSpellings = {
    Spelling{"half", ScalarType::kFloat16},
    Spelling{"float", ScalarType::kFloat32},
    Spelling{"double", ScalarType::kFloat64},
    Spelling{"fp16", ScalarType::kFloat16},
    Spelling{"fp32", ScalarType::kFloat32},
    Spelling{"fp64", ScalarType::kFloat64},
    Spelling{"f16", ScalarType::kFloat16},
    Spelling{"f32", ScalarType::kFloat32},
    Spelling{"f64", ScalarType::kFloat64},
    Spelling{"bf16", ScalarType::kBFloat16},
    Spelling{"short", ScalarType::kInt16},
    Spelling{"int", ScalarType::kInt32},
    Spelling{"long", ScalarType::kInt64},
    Spelling{"i8", ScalarType::kInt8},
    Spelling{"i16", ScalarType::kInt16},
    Spelling{"i32", ScalarType::kInt32},
    Spelling{"i64", ScalarType::kInt64},
    Spelling{"u8", ScalarType::kUInt8},
    Spelling{"u16", ScalarType::kUInt16},
    Spelling{"u32", ScalarType::kUInt32},
    Spelling{"u64", ScalarType::kUInt64},
    Spelling{"chalf", ScalarType::kComplex32},
    Spelling{"cfloat", ScalarType::kComplex64},
    Spelling{"cdouble", ScalarType::kComplex128},
    Spelling{"c64", ScalarType::kComplex64},
    Spelling{"f8_e5m2", ScalarType::kFloat8E5M2},
    Spelling{"f8_e4m3", ScalarType::kFloat8E4M3FN},
    Spelling{"f8_e4m3fnuz", ScalarType::kFloat8E4M3FNUZ},
    Spelling{"f8_e5m2fnuz", ScalarType::kFloat8E5M2FNUZ},
    Spelling{"fp8_e5m2", ScalarType::kFloat8E5M2},
    Spelling{"fp8_e4m3", ScalarType::kFloat8E4M3FN},
};

/// Returns whether `name` is `word`, which is in lower case, in any mix of cases.
bool is_spelled(std::string_view name, std::string_view word) noexcept {
  return std::equal(name.begin(), name.end(), word.begin(), word.end(), [](char c, char expected) {
    return (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) == expected;
  });
}

const Entry* find(ScalarType type) noexcept {
  const auto* found = std::find_if(kScalarTypes.begin(), kScalarTypes.end(),
                                   [&](const Entry& entry) { return entry.type == type; });
  return found == kScalarTypes.end() ? nullptr : found;
}

}  // namespace

std::uint64_t item_size(ScalarType type) noexcept {
  const Entry* entry = find(type);
  return entry ? entry->item_size : 0;
}

bool is_floating_point(ScalarType type) noexcept {
  return name_of(type).find("float") != std::string_view::npos;
}

std::string_view name_of(ScalarType type) noexcept {
  const Entry* entry = find(type);
  return entry ? entry->name : "unknown";
}

std::optional<ScalarType> find_scalar_type(std::string_view name) noexcept {
  constexpr std::string_view kPrefix = "torch.";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  for (const Entry& entry : kScalarTypes) {
    if (is_spelled(name, entry.name)) return entry.type;
  }
  for (const Spelling& spelling : kSpellings) {
    if (is_spelled(name, spelling.name)) return spelling.type;
  }
  return std::nullopt;
}

Result<std::uint64_t> byte_size(ScalarType type, std::span<const std::int32_t> sizes) {
  std::uint64_t bytes = item_size(type);
  if (bytes == 0) {
    return make_error(ErrorCode::kInvalidArgument, "scalar type {} is unknown", static_cast<int>(type));
  }
  for (const std::int32_t size : sizes) {
    if (size < 0)
      return make_error(ErrorCode::kInvalidArgument, "a dimension has the negative size {}", size);
    const auto product = checked_multiply(bytes, static_cast<std::uint64_t>(size));
    if (!product) return make_error(ErrorCode::kTooLarge, "a tensor is larger than 2^64 - 1 bytes");
    bytes = *product;
  }
  return bytes;
}

}  // namespace etstream
