// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/diff.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/hashes.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "etstream/byte_source.h"
#include "etstream/inspect.h"
#include "etstream/packed_file.h"
#include "etstream/result.h"
#include "files/pieces.h"
#include "formats/pte/backends/backend_payload.h"

namespace etstream {
namespace {

/// Finds where bytes lie in a file of any size, the base, by hashes of a few of them at equal distances.
/// Memory: 3 MiB.
class ContentIndex {
 public:
  /// Reads all of `base`. Errors: those of reading.
  [[nodiscard]] static Result<ContentIndex> read(const ByteSource& base);

  /// Returns the hash of all of the base.
  [[nodiscard]] const ContentHash& hash() const noexcept { return hash_; }

  /// Appends ranges of `file` between two offsets that lie in the base, in order. A range goes on where bytes
  /// differ, up to the next that lie elsewhere. Errors: those of reading.
  [[nodiscard]] Result<void> find(const ByteSource& file, std::uint64_t begin, std::uint64_t end,
                                  std::vector<BaseRange>& out) const;

 private:
  class Search;

  /// The hash of the bytes at a multiple of step_, which is the place of the slot, but for empty ones.
  struct Slot {
    std::uint32_t check = 0;
    std::uint32_t block = 0;  // the multiple, from 1 on; 0 of an empty slot
  };

  explicit ContentIndex(const ByteSource& base);

  void add(std::uint64_t hash, std::uint64_t offset) noexcept;
  /// Returns the slot that has a hash, whose bits are mixed, or the empty one for it, if there is room.
  [[nodiscard]] std::optional<std::size_t> slot_of(std::uint64_t bits) const noexcept;
  /// Returns the offset of bytes in the base that probably have the hash.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::uint64_t hash) const noexcept;

  ByteSource base_;
  std::uint64_t step_;  // in bytes, between the bytes that are hashed
  ContentHash hash_{};
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> there_;  // a bit for each slot that a hash belongs in, which is quick to look up
};

/// The bytes that are hashed together.
constexpr std::size_t kWindow = 32;
constexpr std::uint64_t kLeastStep = 256;
constexpr std::uint64_t kMostHashes = std::uint64_t{1} << 17;
constexpr std::size_t kSlots = 2 * kMostHashes;
/// The slots that a hash may be in, from that in which it belongs on. Bytes can be made whose hashes belong
/// in few slots, and then most find no room. Of other bytes hardly any finds none, with half of all slots
/// taken.
constexpr std::size_t kMostProbes = 32;
/// The bytes that are read at a time.
constexpr std::size_t kBuffer = std::size_t{256} << 10;

constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;

/// The factor of the byte that leaves a window.
constexpr std::uint64_t kLastFactor = [] {
  std::uint64_t out = 1;
  for (std::size_t i = 0; i < kWindow; ++i) out *= kFactor;
  return out;
}();

/// Returns the hash of a window and of the byte that follows, without the byte that leaves.
std::uint64_t rolled(std::uint64_t hash, std::byte leaves, std::byte comes) noexcept {
  return hash * kFactor + (std::to_integer<std::uint64_t>(comes) + 1) -
         (std::to_integer<std::uint64_t>(leaves) + 1) * kLastFactor;
}

std::uint64_t hash_of(std::span<const std::byte, kWindow> window) noexcept {
  std::uint64_t out = 0;
  for (const std::byte byte : window) out = out * kFactor + (std::to_integer<std::uint64_t>(byte) + 1);
  return out;
}

/// Mixes the bits of a sum of products, whose low bits depend on the low bits of bytes alone.
std::uint64_t mixed(std::uint64_t hash) noexcept {
  hash ^= hash >> 32;
  return hash * kFactor;
}

bool is_constant(std::span<const std::byte, kWindow> window) noexcept {
  return std::memcmp(window.data(), window.data() + 1, kWindow - 1) == 0;
}

ContentIndex::ContentIndex(const ByteSource& base)
    : base_(base), step_(kLeastStep), slots_(kSlots), there_(kSlots / 64) {
  while (base.size() / step_ >= kMostHashes) step_ *= 2;
}

void ContentIndex::add(std::uint64_t hash, std::uint64_t offset) noexcept {
  const std::uint64_t bits = mixed(hash);
  const std::size_t belongs = bits >> 46;
  there_[belongs / 64] |= std::uint64_t{1} << belongs % 64;
  const auto slot = slot_of(bits);
  if (!slot || slots_[*slot].block != 0) return;  // the first place stays
  slots_[*slot] = {static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(offset / step_ + 1)};
}

std::optional<std::size_t> ContentIndex::slot_of(std::uint64_t bits) const noexcept {
  for (std::size_t i = 0; i < kMostProbes; ++i) {
    const std::size_t at = ((bits >> 46) + i) % kSlots;
    if (slots_[at].block == 0 || slots_[at].check == static_cast<std::uint32_t>(bits)) return at;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> ContentIndex::offset_of(std::uint64_t hash) const noexcept {
  const std::uint64_t bits = mixed(hash);
  const std::size_t belongs = bits >> 46;
  if ((there_[belongs / 64] >> belongs % 64 & 1) == 0) return std::nullopt;
  const auto slot = slot_of(bits);
  if (!slot || slots_[*slot].block == 0) return std::nullopt;
  return (slots_[*slot].block - 1) * step_;
}

Result<ContentIndex> ContentIndex::read(const ByteSource& base) {
  ContentIndex out(base);
  ContentHasher hasher;
  std::uint64_t begin = 0;
  ETSTREAM_TRY(read_pieces(base, [&](std::span<const std::byte> piece) {
    hasher.update(piece);
    for (std::uint64_t at = padding_to(begin, out.step_); at + kWindow <= piece.size(); at += out.step_) {
      const auto window = piece.subspan(static_cast<std::size_t>(at)).first<kWindow>();
      if (!is_constant(window)) out.add(hash_of(window), begin + at);
    }
    begin += piece.size();
  }));
  out.hash_ = hasher.hash();
  return out;
}

/// A search for a range of a file in the base.
class ContentIndex::Search {
 public:
  Search(const ContentIndex& index, const ByteSource& file, std::uint64_t begin, std::uint64_t end,
         std::vector<BaseRange>& out)
      : index_(index), file_(file), begin_(begin), end_(end), out_(out) {}

  Result<void> run() {
    std::uint64_t at = begin_;
    while (end_ - at >= kWindow) {
      // There is nothing to find in zeros.
      if (const std::uint64_t data = file_.next_data(at); data > at) {
        at = std::min(data, end_);
        continue;
      }
      const auto bytes =
          std::span(buffer_.get(), static_cast<std::size_t>(std::min<std::uint64_t>(kBuffer, end_ - at)));
      ETSTREAM_TRY(file_.read_at(at, bytes));
      file_.drop_pages(at, bytes.size());
      ETSTREAM_ASSIGN(const std::uint64_t done, scan(at, bytes));
      at += done;
    }
    close(end_);
    return {};
  }

 private:
  /// Looks for bytes at `at`. Returns how many were looked at, and need not be seen again.
  Result<std::uint64_t> scan(std::uint64_t at, std::span<const std::byte> bytes) {
    std::uint64_t hash = hash_of(bytes.first<kWindow>());
    for (std::size_t i = 0;; ++i) {
      if (const auto offset = index_.offset_of(hash)) {
        ETSTREAM_ASSIGN(const std::uint64_t same, take(at + i, *offset));
        // A step on at least, so that the bytes that are compared are bounded.
        if (same > 0) return std::min(end_ - at, i + std::max(same, index_.step_));
      }
      if (i + kWindow == bytes.size()) return i + 1;
      hash = rolled(hash, bytes[i], bytes[i + kWindow]);
    }
  }

  /// Takes a range that lies at `offset` in the base. Returns how many bytes are the same there: 0 if only
  /// the hashes are.
  Result<std::uint64_t> take(std::uint64_t at, std::uint64_t offset) {
    ETSTREAM_ASSIGN(const std::uint64_t same, same_after(at, offset));
    if (same < kWindow) return 0;
    const std::uint64_t same_end = same_end_;
    same_end_ = at + same;
    if (is_open_ && at - open_.offset == offset - open_.base_offset) return same;
    ETSTREAM_ASSIGN(const std::uint64_t before, same_before(at, offset, std::max(same_end, begin_)));
    // Bytes that differ before the first range may be like those before it in the base.
    std::uint64_t begin = is_open_ ? at - before : at - std::min(at - begin_, offset);
    begin += padding_to(begin, 4);  // where elements are likely to begin
    close(begin);
    is_open_ = true;
    open_ = {begin, 0, offset - (at - begin)};
    return same;
  }

  void close(std::uint64_t end) {
    if (!is_open_ || end <= open_.offset) return;
    open_.size = std::min(end - open_.offset, index_.base_.size() - open_.base_offset);
    out_.push_back(open_);
    is_open_ = false;
  }

  /// Returns how many bytes from `at` on are those from `offset` on in the base.
  Result<std::uint64_t> same_after(std::uint64_t at, std::uint64_t offset) {
    const std::uint64_t most = std::min(end_ - at, index_.base_.size() - offset);
    std::uint64_t same = 0;
    while (same < most) {
      // Bytes can be made of which only the hashes are the same, so that at first few are read.
      ETSTREAM_ASSIGN(const auto pair,
                      read_both(at + same, offset + same, same == 0 ? kWindow : most - same));
      const auto [one, other] = pair;
      const auto n = std::mismatch(one.begin(), one.end(), other.begin()).first - one.begin();
      same += static_cast<std::uint64_t>(n);
      if (static_cast<std::size_t>(n) < one.size()) break;
    }
    return same;
  }

  /// Returns how many bytes before `at`, down to `least`, are those before `offset` in the base.
  Result<std::uint64_t> same_before(std::uint64_t at, std::uint64_t offset, std::uint64_t least) {
    const std::uint64_t most = std::min({at - std::min(at, least), offset, index_.step_});
    ETSTREAM_ASSIGN(const auto pair, read_both(at - most, offset - most, most));
    const auto [one, other] = pair;
    const auto n = std::mismatch(one.rbegin(), one.rend(), other.rbegin()).first - one.rbegin();
    return static_cast<std::uint64_t>(n);
  }

  using Pair = std::pair<std::span<const std::byte>, std::span<const std::byte>>;

  /// Reads up to `size` bytes of both files.
  Result<Pair> read_both(std::uint64_t at, std::uint64_t offset, std::uint64_t size) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(size, one_.size()));
    const auto one = std::span(one_).first(n);
    const auto other = std::span(other_).first(n);
    ETSTREAM_TRY(file_.read_at(at, one));
    ETSTREAM_TRY(index_.base_.read_at(offset, other));
    return Pair(one, other);
  }

  const ContentIndex& index_;
  const ByteSource& file_;
  const std::uint64_t begin_;
  const std::uint64_t end_;
  std::vector<BaseRange>& out_;
  std::unique_ptr<std::byte[]> buffer_ = std::make_unique_for_overwrite<std::byte[]>(kBuffer);
  std::vector<std::byte> one_ = std::vector<std::byte>(kBuffer / 4);
  std::vector<std::byte> other_ = std::vector<std::byte>(kBuffer / 4);
  BaseRange open_;  // goes on
  bool is_open_ = false;
  std::uint64_t same_end_ = 0;  // of the bytes in it that are the same
};

Result<void> ContentIndex::find(const ByteSource& file, std::uint64_t begin, std::uint64_t end,
                                std::vector<BaseRange>& out) const {
  return end - begin < kWindow ? Result<void>() : Search(*this, file, begin, end, out).run();
}

/// The parts of a file that have names and no parts themselves, and what its delegates ask for.
struct Parts {
  std::vector<FileContent> contents;
  std::vector<DelegateUses> delegates;
  std::string_view above = {};  // goes before the paths of the named data of these
};

Result<Parts> parts_of(const ByteSource& file) {
  ETSTREAM_ASSIGN(const AnyFile opened, open_any(file));
  Parts out;
  ETSTREAM_ASSIGN(auto contents, read_contents(opened));
  std::vector<bool> has_parts(contents.size());
  for (const FileContent& each : contents) has_parts[each.parent] = true;
  for (std::size_t i = 0; i < contents.size(); ++i) {
    if (!has_parts[i] && !contents[i].path.empty()) out.contents.push_back(std::move(contents[i]));
  }
  const auto* program = std::get_if<ProgramFile>(&opened);
  if (program != nullptr) {
    ETSTREAM_ASSIGN(out.delegates, read_named_data_uses(*program));
  } else if (const auto* const bundle = std::get_if<BundledProgramFile>(&opened)) {
    out.above = "program/";
    if (const auto bundled = bundle->open_program()) {
      ETSTREAM_ASSIGN(out.delegates, read_named_data_uses(*bundled));
    }
  }
  return out;
}

/// Finds parts of one file in another.
class PartMatch {
 public:
  PartMatch(const Parts& file, const Parts& base) : base_(base.contents), used_(base.contents.size()) {
    for (std::size_t i = 0; i < base_.size(); ++i) by_path_.emplace(base_[i].path, i);
    // A key is a hash of the data, so what is asked for in the same place has another key.
    for (std::size_t i = 0; i < std::min(file.delegates.size(), base.delegates.size()); ++i) {
      const auto& uses = file.delegates[i].uses;
      const auto& base_uses = base.delegates[i].uses;
      for (std::size_t j = 0; j < std::min(uses.size(), base_uses.size()); ++j) {
        if (uses[j].size != base_uses[j].size) continue;
        base_paths_.emplace(named_path(file.above, uses[j].key), named_path(base.above, base_uses[j].key));
      }
    }
  }

  std::vector<BaseRange> run(const std::vector<FileContent>& contents) {
    std::vector<BaseRange> out;
    std::vector<const FileContent*> left;
    for (const FileContent& each : contents) {
      const auto base_path = base_paths_.find(each.path);
      if (add(each, each.path, out)) continue;
      if (base_path != base_paths_.end() && add(each, base_path->second, out)) continue;
      if (each.kind == ContentKind::kNamedData) left.push_back(&each);
    }
    // Keys that no delegate of a known backend asks for: by order, among those of one size.
    std::map<std::uint64_t, std::vector<std::size_t>> by_size;
    for (std::size_t i = base_.size(); i-- > 0;) {
      if (!used_[i] && base_[i].kind == ContentKind::kNamedData) by_size[base_[i].size].push_back(i);
    }
    for (const FileContent* each : left) {
      auto& found = by_size[each->size];
      if (found.empty()) continue;
      out.push_back({each->offset, each->size, base_[found.back()].offset, true});
      found.pop_back();
    }
    std::ranges::sort(out, {}, &BaseRange::offset);
    return out;
  }

 private:
  /// Adds the range of `content` that has the path in the base, if there is one. A tensor may have grown.
  bool add(const FileContent& content, const std::string& path, std::vector<BaseRange>& out) {
    const auto found = by_path_.find(path);
    if (found == by_path_.end()) return false;
    const FileContent& other = base_[found->second];
    const bool fits = other.size == content.size ||
                      (content.element_size != 0 && content.element_size == other.element_size);
    if (!fits) return false;
    used_[found->second] = true;
    by_path_.erase(found);
    out.push_back({content.offset, std::min(content.size, other.size), other.offset, true});
    return true;
  }

  const std::vector<FileContent>& base_;
  std::vector<bool> used_;
  std::map<std::string, std::size_t> by_path_;  // those that are not used
  std::map<std::string, std::string> base_paths_;
};

}  // namespace

Result<Base> match_base(const ByteSource& file, const ByteSource& base) {
  return without_exceptions([&]() -> Result<Base> {
    std::vector<BaseRange> named;
    {
      const auto parts = parts_of(file);
      const auto base_parts = parts ? parts_of(base) : parts;
      if (base_parts) named = PartMatch(*parts, *base_parts).run(parts->contents);
    }
    ETSTREAM_ASSIGN(const ContentIndex index, ContentIndex::read(base));
    Base out{.file = base, .hash = index.hash()};
    std::uint64_t done = 0;
    for (const BaseRange& each : named) {
      ETSTREAM_TRY(index.find(file, done, each.offset, out.ranges));
      out.ranges.push_back(each);
      done = each.offset + each.size;
    }
    ETSTREAM_TRY(index.find(file, done, file.size(), out.ranges));
    return out;
  });
}

}  // namespace etstream
