// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/xnnpack_cache_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <span>
#include <string_view>

#include "core/base/checked.h"
#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/paged_reader.h"
#include "formats/segments/expected_kind.h"
#include "formats/segments/known_kind.h"

namespace etstream {
namespace {

/// The footer, little-endian, ends the file. The index in front of it has for each entry the length of the
/// name (32 bits), the name, offset and size (64 bits each) and the seed (32 bits).
struct XnnpackCacheFooter {
  std::uint64_t index_offset = 0;
  std::uint32_t count = 0;
  std::array<char, 4> identifier = {};
  std::uint32_t version = 0;
  std::uint32_t unused = 0;  // not in the file
};
constexpr std::uint64_t kFooterSize = 20;
constexpr std::uint64_t kLengthSize = 4;
constexpr std::uint64_t kBehindName = 20;
constexpr std::uint64_t kMostIndex = std::uint64_t{16} << 20;
constexpr std::uint64_t kPackedAlignment = 64;  // XNN_ALLOCATION_ALIGNMENT, which kernels rely on

template <class... Arguments>
Error wrong_cache(const ByteSource& file, std::uint64_t offset, Template<Arguments...> words,
                  const Arguments&... arguments) {
  return unexpected(ErrorCode::kCorrupt, {file.name(), offset}, words, arguments...);
}

Result<XnnpackCacheFooter> read_footer(const ByteSource& file) {
  XnnpackCacheFooter footer;
  if (file.size() < kFooterSize) {
    return wrong_cache(file, 0, "a footer of {} bytes, found {}", kFooterSize, file.size());
  }
  const std::uint64_t at = file.size() - kFooterSize;
  ETSTREAM_TRY(file.read_at(at, std::as_writable_bytes(std::span(&footer, 1)).first(kFooterSize)));
  const std::string_view identifier(footer.identifier.data(), footer.identifier.size());
  if (identifier != kXnnpackCacheIdentifier) {
    return wrong_cache(file, at + 12, "the identifier of a weight cache of XNNPACK ({}), found {}",
                       kXnnpackCacheIdentifier, quote(identifier));
  }
  if (footer.version != XnnpackCacheFile::version()) {
    return unexpected(ErrorCode::kUnsupported, {file.name(), at + 16},
                      "version {} of weight caches of XNNPACK, found {}", XnnpackCacheFile::version(),
                      footer.version);
  }
  if (footer.index_offset >= at) {
    return wrong_cache(file, at,
                       "an index before the footer at {}, found it at {}: ExecuTorch does not load this", at,
                       footer.index_offset);
  }
  return footer;
}

template <class Number>
Result<Number> read_number(PagedReader& reader, std::uint64_t& at) {
  Number number = 0;
  ETSTREAM_TRY(reader.read(at, std::as_writable_bytes(std::span(&number, 1))));
  at += sizeof(number);
  return number;
}

/// Reads the entry at `at`, and moves that behind it. The index, which begins at `begin`, ends at `end`.
Result<XnnpackCacheEntry> read_entry(PagedReader& reader, std::uint64_t begin, std::uint64_t end,
                                     std::uint64_t& at) {
  const ByteSource& file = reader.source();
  const std::uint64_t position = at;
  XnnpackCacheEntry entry;
  ETSTREAM_ASSIGN(const auto length, read_number<std::uint32_t>(reader, at));
  if (end - at < kBehindName || end - at - kBehindName < length) {
    return wrong_cache(file, position, "an entry that ends before the footer at {}, found a name of {}", end,
                       counted(length, "byte"));
  }
  if (at - begin + length + kBehindName > kMostIndex) {
    return unexpected(ErrorCode::kTooLarge, {file.name(), position},
                      "an index of at most {} bytes, found a longer one", kMostIndex);
  }
  entry.name.resize(length);
  ETSTREAM_TRY(reader.read(at, std::as_writable_bytes(std::span(entry.name))));
  at += length;
  ETSTREAM_ASSIGN(entry.offset, read_number<std::uint64_t>(reader, at));
  ETSTREAM_ASSIGN(const auto size, read_number<std::uint64_t>(reader, at));
  ETSTREAM_ASSIGN(entry.seed, read_number<std::uint32_t>(reader, at));
  if (entry.offset >= begin || size > begin - entry.offset) {
    return wrong_cache(file, position, "weights {} in front of the index at {}, found {} bytes from {} on",
                       quote(entry.name), begin, size, entry.offset);
  }
  ETSTREAM_ASSIGN(entry.data, file.slice(entry.offset, size));
  return entry;
}

/// Returns the entries by their places.
std::vector<const XnnpackCacheEntry*> by_place(const std::vector<XnnpackCacheEntry>& entries) {
  std::vector<const XnnpackCacheEntry*> out;
  out.reserve(entries.size());
  for (const XnnpackCacheEntry& entry : entries) out.push_back(&entry);
  std::ranges::stable_sort(
      out, {}, [](const XnnpackCacheEntry* entry) { return std::pair(entry->offset, entry->data.size()); });
  return out;
}

}  // namespace

Result<XnnpackCacheFile> XnnpackCacheFile::open(ByteSource file) {
  const ByteSource whole = file;
  auto opened = without_exceptions([&]() -> Result<XnnpackCacheFile> {
    ETSTREAM_ASSIGN(const XnnpackCacheFooter footer, read_footer(file));
    XnnpackCacheFile out(file, footer.index_offset);
    out.count_ = footer.count;
    const std::uint64_t end = file.size() - kFooterSize;
    PagedReader reader(file, file.name());
    std::uint64_t at = footer.index_offset;
    // Like ExecuTorch, this ends without an error where there is no room for the length of another name.
    for (std::uint32_t i = 0; i < footer.count && end - at >= kLengthSize; ++i) {
      out.positions_.push_back(at);
      ETSTREAM_ASSIGN(out.entries_.emplace_back(), read_entry(reader, footer.index_offset, end, at));
    }
    out.index_end_ = at;
    return out;
  });
  return unless_other(whole, {"a weight cache of XNNPACK (XPWC)", {FileKind::kXnnpackCache}},
                      std::move(opened));
}

std::uint64_t XnnpackCacheFile::dead_bytes() const {
  std::set<std::string_view> seen;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (seen.insert(entry->name).second)
      ranges.emplace_back(entry->offset, entry->offset + entry->data.size());
  }
  std::ranges::sort(ranges);
  std::uint64_t end = 0;
  std::uint64_t dead = 0;
  for (const auto& [from, to] : ranges) {
    if (from > end) dead += from - end;
    end = std::max(end, to);
  }
  return dead + (index_offset_ - end);
}

void XnnpackCacheFile::verify(Findings& findings) const {
  const std::uint64_t footer = file_.size() - kFooterSize;
  if (entries_.size() != count_) {
    add_error(findings,
              wrong_cache(file_, footer + 8, "a count of the entries in the index, which is {}, found {}",
                          entries_.size(), count_));
  } else if (index_end_ != footer) {
    add_warning(findings,
                wrong_cache(file_, index_end_, "the footer behind the last entry, found it {} later",
                            counted(footer - index_end_, "byte")));
  }
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const XnnpackCacheEntry& entry = entries_[i];
    if (!names.insert(entry.name).second) {
      add_warning(findings, wrong_cache(file_, positions_[i], "each name once, found {} again, which counts",
                                        quote(entry.name)));
    }
    if (entry.offset % kPackedAlignment != 0) {
      add_error(findings,
                wrong_cache(file_, positions_[i],
                            "weights {} at a multiple of {}, as kernels read them, found them at {}",
                            quote(entry.name), kPackedAlignment, entry.offset));
    }
    if (entry.data.size() == 0) {
      add_error(findings, wrong_cache(file_, positions_[i], "weights {} of at least 1 byte, found none",
                                      quote(entry.name)));
    }
  }
  std::uint64_t end = 0;
  for (const XnnpackCacheEntry* const entry : by_place(entries_)) {
    if (entry->offset < end) {
      add_error(findings,
                wrong_cache(file_, entry->offset,
                            "weights {} behind those before them, which end at {}, found them in those",
                            quote(entry->name), end));
    }
    end = std::max(end, entry->offset + entry->data.size());
  }
}

}  // namespace etstream
