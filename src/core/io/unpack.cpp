// SPDX-License-Identifier: BSD-3-Clause
//
// The original bytes of a packed file that comes from its first byte to its last.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/content_hash.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/ordered_workers.h"
#include "core/io/packed_storage.h"
#include "core/io/read_pieces.h"
#include "core/packed/packed_checks.h"
#include "core/packed/packed_format.h"
#include "core/packed/piece_coder.h"
#include "etstream/packed_file.h"

namespace etstream::packed {
namespace {

/// A piece before and after it is decoded. Workers allocate nothing, see OrderedWorkers.
struct CodedPiece {
  std::uint64_t offset = 0;  // of its frames in the packed file
  PieceHeader header;
  std::unique_ptr<std::byte[]> coded_bytes = std::make_unique_for_overwrite<std::byte[]>(kMostCoded);
  std::unique_ptr<std::byte[]> original_bytes = std::make_unique_for_overwrite<std::byte[]>(kPieceSize);
  std::span<std::byte> coded;
  std::span<std::byte> original;
  std::vector<Run> runs;  // of an update
  std::uint32_t sparse_planes = 0;
  std::vector<std::byte> window;  // of the base
  Result<void> result;
};

class Unpacker {
 public:
  Unpacker(const ReadBytes& read, const std::string& name, Sink& sink, const PackOptions& options,
           const std::optional<ByteSource>& base)
      : read_(read), name_(name), sink_(sink), base_(base), workers_(threads_for(options.threads), [] {
          return [decoder = std::make_shared<PieceDecoder>()](CodedPiece& piece) {
            piece.result = piece.runs.empty()
                               ? decoder->decode(piece.header, piece.coded, piece.original)
                               : decoder->decode_update(piece.header, piece.sparse_planes, piece.runs,
                                                        piece.window, piece.coded, piece.original);
          };
        }) {}

  Result<void> run() {
    FileHeader header;
    ETSTREAM_TRY(read_structure(header));
    ETSTREAM_TRY(check(header, name_));
    kind_ = header.kind;
    if (kind_ == kUpdate) {
      BaseHeader base;
      ETSTREAM_TRY(read_structure(base));
      ETSTREAM_TRY(check_base(base));
      for (ContentHasher* const hash : {&table_hash_, &found_hash_}) hash->update(bytes_of(base));
    } else if (base_) {
      return error_in(ErrorCode::kInvalidArgument, name_, "is no update, and is restored without {}",
                      quote(base_->name()));
    }
    ETSTREAM_TRY(pass_over(sizeof(FrameStart) + header.frame.size - position_));
    while (true) {
      PieceHeader piece;
      const std::uint64_t offset = position_;
      ETSTREAM_TRY(read_structure(piece));
      // The table has there its first offset, which is the size of the file's header, or the hash of nothing.
      if (piece.identifier != PieceHeader().identifier) return finish(piece, offset);
      ETSTREAM_TRY(check(piece, kind_, name_, offset));
      ETSTREAM_TRY(take(piece, offset));
    }
  }

 private:
  template <class T>
  Result<void> read_structure(T& out) {
    return read(std::as_writable_bytes(std::span(&out, 1)));
  }

  Result<void> read(std::span<std::byte> out) {
    ETSTREAM_ASSIGN(const std::size_t n, read_(out));
    position_ += n;
    if (n == out.size()) return {};
    return unexpected(ErrorCode::kCorrupt, {name_, position_}, "{} bytes more, found the end of the file",
                      out.size() - n);
  }

  Result<void> pass_over(std::uint64_t size) {
    std::array<std::byte, 512> ignored{};
    for (; size > 0; size -= std::min<std::uint64_t>(size, ignored.size())) {
      ETSTREAM_TRY(read(std::span(ignored).first(std::min<std::uint64_t>(size, ignored.size()))));
    }
    return {};
  }

  /// Checks that the base is the one that the update was made from.
  Result<void> check_base(const BaseHeader& right) {
    if (!base_) return needs_base(ErrorCode::kInvalidArgument, name_);
    const auto differs = [&](const std::string& expected, const std::string& found) {
      return error_in(ErrorCode::kInvalidArgument, base_->name(),
                      "is not the file that {} was made from: expected {}, found {}", quote(name_), expected,
                      found);
    };
    if (base_->size() != right.size) {
      return differs(counted(right.size, "byte"), counted(base_->size(), "byte"));
    }
    ETSTREAM_ASSIGN(const ContentHash hash, hash_of(*base_));
    if (hash == right.hash) return {};
    return differs("the hash " + hex(right.hash), hex(hash));
  }

  /// Reads the runs of a piece of an update, and what these take from the base.
  Result<void> read_runs(CodedPiece& piece, std::uint64_t offset) {
    RunsHeader header;
    ETSTREAM_TRY(read_structure(header));
    piece.runs.resize(run_count(piece.header));
    ETSTREAM_TRY(read(std::as_writable_bytes(std::span(piece.runs))));
    ETSTREAM_TRY(check(piece.header, header, piece.runs, base_->size(), name_, offset));
    piece.sparse_planes = header.sparse_planes;
    piece.window.resize(header.window_size);
    ETSTREAM_TRY(base_->read_at(header.window_offset, piece.window));
    auto left = piece.original;
    for (const Run& run : piece.runs) {
      if (run.method != kNew) ETSTREAM_TRY(base_->read_at(run.base_offset, left.first(run.size)));
      left = left.subspan(run.size);
    }
    return {};
  }

  Result<void> take(const PieceHeader& header, std::uint64_t offset) {
    if (original_size_ % kPieceSize != 0 || count_ == kMostPieces) {
      return unexpected(ErrorCode::kCorrupt, {name_, offset}, "the table after piece {}, found another piece",
                        count_);
    }
    table_hash_.update(bytes_of(offset));
    ++count_;
    original_size_ += header.original_size;
    ETSTREAM_ASSIGN(CodedPiece* const piece,
                    workers_.next([this](const CodedPiece& each) { return write(each); }));
    piece->header = header;
    piece->original = {piece->original_bytes.get(), header.original_size};
    if (kind_ == kUpdate) ETSTREAM_TRY(read_runs(*piece, offset));
    piece->offset = position_;
    piece->coded = {piece->coded_bytes.get(), header.coded_size};
    ETSTREAM_TRY(read(piece->coded));
    workers_.submit();
    return {};
  }

  Result<void> write(const CodedPiece& piece) {
    if (!piece.result) {
      return unexpected(piece.result.error().code, {name_, piece.offset}, "{}", piece.result.error().message);
    }
    hash_.update(piece.original);
    return sink_.append(ByteSource::memory(piece.original));
  }

  /// Reads the table, whose first bytes are in `begin`, and checks it.
  Result<void> finish(const PieceHeader& begin, std::uint64_t offset) {
    ETSTREAM_TRY(workers_.finish_all([this](const CodedPiece& each) { return write(each); }));
    if (begin.frame.magic != kSkippable || begin.frame.size != table_size(count_)) {
      return unexpected(ErrorCode::kCorrupt, {name_, offset},
                        "a piece, or the table of {} in a skippable frame of {} bytes, found neither",
                        counted(count_, "piece"), table_size(count_));
    }
    // The offsets must be those of the pieces, so their hash must be the same.
    Footer footer;
    std::vector<std::byte> bytes(std::size_t{64} << 10);
    const auto known = bytes_of(begin).subspan(sizeof(FrameStart));
    std::copy(known.begin(), known.end(), bytes.begin());
    std::size_t there = known.size();
    for (std::uint64_t left = table_size(count_) - there; left > 0;) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left, bytes.size() - there));
      ETSTREAM_TRY(read(std::span(bytes).subspan(there, n)));
      there += n;
      left -= n;
      // The footer, which comes last, may be in two of these parts.
      const std::size_t offsets = there - std::min(there, sizeof(footer));
      found_hash_.update(std::span(bytes).first(offsets));
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offsets), there - offsets, bytes.begin());
      there -= offsets;
    }
    std::memcpy(&footer, bytes.data(), sizeof(footer));
    ETSTREAM_ASSIGN(const std::size_t beyond, read_(std::span(bytes).first(1)));
    if (beyond != 0) {
      return unexpected(ErrorCode::kCorrupt, {name_, position_}, "the end of the file, found more bytes");
    }
    if (found_hash_.hash() != table_hash_.hash()) {
      return unexpected(ErrorCode::kCorrupt, {name_, offset + sizeof(FrameStart)},
                        "the offsets of the pieces before, found others");
    }
    ETSTREAM_TRY(check(footer, name_, position_));
    ETSTREAM_TRY(check_table_hash(footer, found_hash_, name_, position_));
    const std::uint64_t at = position_ - sizeof(footer);
    if (footer.original_size != original_size_) {
      return unexpected(ErrorCode::kCorrupt, {name_, at + offsetof(Footer, original_size)},
                        "{} bytes as the pieces have, found {}", original_size_, footer.original_size);
    }
    if (footer.content_hash != hash_.hash()) {
      return unexpected(ErrorCode::kCorrupt, {name_, at},
                        "the hash of the original bytes, found that of other bytes");
    }
    return {};
  }

  const ReadBytes& read_;
  const std::string& name_;
  Sink& sink_;
  const std::optional<ByteSource>& base_;
  OrderedWorkers<CodedPiece> workers_;
  ContentHasher hash_;
  ContentHasher table_hash_;
  ContentHasher found_hash_;  // of the table as it lies
  std::uint32_t kind_ = kWhole;
  std::uint64_t position_ = 0;  // in the packed file
  std::uint64_t original_size_ = 0;
  std::uint64_t count_ = 0;  // of the pieces
};

}  // namespace
}  // namespace etstream::packed

namespace etstream {

Result<void> unpack(const ReadBytes& read, const std::string& name, Sink& sink, const PackOptions& options,
                    const std::optional<ByteSource>& base) {
  return without_exceptions([&] { return packed::Unpacker(read, name, sink, options, base).run(); });
}

ReadBytes source_reader(ByteSource source) {
  return [source = std::move(source),
          at = std::uint64_t{0}](std::span<std::byte> out) mutable -> Result<std::size_t> {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), source.size() - at));
    ETSTREAM_TRY(source.read_at(at, out.first(n)));
    source.drop_pages(at, n);
    at += n;
    return n;
  };
}

}  // namespace etstream
