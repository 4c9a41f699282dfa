// SPDX-License-Identifier: BSD-3-Clause
//
// The kinds of values, and sets of them.
#pragma once

#include <cstdint>
#include <string>

namespace etstream {
namespace pte {

/// The members of the union KernelTypes (program.fbs), a bit each.
enum class ValueKind : std::uint16_t {
  kNull = 1 << 0,
  kTensor = 1 << 1,
  kInt = 1 << 2,
  kBool = 1 << 3,
  kDouble = 1 << 4,
  kString = 1 << 5,
  kIntList = 1 << 6,
  kDoubleList = 1 << 7,
  kBoolList = 1 << 8,
  kTensorList = 1 << 9,
  kOptionalTensorList = 1 << 10,
  kUnknown = 1 << 15,  // to the library
};

}  // namespace pte

/// A set of ValueKinds: all that a value may hold, or that an operator takes. With kUnknown it may be
/// anything.
using Kinds = std::uint16_t;

[[nodiscard]] constexpr Kinds kinds(auto... each) {
  return static_cast<Kinds>((static_cast<unsigned>(each) | ...));
}

constexpr Kinds kAnything = kinds(pte::ValueKind::kUnknown);
/// The kinds that ExecuTorch reads as a number (Scalar).
constexpr Kinds kAnyNumber = kinds(pte::ValueKind::kInt, pte::ValueKind::kDouble, pte::ValueKind::kBool);

/// Names a set for messages: "a tensor or a boolean". Null is not named beside others.
[[nodiscard]] std::string name_of_kinds(Kinds set);

}  // namespace etstream
