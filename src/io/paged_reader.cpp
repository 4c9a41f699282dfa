// SPDX-License-Identifier: BSD-3-Clause
#include "io/paged_reader.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"

namespace etstream {

PagedReader::PagedReader(ByteSource source, std::string name)
    : source_(std::move(source)), name_(std::move(name)) {
  numbers_.fill(kNoPage);
}

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
  const std::size_t set = static_cast<std::size_t>(number % (kPages / kWays)) * kWays;
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

}  // namespace etstream
