// SPDX-License-Identifier: BSD-3-Clause
#include "io/hash_source.h"

#include <algorithm>
#include <vector>

#include "base/try.h"

namespace etstream {

Result<ContentHash> hash_of(const ByteSource& source) {
  ContentHasher hasher;
  std::vector<std::byte> buffer(std::size_t{1} << 18);
  for (std::uint64_t at = 0; at < source.size();) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), source.size() - at));
    ETSTREAM_TRY(source.read_at(at, std::span(buffer).first(n)));
    hasher.update(std::span(buffer).first(n));
    source.forget(at, n);
    at += n;
  }
  return hasher.hash();
}

}  // namespace etstream
