// SPDX-License-Identifier: BSD-3-Clause
//
// A sink that codes what passes.
#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/hashes.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/ordered_workers.h"
#include "core/io/transfer.h"
#include "core/packed/packed_format.h"
#include "core/packed/piece_coder.h"
#include "etstream/packed_file.h"

namespace etstream::packed {
namespace {

static_assert(kTransferBufferSize == kPieceSize, "each full buffer is a piece");

/// A piece before and after it is coded. Workers allocate nothing, see OrderedWorkers.
struct Piece {
  std::unique_ptr<std::byte[]> original = std::make_unique_for_overwrite<std::byte[]>(kPieceSize);
  std::size_t original_size = 0;
  std::unique_ptr<std::byte[]> coded = std::make_unique_for_overwrite<std::byte[]>(kMostCoded);
  Result<std::size_t> coded_size = 0;
  std::unique_ptr<std::byte[]> base;  // null but for an update
  std::unique_ptr<std::byte[]> window_bytes;
  BaseWindow window;
  std::vector<Run> runs;  // of an update
};

class PackingSink final : public BufferedSink {
 public:
  PackingSink(std::unique_ptr<Sink> packed, const PackOptions& options, std::optional<Base> base)
      : packed_(std::move(packed)), threads_(threads_for(options.threads)), base_(std::move(base)) {
    set_forgetful(true);
  }

  std::optional<FileIdentity> changed_in_place() const override { return packed_->changed_in_place(); }
  Result<void> make_durable() override { return packed_->make_durable(); }
  Result<void> take_back() override { return packed_->take_back(); }

 private:
  Result<void> take(std::span<const std::byte> bytes) override {
    if (original_size_ == 0) ETSTREAM_TRY(begin());
    ETSTREAM_ASSIGN(Piece* const piece, workers_->next([this](const Piece& each) { return write(each); }));
    exchange_buffer(piece->original);
    piece->original_size = bytes.size();
    if (base_) ETSTREAM_TRY(read_base(*piece));
    hash_.update(bytes);
    original_size_ += bytes.size();
    workers_->submit();
    return {};
  }

  Result<void> settle() override {
    if (original_size_ == 0) ETSTREAM_TRY(begin());
    ETSTREAM_TRY(workers_->finish_all([this](const Piece& each) { return write(each); }));
    workers_.reset();  // other sinks may be written before this is committed
    return write_table();
  }
  Result<void> wait_for_others() override { return packed_->prepare(); }
  Result<void> finish() override { return packed_->commit(); }

  Result<void> begin() {
    workers_.emplace(threads_, [for_updates = base_.has_value()] {
      return [encoder = std::make_shared<PieceEncoder>(for_updates)](Piece& piece) {
        const std::span original(piece.original.get(), piece.original_size);
        piece.coded_size =
            piece.base == nullptr
                ? encoder->encode(original, {piece.coded.get(), kMostCoded})
                : encoder->encode_update(original, piece.runs, {piece.base.get(), piece.original_size},
                                         piece.window, {piece.coded.get(), kMostCoded + kMostRunBytes});
      };
    });
    FileHeader header;
    if (base_) {
      header.kind = base_->recipe.empty() ? kUpdate : kDerived;
      header.frame.size += sizeof(BaseHeader);
    }
    ETSTREAM_TRY(write(bytes_of(header)));
    if (base_) {
      const BaseHeader base{base_->file.size(), base_->hash};
      table_hash_.update(bytes_of(base));
      ETSTREAM_TRY(write(bytes_of(base)));
    }
    if (header.kind == kDerived) {
      RecipeHeader recipe;
      recipe.frame.size = static_cast<std::uint32_t>(sizeof(recipe.identifier) + base_->recipe.size());
      ETSTREAM_TRY(write(bytes_of(recipe)));
      ETSTREAM_TRY(write(std::span<const std::byte>(base_->recipe)));
    }
    begin_ = packed_size_;
    return {};
  }

  /// Makes the runs of the next piece, and reads what the base has in their places.
  Result<void> read_base(Piece& piece) {
    if (piece.base == nullptr) {
      piece.base = std::make_unique_for_overwrite<std::byte[]>(kPieceSize);
      piece.coded = std::make_unique_for_overwrite<std::byte[]>(kMostCoded + kMostRunBytes);
    }
    piece.runs.clear();
    const std::uint64_t end = original_size_ + piece.original_size;
    const auto add = [&](std::uint64_t from, std::uint64_t to, std::uint32_t method, std::uint64_t offset) {
      if (from < to) piece.runs.push_back({static_cast<std::uint32_t>(to - from), method, offset});
    };
    std::uint64_t done = original_size_;
    std::uint64_t most_found = 0;  // in a range without a name
    piece.window = {};
    for (; next_range_ < base_->ranges.size() && piece.runs.size() + 3 < kMostRuns; ++next_range_) {
      const BaseRange& range = base_->ranges[next_range_];
      if (range.offset >= end) break;
      std::uint64_t from = std::max(done, range.offset);
      from += padding_to(from - range.offset, 4);  // a run begins with a whole element
      const std::uint64_t to = std::min(end, range.offset + range.size);
      if (from >= to) continue;
      const std::uint64_t offset = range.base_offset + (from - range.offset);
      add(done, from, kNew, 0);
      add(from, to, 1, offset);
      const auto n = static_cast<std::size_t>(to - from);
      ETSTREAM_TRY(base_->file.read_at(offset, {piece.base.get() + (from - original_size_), n}));
      base_->file.drop_pages(offset, n);
      if (!range.is_named && n > most_found) {
        most_found = n;
        piece.window.offset = offset - std::min(offset, from - original_size_);
      }
      done = to;
      if (to < range.offset + range.size) break;
    }
    add(done, end, kNew, 0);
    return most_found > 0 ? read_window(piece) : Result<void>();
  }

  /// Reads what the base has around the longest run, and where the piece would begin.
  Result<void> read_window(Piece& piece) {
    if (piece.window_bytes == nullptr) {
      piece.window_bytes = std::make_unique_for_overwrite<std::byte[]>(kPieceSize);
    }
    const auto n = static_cast<std::size_t>(
        std::min<std::uint64_t>(kPieceSize, base_->file.size() - piece.window.offset));
    const std::span bytes(piece.window_bytes.get(), n);
    piece.window.bytes = bytes;
    return base_->file.read_at(piece.window.offset, bytes);
  }

  Result<void> write(std::span<const std::byte> bytes) {
    packed_size_ += bytes.size();
    return packed_->append(ByteSource::memory(bytes));
  }

  Result<void> write(const Piece& piece) {
    ETSTREAM_ASSIGN(const std::size_t size, piece.coded_size);
    if (sizes_.size() == kMostPieces) {
      return make_error(ErrorCode::kTooLarge, "expected at most {} bytes to pack, found more",
                        kMostPieces * kPieceSize);
    }
    sizes_.push_back(static_cast<std::uint32_t>(size));
    return write(std::span<const std::byte>(piece.coded.get(), size));
  }

  Result<void> write_table() {
    Footer footer{.content_hash = hash_.hash(),
                  .original_size = original_size_,
                  .table_offset = packed_size_,
                  .piece_count = static_cast<std::uint32_t>(sizes_.size())};
    std::uint64_t offset = begin_;
    ETSTREAM_TRY(write(bytes_of(FrameStart{.size = static_cast<std::uint32_t>(table_size(sizes_.size()))})));
    std::vector<std::uint64_t> offsets;  // as many as fit in a small buffer
    constexpr std::size_t kMost = 4096;
    for (std::size_t i = 0; i < sizes_.size();) {
      for (offsets.clear(); i < sizes_.size() && offsets.size() < kMost; ++i) {
        offsets.push_back(offset);
        offset += sizes_[i];
      }
      const auto bytes = std::as_bytes(std::span(offsets));
      table_hash_.update(bytes);
      ETSTREAM_TRY(write(bytes));
    }
    table_hash_.update(bytes_of(footer));
    footer.table_hash = table_hash_.hash();
    return write(bytes_of(footer));
  }

  const std::unique_ptr<Sink> packed_;
  const unsigned threads_;
  const std::optional<Base> base_;
  std::size_t next_range_ = 0;  // of the base's, the first that does not end before the next piece
  std::optional<OrderedWorkers<Piece>> workers_;  // from the first byte to the last
  ContentHasher hash_;
  ContentHasher table_hash_;
  std::vector<std::uint32_t> sizes_;  // of the pieces with their headers
  std::uint64_t original_size_ = 0;
  std::uint64_t packed_size_ = 0;
  std::uint64_t begin_ = 0;  // of the first piece
};

}  // namespace
}  // namespace etstream::packed

namespace etstream {

void set_default_threads(unsigned threads) noexcept {
  constexpr unsigned kMostByDefault = 4;
  // The number of processors is 0 if it is not known.
  default_threads =
      threads != 0 ? threads : std::clamp(std::thread::hardware_concurrency(), 1U, kMostByDefault);
}

std::uint64_t packing_memory(const PackOptions& options) noexcept {
  const unsigned threads = threads_for(options.threads);
  return OrderedWorkers<packed::Piece>::items_for(threads) * (packed::kPieceSize + packed::kMostCoded) +
         threads * packed::kEncoderMemory + kTransferBufferSize;
}

std::unique_ptr<Sink> open_packing_sink(std::unique_ptr<Sink> packed, const PackOptions& options,
                                        std::optional<Base> base) {
  return std::make_unique<packed::PackingSink>(std::move(packed), options, std::move(base));
}

Result<void> pack(const ReadBytes& read, const std::string& name, Sink& sink) {
  return without_exceptions([&]() -> Result<void> {
    // Small enough to be in a processor's cache as it is passed on.
    std::vector<std::byte> bytes(std::size_t{256} << 10);
    for (bool is_first = true;; is_first = false) {
      ETSTREAM_ASSIGN(const std::size_t n, read(bytes));
      const ByteSource piece = ByteSource::memory(std::span(bytes).first(n));
      if (is_first) {
        ETSTREAM_ASSIGN(const bool is_packed_already, is_packed(piece));
        if (is_packed_already) {
          return with_advice(error_in(ErrorCode::kInvalidArgument, name, "is a packed file already"),
                             {"unpack it first"});
        }
      }
      ETSTREAM_TRY(sink.append(piece));
      if (n < bytes.size()) return {};
    }
  });
}

}  // namespace etstream
