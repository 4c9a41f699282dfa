// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/inspect.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "core/io/read_pieces.h"
#include "core/layout/same_bytes.h"
#include "files/pieces.h"

namespace etstream {
namespace {

/// Nests ranges by their places.
class Nesting {
 public:
  explicit Nesting(const ByteSource& whole) : whole_(whole) {}

  Result<std::vector<FileContent>> run(std::vector<FileContent> found) {
    // The whole file stays first. Of equal ranges, the one that was found first comes first.
    std::stable_sort(found.begin() + 1, found.end(), [](const FileContent& a, const FileContent& b) {
      return a.offset != b.offset ? a.offset < b.offset : a.size > b.size;
    });
    open(std::move(found.front()), 0);
    for (auto each = found.begin() + 1; each != found.end(); ++each) ETSTREAM_TRY(place(std::move(*each)));
    while (!open_.empty()) ETSTREAM_TRY(close());
    return std::move(out_);
  }

 private:
  struct Open {
    std::uint32_t index = 0;
    std::uint64_t filled = 0;  // up to where its children reach
    bool has_children = false;
  };

  [[nodiscard]] static std::uint64_t end_of(const FileContent& content) {
    return content.offset + content.size;
  }

  void open(FileContent content, std::uint32_t parent) {
    content.parent = parent;
    open_.push_back({static_cast<std::uint32_t>(out_.size()), content.offset});
    out_.push_back(std::move(content));
  }

  Result<void> place(FileContent content) {
    while (end_of(out_[open_.back().index]) <= content.offset) ETSTREAM_TRY(close());
    FileContent& within = out_[open_.back().index];
    if (content.offset == within.offset && content.size == within.size && open_.back().index != 0) {
      merge(within, std::move(content));
      return {};
    }
    // Only the part of a range that lies inside its parent, and behind its last sibling, counts.
    const std::uint64_t end = std::min(end_of(content), end_of(within));
    content.offset = std::max(content.offset, open_.back().filled);
    if (content.offset >= end) return {};
    content.size = end - content.offset;
    ETSTREAM_TRY(fill(open_.back(), content.offset));
    const std::uint32_t parent = open_.back().index;
    open_.back().filled = end;
    open_.back().has_children = true;
    open(std::move(content), parent);
    return {};
  }

  /// Merges two contents of one range. The content of a segment says more than the segment; names for one
  /// tensor are counted.
  static void merge(FileContent& into, FileContent content) {
    if (into.kind == ContentKind::kContainer && content.kind != ContentKind::kContainer) {
      content.parent = into.parent;
      content.detail += (content.detail.empty() ? "" : ", ") + into.path;
      into = std::move(content);
    } else {
      ++into.others;
    }
  }

  /// Fills the gap between the children of a parent, up to `end`: it holds tables, or padding.
  Result<void> fill(const Open& parent, std::uint64_t end) {
    if (parent.filled >= end) return {};
    FileContent gap{.kind = ContentKind::kTables, .offset = parent.filled, .size = end - parent.filled};
    gap.parent = parent.index;
    if (out_[parent.index].kind != ContentKind::kTables) {
      ETSTREAM_ASSIGN(const auto nonzero, find_nonzero(whole_, gap.offset, end));
      if (!nonzero) gap.kind = ContentKind::kPadding;
    }
    out_.push_back(std::move(gap));
    return {};
  }

  Result<void> close() {
    const Open closed = open_.back();
    open_.pop_back();
    FileContent& content = out_[closed.index];
    if (closed.has_children) return fill(closed, end_of(content));
    // A container without known contents holds data.
    if (content.kind == ContentKind::kContainer && closed.index != 0) content.kind = ContentKind::kOther;
    return {};
  }

  const ByteSource& whole_;
  std::vector<Open> open_;
  std::vector<FileContent> out_;
};

}  // namespace

std::string_view name_of(ContentKind kind) noexcept {
  static constexpr std::string_view kNames[] = {"container",  "tables",        "padding",
                                                "tensor",     "initial state", "delegate",
                                                "named data", "test data",     "data"};
  return kNames[static_cast<std::size_t>(kind)];
}

Result<std::vector<FileContent>> read_contents(const AnyFile& file, const SayMore& say_more) {
  const ByteSource& whole = source_of(file);
  std::vector<FileContent> found{{.kind = ContentKind::kContainer, .size = whole.size()}};
  ETSTREAM_TRY(for_each_piece(file, Pieces::kAll, [&](const Piece& piece) {
    const auto offset = piece.data.offset_in(whole);
    if (!offset || piece.data.size() == 0) return true;
    const auto element = piece.layout ? item_size(piece.layout->scalar_type) : 0;
    found.push_back({.kind = piece.kind,
                     .path = piece.path,
                     .detail = piece.what,
                     .offset = *offset,
                     .size = piece.data.size(),
                     .element_size = static_cast<std::uint32_t>(element)});
    if (say_more) say_more(piece, found.back());
    return true;
  }));
  return Nesting(whole).run(std::move(found));
}

Result<std::vector<FileContent>> read_contents(const ByteSource& file) {
  return without_exceptions([&]() -> Result<std::vector<FileContent>> {
    ETSTREAM_ASSIGN(const AnyFile opened, open_any(file));
    ETSTREAM_ASSIGN(auto contents, read_contents(opened));
    ETSTREAM_TRY(file.check_unchanged());
    return contents;
  });
}

namespace {

bool is_payload(const FileContent& content) {
  return content.kind != ContentKind::kTables && content.kind != ContentKind::kPadding;
}

}  // namespace

Result<std::vector<Duplicates>> find_duplicates(const ByteSource& file,
                                                const std::vector<FileContent>& contents) {
  std::vector<Duplicates> out;
  FileBudget budget(file);
  // The largest come first, and each comes after the one that it lies in: a part of a spare payload is spare
  // with it.
  std::vector<bool> is_spare(contents.size());
  std::vector<std::uint32_t> order(contents.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater{}, [&](std::uint32_t i) { return contents[i].size; });
  for (auto next = order.begin(); next != order.end();) {
    const std::uint64_t size = contents[*next].size;
    std::vector<std::uint32_t> payloads;
    std::vector<ByteSource> sources;
    for (; next != order.end() && contents[*next].size == size; ++next) {
      is_spare[*next] = is_spare[contents[*next].parent];
      if (is_spare[*next] || *next == 0 || !is_payload(contents[*next])) continue;
      payloads.push_back(*next);
      ETSTREAM_ASSIGN(sources.emplace_back(), file.slice(contents[*next].offset, size));
    }
    if (payloads.size() < 2) continue;
    for (std::size_t i = 0; i < payloads.size(); ++i) ETSTREAM_TRY(budget.spend(size));
    ETSTREAM_ASSIGN(const auto first, first_equal(sources));
    std::map<std::uint32_t, std::size_t> groups;  // in `out`, by the first of each
    for (std::uint32_t i = 0; i < first.size(); ++i) {
      if (first[i] == i) continue;
      const auto add = [&](std::size_t group, const FileContent& content) {
        out[group].paths.push_back(content.path);
        out[group].offsets.push_back(content.offset);
      };
      const auto [group, is_new] = groups.try_emplace(first[i], out.size());
      if (is_new) {
        out.push_back({size, {}, {}});
        add(group->second, contents[payloads[first[i]]]);
      }
      add(group->second, contents[payloads[i]]);
      is_spare[payloads[i]] = true;
    }
  }
  std::ranges::stable_sort(out, std::greater{}, &Duplicates::wasted);
  return out;
}

Result<std::vector<Duplicates>> find_duplicates(const ByteSource& file) {
  ETSTREAM_ASSIGN(FileInspection inspection, inspect(file, {.duplicates = true}));
  return std::move(inspection.duplicates);
}

namespace {

constexpr std::size_t kMostContents = 1024;
constexpr std::uint64_t kSample = std::uint64_t{64} << 10;
constexpr std::uint64_t kPlaces = 16;
constexpr std::uint64_t kSamplePiece = kSample / kPlaces;

/// Returns the bits that a byte takes if it is coded by its frequency among those at `at`, `at + step`...
double bits_of_plane(std::span<const std::byte> bytes, std::size_t at, std::size_t step) {
  std::array<std::uint32_t, 256> counts{};
  double all = 0;
  for (; at < bytes.size(); at += step, ++all) ++counts[std::to_integer<std::size_t>(bytes[at])];
  double bits = 0;
  double kinds = 0;
  for (const std::uint32_t count : counts) {
    if (count == 0) continue;
    bits -= count / all * std::log2(count / all);
    ++kinds;
  }
  // A sample shows less variety than the whole distribution: by this much on average (Miller and Madow).
  return std::min(bits + (kinds - 1) / (2 * all * std::log(2.0)), 8.0);
}

/// Returns the share of its size to which a sample can be reduced, as elements of so many bytes.
double share_of(std::span<const std::byte> sample, std::size_t element) {
  double bits = 0;
  for (std::size_t at = 0; at < element; ++at) bits += bits_of_plane(sample, at, element);
  return bits / (8.0 * static_cast<double>(element));
}

double least_share(std::span<const std::byte> sample, std::uint32_t element_size) {
  if (element_size != 0 && element_size <= 16) return share_of(sample, element_size);
  return std::min({share_of(sample, 1), share_of(sample, 2), share_of(sample, 4)});
}

/// Returns the contents to sample, the largest first.
std::vector<std::uint32_t> largest_leaves(const std::vector<FileContent>& contents) {
  std::vector<bool> is_parent(contents.size());
  for (std::size_t i = 1; i < contents.size(); ++i) is_parent[contents[i].parent] = true;
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < contents.size(); ++i) {
    if (!is_parent[i] && contents[i].size >= kSample) out.push_back(i);
  }
  std::ranges::stable_sort(out, std::greater{}, [&](std::uint32_t i) { return contents[i].size; });
  out.resize(std::min(out.size(), kMostContents));
  return out;
}

}  // namespace

Result<CodedSizes> estimate_coded_sizes(const ByteSource& file, const std::vector<FileContent>& contents) {
  return without_exceptions([&]() -> Result<CodedSizes> {
    CodedSizes out;
    const auto sample = std::make_unique_for_overwrite<std::byte[]>(kSample);
    std::vector<std::uint32_t> leaves = largest_leaves(contents);
    std::ranges::sort(leaves);
    for (const std::uint32_t leaf : leaves) {
      const FileContent& content = contents[leaf];
      // Pieces begin where elements do. Elements have 16 bytes at most.
      const std::uint64_t step = (content.size - kSamplePiece) / (kPlaces - 1) / 16 * 16;
      for (std::uint64_t i = 0; i < kPlaces; ++i) {
        const std::span piece(sample.get() + i * kSamplePiece, kSamplePiece);
        ETSTREAM_TRY(file.read_at(content.offset + i * step, piece));
      }
      const double share = least_share({sample.get(), kSample}, content.element_size);
      const auto size = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(content.size)));
      out.contents.push_back({leaf, std::min(size, content.size)});
      out.looked_at += content.size;
      out.saved += content.size - out.contents.back().size;
      out.bytes_read += kSample;
    }
    return out;
  });
}

}  // namespace etstream
