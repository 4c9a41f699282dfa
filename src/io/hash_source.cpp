// SPDX-License-Identifier: BSD-3-Clause
#include "io/hash_source.h"

#include "io/read_pieces.h"

namespace etstream {

Result<ContentHash> hash_of(const ByteSource& source) {
  ContentHasher hasher;
  ETSTREAM_TRY(read_pieces(source, [&](std::span<const std::byte> bytes) { hasher.update(bytes); }));
  return hasher.hash();
}

}  // namespace etstream
