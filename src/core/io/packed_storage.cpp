// SPDX-License-Identifier: BSD-3-Clause
#include "core/io/packed_storage.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/ordered_workers.h"
#include "core/packed/packed_checks.h"
#include "core/packed/piece_coder.h"

namespace etstream::packed {
namespace {

/// The size from which on a read is worth the start of threads.
constexpr std::size_t kLeastLargeRead = std::size_t{4} << 20;

/// A piece as it lies in the file, with room for the largest.
struct StoredPiece {
  std::unique_ptr<std::byte[]> bytes = std::make_unique_for_overwrite<std::byte[]>(kMostCoded);
  std::uint64_t offset = 0;  // of its frames in the file
  PieceHeader header;
  std::span<const std::byte> coded;
  std::span<std::byte> original;  // where it is decoded to
  Result<void> result;
};

/// The memory that a thread decodes with.
struct Decoder {
  PieceDecoder pieces;
  StoredPiece piece;
};

/// Counts as a storage of its own, of as many bytes as it has unpacked, so it is no DerivedStorage.
class PackedStorage final : public ByteStorage {
 public:
  /// `file` has been checked, but for its pieces.
  PackedStorage(ByteSource file, const Footer& footer) : file_(std::move(file)), footer_(footer) {}

  std::uint64_t size() const noexcept override { return footer_.original_size; }
  std::string name() const override { return file_.name(); }
  Result<void> check_unchanged() const override { return file_.check_unchanged(); }
  bool lies_in(const FileIdentity& file) const override { return file_.lies_in(file); }

  Result<int> open_descriptor() const override {
    return error_in(ErrorCode::kUnsupported, file_.name(), "is packed, so its original bytes lie in no file");
  }

  [[nodiscard]] PackedSummary summary() const noexcept { return summary_of(file_, footer_); }

  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const std::uint64_t index = offset / kPieceSize;
      const std::size_t begin = offset % kPieceSize;
      const std::size_t size = piece_size(index, footer_.original_size);
      std::span<std::byte> part = out.first(std::min(out.size(), size - begin));
      if (part.size() == size) {
        const bool is_to_end = offset + out.size() == footer_.original_size;
        part = is_to_end ? out : out.first(out.size() - out.size() % kPieceSize);
        ETSTREAM_TRY(decode_pieces(index, part));
      } else {
        ETSTREAM_ASSIGN(const auto piece, kept(index, size));
        std::copy_n(piece->begin() + static_cast<std::ptrdiff_t>(begin), part.size(), part.begin());
      }
      offset += part.size();
      out = out.subspan(part.size());
    }
    return {};
  }

 private:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  struct Kept {
    std::uint64_t index = 0;
    Bytes bytes;
    std::uint64_t used = 0;  // when, in reads
  };

  [[nodiscard]] Result<void> finish(const StoredPiece& piece) const {
    if (piece.result) return {};
    const Error& reason = piece.result.error();
    return unexpected(reason.code, {file_.name(), piece.offset}, "{}", reason.message);
  }

  /// Reads where pieces from `index` on begin, and where the last of them ends.
  Result<void> read_offsets(std::uint64_t index, std::span<std::uint64_t> out) const {
    const std::uint64_t entry = footer_.table_offset + sizeof(FrameStart) + index * sizeof(out[0]);
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), footer_.piece_count - index));
    ETSTREAM_TRY(file_.read_at(entry, std::as_writable_bytes(out.first(n))));
    if (n < out.size()) out.back() = footer_.table_offset;
    return {};
  }

  /// Reads the whole piece from ends[0] to ends[1], which is to be decoded to `out`.
  Result<void> read(std::span<const std::uint64_t, 2> ends, std::span<std::byte> out,
                    StoredPiece& piece) const {
    // The offsets were checked, but the file may have changed.
    if (ends[0] > ends[1] || ends[1] - ends[0] < sizeof(PieceHeader) || ends[1] - ends[0] > kMostCoded) {
      return unexpected(ErrorCode::kCorrupt, {file_.name(), footer_.table_offset},
                        "offsets as they were, found others");
    }
    const std::span bytes(piece.bytes.get(), static_cast<std::size_t>(ends[1] - ends[0]));
    ETSTREAM_TRY(file_.read_at(ends[0], bytes));
    file_.drop_pages(ends[0], bytes.size());
    PieceHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    ETSTREAM_TRY(check(header, kWhole, file_.name(), ends[0]));
    piece.coded = bytes.subspan(sizeof(header));
    if (header.original_size != out.size() || header.coded_size != piece.coded.size()) {
      return unexpected(ErrorCode::kCorrupt, {file_.name(), ends[0]},
                        "a piece of {} bytes, coded as {}, found one of {}, coded as {}", out.size(),
                        piece.coded.size(), header.original_size, header.coded_size);
    }
    piece.offset = ends[0] + sizeof(header);
    piece.header = header;
    piece.original = out;
    return {};
  }

  /// Decodes whole pieces from `index` on. Several threads decode a large read, but of one reader at a time,
  /// which bounds the memory.
  Result<void> decode_pieces(std::uint64_t index, std::span<std::byte> out) const {
    if (out.size() >= kLeastLargeRead) {
      const std::unique_lock only(large_read_, std::try_to_lock);
      if (only) return decode_side_by_side(index, out);
    }
    for (; !out.empty(); ++index) {
      const auto piece = out.first(std::min<std::size_t>(out.size(), kPieceSize));
      ETSTREAM_TRY(decode(index, piece));
      out = out.subspan(piece.size());
    }
    return {};
  }

  /// This thread reads the pieces, while others decode those before.
  Result<void> decode_side_by_side(std::uint64_t index, std::span<std::byte> out) const {
    OrderedWorkers<StoredPiece> workers(threads_for(0), [] {
      return [decoder = std::make_shared<PieceDecoder>()](StoredPiece& piece) {
        piece.result = decoder->decode(piece.header, piece.coded, piece.original);
      };
    });
    const auto finish_piece = [this](const StoredPiece& piece) { return finish(piece); };
    std::array<std::uint64_t, 65> offsets{};
    for (std::size_t i = 0; !out.empty(); ++i, ++index) {
      i %= offsets.size() - 1;
      if (i == 0) {
        const std::size_t left = (out.size() + kPieceSize - 1) / kPieceSize;
        ETSTREAM_TRY(read_offsets(index, std::span(offsets).first(std::min(offsets.size(), left + 1))));
      }
      ETSTREAM_ASSIGN(StoredPiece* const piece, workers.next(finish_piece));
      const auto part = out.first(std::min<std::size_t>(out.size(), kPieceSize));
      ETSTREAM_TRY(read(std::span(offsets).subspan(i).first<2>(), part, *piece));
      workers.submit();
      out = out.subspan(part.size());
    }
    return workers.finish_all(finish_piece);
  }

  /// Decodes a whole piece.
  Result<void> decode(std::uint64_t index, std::span<std::byte> out) const {
    auto decoder = take_decoder();
    StoredPiece& piece = decoder->piece;
    std::array<std::uint64_t, 2> ends{};
    ETSTREAM_TRY(read_offsets(index, ends));
    ETSTREAM_TRY(read(ends, out, piece));
    piece.result = decoder->pieces.decode(piece.header, piece.coded, piece.original);
    ETSTREAM_TRY(finish(piece));
    const std::lock_guard lock(mutex_);
    decoders_.push_back(std::move(decoder));
    return {};
  }

  std::unique_ptr<Decoder> take_decoder() const {
    {
      const std::lock_guard lock(mutex_);
      if (!decoders_.empty()) {
        auto out = std::move(decoders_.back());
        decoders_.pop_back();
        return out;
      }
    }
    return std::make_unique<Decoder>();
  }

  /// Returns a piece that is kept for the next reads, as readers of metadata go back and forth.
  Result<Bytes> kept(std::uint64_t index, std::size_t size) const {
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::ranges::find_if(
          kept_, [&](const Kept& each) { return each.bytes != nullptr && each.index == index; });
      if (found != kept_.end()) {
        found->used = ++reads_;
        return found->bytes;
      }
    }
    auto piece = std::make_shared<std::vector<std::byte>>(size);
    ETSTREAM_TRY(decode(index, *piece));
    const std::lock_guard lock(mutex_);
    *std::ranges::min_element(kept_, {}, &Kept::used) = {index, piece, ++reads_};
    return Bytes(std::move(piece));
  }

  const ByteSource file_;
  const Footer footer_;
  mutable std::mutex large_read_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::vector<std::unique_ptr<Decoder>> decoders_;
  mutable std::array<Kept, 4> kept_;
  mutable std::uint64_t reads_ = 0;
};

}  // namespace

ByteSource original_bytes(ByteSource file, const Footer& footer) {
  return ByteSource(std::make_shared<PackedStorage>(std::move(file), footer));
}

PackedSummary summary_of(const ByteSource& file, const Footer& footer) noexcept {
  return {file.size(), footer.original_size, footer.piece_count, footer.content_hash};
}

Error needs_base(ErrorCode code, const std::string& name) {
  return with_advice(
      error_in(code, name, "is an update, and needs the file that it was made from to be restored"),
      {"give it as ", AdviceTerm::kBase});
}

}  // namespace etstream::packed

namespace etstream {

bool is_decoded(const ByteSource& source) noexcept {
  return dynamic_cast<const packed::PackedStorage*>(source.place().storage) != nullptr;
}

std::optional<PackedSummary> packed_summary(const ByteSource& file) {
  const auto* const storage = dynamic_cast<const packed::PackedStorage*>(file.place().storage);
  if (storage == nullptr || file.size() != storage->size()) return std::nullopt;
  return storage->summary();
}

}  // namespace etstream
