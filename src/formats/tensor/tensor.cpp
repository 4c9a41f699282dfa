// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/tensor.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "formats/tensor/dimensions.h"
#include "formats/tensor/strided_source.h"

namespace etstream {
namespace {

struct ScalarTypeEntry {
  ScalarType type;
  std::uint64_t item_size;
  std::string_view name;
};

constexpr std::array kScalarTypes = {
    ScalarTypeEntry{ScalarType::kUInt8, 1, "uint8"},
    ScalarTypeEntry{ScalarType::kInt8, 1, "int8"},
    ScalarTypeEntry{ScalarType::kInt16, 2, "int16"},
    ScalarTypeEntry{ScalarType::kInt32, 4, "int32"},
    ScalarTypeEntry{ScalarType::kInt64, 8, "int64"},
    ScalarTypeEntry{ScalarType::kFloat16, 2, "float16"},
    ScalarTypeEntry{ScalarType::kFloat32, 4, "float32"},
    ScalarTypeEntry{ScalarType::kFloat64, 8, "float64"},
    ScalarTypeEntry{ScalarType::kComplex32, 4, "complex32"},
    ScalarTypeEntry{ScalarType::kComplex64, 8, "complex64"},
    ScalarTypeEntry{ScalarType::kComplex128, 16, "complex128"},
    ScalarTypeEntry{ScalarType::kBool, 1, "bool"},
    ScalarTypeEntry{ScalarType::kQInt8, 1, "qint8"},
    ScalarTypeEntry{ScalarType::kQUInt8, 1, "quint8"},
    ScalarTypeEntry{ScalarType::kQInt32, 4, "qint32"},
    ScalarTypeEntry{ScalarType::kBFloat16, 2, "bfloat16"},
    ScalarTypeEntry{ScalarType::kQUInt4x2, 1, "quint4x2"},
    ScalarTypeEntry{ScalarType::kQUInt2x4, 1, "quint2x4"},
    ScalarTypeEntry{ScalarType::kBits16, 2, "bits16"},
    ScalarTypeEntry{ScalarType::kFloat8E5M2, 1, "float8_e5m2"},
    ScalarTypeEntry{ScalarType::kFloat8E4M3FN, 1, "float8_e4m3fn"},
    ScalarTypeEntry{ScalarType::kFloat8E5M2FNUZ, 1, "float8_e5m2fnuz"},
    ScalarTypeEntry{ScalarType::kFloat8E4M3FNUZ, 1, "float8_e4m3fnuz"},
    ScalarTypeEntry{ScalarType::kUInt16, 2, "uint16"},
    ScalarTypeEntry{ScalarType::kUInt32, 4, "uint32"},
    ScalarTypeEntry{ScalarType::kUInt64, 8, "uint64"},
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

const ScalarTypeEntry* find(ScalarType type) noexcept {
  const auto* found = std::find_if(kScalarTypes.begin(), kScalarTypes.end(),
                                   [&](const ScalarTypeEntry& entry) { return entry.type == type; });
  return found == kScalarTypes.end() ? nullptr : found;
}

/// Returns the dimensions that decide where an element lies.
std::vector<std::uint8_t> without_ones(const std::vector<std::int32_t>& sizes,
                                       const std::vector<std::uint8_t>& order) {
  std::vector<std::uint8_t> out;
  std::copy_if(order.begin(), order.end(), std::back_inserter(out),
               [&](std::uint8_t dimension) { return sizes[dimension] != 1; });
  return out;
}

/// Returns the sizes in the order in which the elements lie.
std::vector<std::uint64_t> lying_sizes(const std::vector<std::int32_t>& sizes,
                                       const std::vector<std::uint8_t>& order) {
  std::vector<std::uint64_t> out;
  out.reserve(order.size());
  for (const std::uint8_t dimension : order) out.push_back(static_cast<std::uint64_t>(sizes[dimension]));
  return out;
}

/// Returns the elements of the tensor in the order `to`.
StridedElements elements_in_order(const Tensor& tensor, const std::vector<std::uint8_t>& to) {
  const std::uint64_t item = item_size(tensor.scalar_type);
  const auto lying = dense_strides(lying_sizes(tensor.sizes, tensor.dim_order), item);
  std::vector<std::int64_t> strides(lying.size());
  for (std::size_t i = 0; i < lying.size(); ++i) strides[tensor.dim_order[i]] = lying[i];
  StridedElements out{item, lying_sizes(tensor.sizes, to), {}, 0};
  for (const std::uint8_t dimension : to) out.strides.push_back(strides[dimension]);
  return out;
}

}  // namespace

std::uint64_t item_size(ScalarType type) noexcept {
  const ScalarTypeEntry* entry = find(type);
  return entry ? entry->item_size : 0;
}

bool is_floating_point(ScalarType type) noexcept {
  return name_of(type).find("float") != std::string_view::npos;
}

std::string_view name_of(ScalarType type) noexcept {
  const ScalarTypeEntry* entry = find(type);
  return entry ? entry->name : "unknown";
}

std::optional<ScalarType> find_scalar_type(std::string_view name) noexcept {
  constexpr std::string_view kPrefix = "torch.";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  for (const ScalarTypeEntry& entry : kScalarTypes) {
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

std::vector<std::uint8_t> contiguous_dim_order(std::size_t dimensions) {
  std::vector<std::uint8_t> order(dimensions);
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  return order;
}

std::string describe(const TensorLayout& layout) {
  return text("{} {}", name_of(layout.scalar_type), list_text(layout.sizes));
}

std::optional<std::string> problem_of(const Tensor& tensor) {
  if (item_size(tensor.scalar_type) == 0) {
    return text("has scalar type {}, which ExecuTorch doesn't know", static_cast<int>(tensor.scalar_type));
  }
  if (tensor.sizes.size() > kMostDimensions) {
    return text("has {} dimensions, expected at most {}", tensor.sizes.size(), kMostDimensions);
  }
  if (!is_permutation(tensor.dim_order, tensor.sizes.size())) {
    return text("has a dim_order that is not a permutation of its {} dimensions", tensor.sizes.size());
  }
  const auto expected = byte_size(tensor.scalar_type, tensor.sizes);
  if (!expected) return text("has sizes {}: {}", list_text(tensor.sizes), expected.error().message);
  if (tensor.data.size() == *expected) return std::nullopt;
  return text("has {} bytes of data, expected {} for {} {}", tensor.data.size(), *expected,
              name_of(tensor.scalar_type), list_text(tensor.sizes));
}

bool lie_alike(const std::vector<std::int32_t>& sizes, const std::vector<std::uint8_t>& one,
               const std::vector<std::uint8_t>& other) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return true;
  return without_ones(sizes, one) == without_ones(sizes, other);
}

Result<Tensor> with_dim_order(const Tensor& tensor, std::vector<std::uint8_t> dim_order) {
  return without_exceptions([&]() -> Result<Tensor> {
    for (const std::vector<std::uint8_t>* order : {&tensor.dim_order, &std::as_const(dim_order)}) {
      if (is_permutation(*order, tensor.sizes.size())) continue;
      return make_error(ErrorCode::kInvalidArgument, "dim_order {} is not a permutation of the {} dimensions",
                        list_text(*order), tensor.sizes.size());
    }
    ETSTREAM_ASSIGN(const std::uint64_t bytes, byte_size(tensor.scalar_type, tensor.sizes));
    if (tensor.data.size() != bytes) {
      return make_error(ErrorCode::kInvalidArgument, "a tensor has {} bytes of data, expected {}",
                        tensor.data.size(), bytes);
    }
    Tensor out{tensor.scalar_type, tensor.sizes, std::move(dim_order), tensor.data, tensor.any_order};
    if (lie_alike(tensor.sizes, tensor.dim_order, out.dim_order)) return out;
    ETSTREAM_ASSIGN(out.data, gather(tensor.data, elements_in_order(tensor, out.dim_order)));
    return out;
  });
}

}  // namespace etstream
