// SPDX-License-Identifier: BSD-3-Clause
//
// A sink that codes what passes.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/content_hash.h"
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
};

class PackingSink final : public BufferedSink {
 public:
  PackingSink(std::unique_ptr<Sink> packed, const PackOptions& options)
      : packed_(std::move(packed)), threads_(threads_for(options.threads)) {
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
    workers_.emplace(threads_, [] {
      return [encoder = std::make_shared<PieceEncoder>()](Piece& piece) {
        piece.coded_size =
            encoder->encode({piece.original.get(), piece.original_size}, {piece.coded.get(), kMostCoded});
      };
    });
    return write(bytes_of(FileHeader()));
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
    ETSTREAM_TRY(write(bytes_of(FrameStart{.size = static_cast<std::uint32_t>(table_size(sizes_.size()))})));
    ContentHasher table_hash;
    std::vector<std::uint64_t> offsets;  // as many as fit in a small buffer
    constexpr std::size_t kMost = 4096;
    std::uint64_t offset = sizeof(FileHeader);
    for (std::size_t i = 0; i < sizes_.size();) {
      for (offsets.clear(); i < sizes_.size() && offsets.size() < kMost; ++i) {
        offsets.push_back(offset);
        offset += sizes_[i];
      }
      const auto bytes = std::as_bytes(std::span(offsets));
      table_hash.update(bytes);
      ETSTREAM_TRY(write(bytes));
    }
    table_hash.update(bytes_of(footer));
    footer.table_hash = table_hash.hash();
    return write(bytes_of(footer));
  }

  const std::unique_ptr<Sink> packed_;
  const unsigned threads_;
  std::optional<OrderedWorkers<Piece>> workers_;  // from the first byte to the last
  ContentHasher hash_;
  std::vector<std::uint32_t> sizes_;  // of the pieces with their headers
  std::uint64_t original_size_ = 0;
  std::uint64_t packed_size_ = 0;
};

}  // namespace
}  // namespace etstream::packed

namespace etstream {

std::uint64_t packing_memory(const PackOptions& options) noexcept {
  const unsigned threads = threads_for(options.threads);
  return OrderedWorkers<packed::Piece>::items_for(threads) * (packed::kPieceSize + packed::kMostCoded) +
         threads * packed::kEncoderMemory + kTransferBufferSize;
}

std::unique_ptr<Sink> open_packing_sink(std::unique_ptr<Sink> packed, const PackOptions& options) {
  return std::make_unique<packed::PackingSink>(std::move(packed), options);
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
          return error_in(ErrorCode::kInvalidArgument, name, "is a packed file already");
        }
      }
      ETSTREAM_TRY(sink.append(piece));
      if (n < bytes.size()) return {};
    }
  });
}

}  // namespace etstream
