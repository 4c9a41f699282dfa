// SPDX-License-Identifier: BSD-3-Clause
//
// The hash that segmented bundles store of their parts: 128-bit XXH3, highest byte first, as `xxhsum -H2`
// prints it. It detects damage; it does not protect against forgery.
//
//   const etstream::ContentHash none{};
//   if (none == etstream::ContentHash{}) std::puts("not hashed");
#pragma once

#include <array>
#include <cstddef>

namespace etstream {

/// The XXH3-128 of bytes, in its canonical byte order, which is big-endian.
using ContentHash = std::array<std::byte, 16>;

}  // namespace etstream
