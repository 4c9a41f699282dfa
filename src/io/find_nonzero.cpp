// SPDX-License-Identifier: BSD-3-Clause
#include "io/find_nonzero.h"

#include <algorithm>
#include <array>

#include "base/try.h"

namespace etstream {

namespace {

std::optional<NonzeroByte> first_nonzero(std::span<const std::byte> bytes, std::uint64_t offset) {
  const auto found = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
  if (found == bytes.end()) return std::nullopt;
  return NonzeroByte{offset + static_cast<std::uint64_t>(found - bytes.begin()),
                     std::to_integer<int>(*found)};
}

}  // namespace

Result<std::optional<NonzeroByte>> find_nonzero(const ByteSource& source, std::uint64_t begin,
                                                std::uint64_t end) {
  std::array<std::byte, 4096> buffer;
  constexpr std::uint64_t kLongEnough = 65536;  // for another call, to see whether the file has bytes there
  while (begin < end) {
    if (end - begin >= kLongEnough) {
      begin = source.next_data(begin);
      if (begin >= end) break;
    }
    const auto bytes = std::span(buffer).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), end - begin)));
    ETSTREAM_TRY(source.read_at(begin, bytes));
    if (const auto found = first_nonzero(bytes, begin)) return found;
    begin += bytes.size();
  }
  return std::optional<NonzeroByte>();
}

Result<std::optional<NonzeroByte>> find_nonzero(PagedReader& reader, std::uint64_t begin, std::uint64_t end) {
  constexpr std::uint64_t kPage = PagedReader::kPageSize;
  if (begin >= end) return std::optional<NonzeroByte>();
  std::array<std::byte, kPage> buffer;
  const std::uint64_t in_pages = end - begin <= kPage ? end - begin : kPage - begin % kPage;
  const auto bytes = std::span(buffer).first(static_cast<std::size_t>(in_pages));
  ETSTREAM_TRY(reader.read(begin, bytes));
  if (const auto found = first_nonzero(bytes, begin)) return found;
  return find_nonzero(reader.source(), begin + in_pages, end);
}

}  // namespace etstream
