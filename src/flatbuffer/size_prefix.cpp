// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/size_prefix.h"

#include <cstring>
#include <span>
#include <vector>

#include "base/text.h"
#include "base/try.h"

namespace etstream {

Result<ByteSource> without_size_prefix(const ByteSource& prefixed, const std::string& name) {
  constexpr std::size_t kPrefix = 4;
  constexpr std::size_t kOffset = 4;
  constexpr std::size_t kIdentifier = 4;
  if (prefixed.size() < kPrefix + kOffset + kIdentifier) {
    return make_error(ErrorCode::kCorrupt, "{}: expected a flatbuffer with its size before it, found {}",
                      name, counted(prefixed.size(), "byte"));
  }
  std::uint32_t root = 0;
  std::vector<std::byte> header(kOffset + kIdentifier);
  ETSTREAM_TRY(prefixed.read_at(kPrefix, std::as_writable_bytes(std::span(&root, 1))));
  ETSTREAM_TRY(prefixed.read_at(kPrefix + kOffset, std::span(header).subspan(kOffset)));
  if (root > prefixed.size() - kPrefix) {
    return unexpected(ErrorCode::kCorrupt, {name, kPrefix}, "an offset to a table inside the file, found {}",
                      root);
  }
  root += kPrefix;
  std::memcpy(header.data(), &root, sizeof(root));
  const std::size_t size = header.size();
  ETSTREAM_ASSIGN(ByteSource rest, prefixed.slice(size, prefixed.size() - size));
  return ByteSource::concatenation({ByteSource::owned(std::move(header)), std::move(rest)});
}

}  // namespace etstream
