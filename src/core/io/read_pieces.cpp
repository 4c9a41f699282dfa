// SPDX-License-Identifier: BSD-3-Clause
#include "core/io/read_pieces.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/packed_file.h"

namespace etstream {
namespace {

std::optional<NonzeroByte> first_nonzero(std::span<const std::byte> bytes, std::uint64_t offset) {
  const auto found = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
  if (found == bytes.end()) return std::nullopt;
  return NonzeroByte{offset + static_cast<std::uint64_t>(found - bytes.begin()),
                     std::to_integer<int>(*found)};
}

}  // namespace

Result<ContentHash> hash_of(const ByteSource& source) {
  ContentHasher hasher;
  ETSTREAM_TRY(read_pieces(source, [&](std::span<const std::byte> bytes) { hasher.update(bytes); }));
  return hasher.hash();
}

Result<void> find_keys(const ByteSource& source, const std::set<std::string>& keys,
                       std::set<std::string>& found) {
  std::size_t longest = 1;
  std::vector<std::pair<const std::string*, std::boyer_moore_horspool_searcher<std::string::const_iterator>>>
      searchers;
  for (const std::string& key : keys) {
    longest = std::max(longest, key.size());
    searchers.emplace_back(&key, std::boyer_moore_horspool_searcher(key.begin(), key.end()));
  }
  std::string window;  // the end of what has passed, as a key may begin there, and what comes
  return read_pieces(source, [&](std::span<const std::byte> bytes) {
    window.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (const auto& [key, searcher] : searchers) {
      if (found.contains(*key)) continue;
      if (std::search(window.cbegin(), window.cend(), searcher) != window.cend() || key->empty()) {
        found.insert(*key);
      }
    }
    window.erase(0, window.size() - std::min(window.size(), longest - 1));
  });
}

PagedReader::PagedReader(ByteSource source, std::string name)
    : source_(std::move(source)),
      name_(std::move(name)),
      pages_(is_decoded(source_) ? kPagesOfDecoded : kPages),
      numbers_(pages_.size(), kNoPage),
      next_(pages_.size() / kWays) {}

Result<void> PagedReader::read(std::uint64_t offset, std::span<std::byte> out) {
  if (!range_fits(offset, out.size(), source_.size())) {
    return unexpected(ErrorCode::kCorrupt, {name_, offset}, "{} bytes inside the {} bytes there are",
                      out.size(), source_.size());
  }
  const std::lock_guard lock(mutex_);
  while (!out.empty()) {
    ETSTREAM_ASSIGN(const auto bytes, page(offset / kPageSize));
    const auto from = static_cast<std::size_t>(offset % kPageSize);
    const std::size_t n = std::min(out.size(), bytes.size() - from);
    std::memcpy(out.data(), bytes.data() + from, n);
    out = out.subspan(n);
    offset += n;
  }
  return {};
}

Result<std::span<const std::byte>> PagedReader::page(std::uint64_t number) {
  const std::uint64_t start = number * kPageSize;
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kPageSize, source_.size() - start));
  const std::size_t set = static_cast<std::size_t>(number % next_.size()) * kWays;
  const auto first = numbers_.begin() + static_cast<std::ptrdiff_t>(set);
  std::size_t place = set + static_cast<std::size_t>(std::find(first, first + kWays, number) - first);
  if (place == set + kWays) {
    place = set + next_[set / kWays]++ % kWays;
    numbers_[place] = kNoPage;
    if (!pages_[place]) pages_[place] = std::make_unique_for_overwrite<std::byte[]>(kPageSize);
    ETSTREAM_TRY(source_.read_at(start, {pages_[place].get(), size}));
    numbers_[place] = number;
  }
  return std::span<const std::byte>(pages_[place].get(), size);
}

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
