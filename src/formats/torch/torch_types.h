// SPDX-License-Identifier: BSD-3-Clause
//
// The names that torch's files have for the types of elements.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "etstream/scalar_type.h"

namespace etstream {

struct TorchType {
  std::string_view name;           // "bfloat16", of torch.bfloat16
  std::string_view storage;        // "BFloat16Storage"; "" where torch has untyped storages alone
  std::uint64_t item_size = 0;     // in bytes
  std::optional<ScalarType> type;  // none where ExecuTorch has no such type
  std::string_view safetensors;    // the name there of a type that ExecuTorch lacks: "F8_E8M0"; or ""
  std::uint64_t elements = 1;      // in an item, as safetensors counts them
};

/// Returns null for a type that torch's files can't have, and for quantised types, whose tensors need more
/// than their bytes.
[[nodiscard]] const TorchType* torch_type(ScalarType type) noexcept;
/// Finds a type that ExecuTorch lacks by its name in safetensors.
[[nodiscard]] const TorchType* torch_type_of_safetensors(std::string_view name) noexcept;
/// Finds a type by the name of its dtype: "bfloat16".
[[nodiscard]] const TorchType* torch_type_of_dtype(std::string_view name) noexcept;
/// Finds a type by the name of its storage's class: "BFloat16Storage".
[[nodiscard]] const TorchType* torch_type_of_storage(std::string_view name) noexcept;

}  // namespace etstream
