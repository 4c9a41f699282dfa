// SPDX-License-Identifier: BSD-3-Clause
//
// Base64 (RFC 4648, with padding): bytes in text.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace etstream {

/// Appends `bytes` to `out`. Pieces of a multiple of 3 bytes can follow one another.
void append_base64(std::span<const std::byte> bytes, std::string& out);

/// Appends the bytes that `text` encodes to `out`. False, with `out` unchanged, unless `text` is base64 as
/// append_base64() writes it.
[[nodiscard]] bool decode_base64(std::string_view text, std::vector<std::byte>& out);

}  // namespace etstream
