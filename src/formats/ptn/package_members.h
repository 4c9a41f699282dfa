// SPDX-License-Identifier: BSD-3-Clause
//
// The members of a .ptn (exir/_serialize/_ptn.py of ExecuTorch 1.5.1).
#pragma once

#include <string>
#include <string_view>

#include "etstream/byte_source.h"
#include "etstream/native_package.h"
#include "etstream/result.h"
#include "etstream/scalar_type.h"

namespace etstream {

/// Does the same as read_native_graph(ByteSource). `name` is what messages call it.
[[nodiscard]] Result<NativeGraph> read_native_graph(const ByteSource& graph, const std::string& name);

namespace package {

inline constexpr std::string_view kGraph = "program.ptg";
inline constexpr std::string_view kConstants = "program.safetensors";
inline constexpr std::string_view kAliases = "aliases.json";

/// Returns whether constants may be of this type. No reader takes floats of 8 bits, though safetensors has
/// them.
[[nodiscard]] inline bool takes(ScalarType type) noexcept {
  return !(is_floating_point(type) && item_size(type) == 1);
}

}  // namespace package
}  // namespace etstream
