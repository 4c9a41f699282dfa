// SPDX-License-Identifier: BSD-3-Clause
#include "files/content_index.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "core/base/checked.h"
#include "core/base/hashes.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"

namespace etstream {
namespace {

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

}  // namespace

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

}  // namespace etstream
