// SPDX-License-Identifier: BSD-3-Clause
//
// The operators that ExecuTorch has kernels for, and what the arguments of each are.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "formats/pte/program_model.h"

namespace etstream {

/// An argument of an operator's schema. Those named kOptional... may be null too.
enum class Parameter : std::uint8_t {
  kNone,  // behind the last
  kTensor,
  kOptionalTensor,
  kTensorList,
  kOptionalTensorList,  // Tensor?[]
  kInt,
  kOptionalInt,
  kDouble,
  kOptionalDouble,
  kBool,
  kOptionalBool,
  kScalar,
  kOptionalScalar,
  kString,
  kOptionalString,
  kIntList,
  kOptionalIntList,
  kDoubleList,
  kOptionalDoubleList,
  kBoolList,
  kOut,      // Tensor(a!), which the call writes to
  kOutList,  // Tensor(a!)[]
  kShape,    // a tensor whose data is not read
  kView,     // a tensor that gets another's data
  kReturn,   // the result of the call
};

using Signature = std::span<const Parameter>;

/// Returns the kinds that an argument may be. kReturn: any.
[[nodiscard]] Kinds kinds_taken(Parameter parameter);
[[nodiscard]] constexpr bool is_written(Parameter parameter) {
  return parameter == Parameter::kOut || parameter == Parameter::kOutList;
}

/// Operators with the same signature.
struct OperatorSignature {
  std::array<Parameter, 18> parameters;
  std::string_view operators;  // "NAMESPACE::NAME.OVERLOAD NAMESPACE::NAME.OVERLOAD..."
};

/// The signatures of all operators that are known.
extern const std::span<const OperatorSignature> kOperatorSignatures;

/// Finds the signature of an operator by its whole name; returns nothing for an unknown operator.
[[nodiscard]] std::optional<Signature> find_signature(std::string_view name);

}  // namespace etstream
