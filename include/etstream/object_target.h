// SPDX-License-Identifier: BSD-3-Clause
//
// The processors that etstream writes object files for.
//
//   for (const std::string_view name : etstream::kObjectTargets) std::puts(std::string(name).c_str());
#pragma once

#include <array>
#include <string_view>

namespace etstream {

/// The processor that an object file is for. All are little-endian.
enum class ObjectTarget {
  kArm,      // 32 bits, as Cortex-M, for any float ABI
  kAarch64,  // 64 bits
  kRiscv32,  // for ilp32; ld takes it for any float ABI, and lld for this one alone
  kRiscv64,  // for lp64d; the same
  kAmd64     // "x86-64"
};

/// Their names, in this order.
inline constexpr std::array<std::string_view, 5> kObjectTargets = {"arm", "aarch64", "riscv32", "riscv64",
                                                                   "x86-64"};

}  // namespace etstream
