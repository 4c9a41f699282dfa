// SPDX-License-Identifier: BSD-3-Clause
//
// The original bytes of a packed file: at any place, what its parts say of them, and from its first byte to
// its last as they come.
#include "core/io/packed_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/hashes.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/ordered_workers.h"
#include "core/io/read_pieces.h"
#include "core/packed/packed_checks.h"
#include "core/packed/packed_format.h"
#include "core/packed/piece_coder.h"
#include "etstream/packed_file.h"

namespace etstream::packed {
namespace {

/// The size from which on a read is worth the start of threads.
constexpr std::size_t kLeastLargeRead = std::size_t{4} << 20;

PackedSummary summary_of(const ByteSource& file, const Footer& footer) noexcept {
  return {file.size(), footer.original_size, footer.piece_count, footer.content_hash};
}

/// A piece before and after it is decoded. Workers allocate nothing, see OrderedWorkers.
struct CodedPiece {
  std::unique_ptr<std::byte[]> bytes =
      std::make_unique_for_overwrite<std::byte[]>(kMostCoded + kMostRunBytes);
  std::unique_ptr<std::byte[]> original_bytes;  // where nobody else has room for them
  std::uint64_t offset = 0;                     // of its frames in the packed file
  PieceHeader header;
  std::span<std::byte> coded;
  std::span<std::byte> original;  // where it is decoded to
  std::vector<Run> runs;          // of an update
  std::uint32_t sparse_planes = 0;
  std::vector<std::byte> window;  // of the base
  Result<void> result;

  void decode(PieceDecoder& decoder) {
    result = runs.empty() ? decoder.decode(header, coded, original)
                          : decoder.decode_update(header, sparse_planes, runs, window, coded, original);
  }

  /// Checks the runs of a piece of the file `name` at `at`, and reads what they take from the base.
  Result<void> read_base(const RunsHeader& runs_header, const ByteSource& base, const std::string& name,
                         std::uint64_t at) {
    ETSTREAM_TRY(check(header, runs_header, runs, base.size(), name, at));
    sparse_planes = runs_header.sparse_planes;
    window.resize(runs_header.window_size);
    ETSTREAM_TRY(base.read_at(runs_header.window_offset, window));
    auto left = original;
    for (const Run& run : runs) {
      if (run.method != kNew) ETSTREAM_TRY(base.read_at(run.base_offset, left.first(run.size)));
      left = left.subspan(run.size);
    }
    return {};
  }
};

/// The memory that a thread decodes with.
struct Decoder {
  PieceDecoder pieces;
  CodedPiece piece;
};

/// Returns what set_default_base() sets.
OpenBase& default_base() {
  static OpenBase base;
  return base;
}

template <class T>
std::span<std::byte> writable_bytes_of(T& structure) noexcept {
  return std::as_writable_bytes(std::span(&structure, 1));
}

/// The beginning of a file, up to its first piece.
struct Beginning {
  FileHeader header{.identifier = 0};
  BaseHeader base;                     // of an update
  std::vector<std::byte> recipe = {};  // that makes the base
  std::uint64_t size = 0;              // in bytes

  /// Reads what follows the header, which was checked, by `read`, which fills its argument.
  template <class Read>
  Result<void> read_rest(const Read& read, const std::string& name) {
    std::uint64_t ignored = header.frame.size + sizeof(FrameStart) - sizeof(header);
    size = sizeof(header) + ignored;
    if (header.kind == kWhole) return pass_over(ignored, read);
    ETSTREAM_TRY(read(writable_bytes_of(base)));
    ETSTREAM_TRY(pass_over(ignored - sizeof(base), read));
    if (header.kind != kDerived) return {};
    RecipeHeader recipe_header;
    ETSTREAM_TRY(read(writable_bytes_of(recipe_header)));
    ETSTREAM_TRY(check(recipe_header, name, size));
    recipe.resize(recipe_header.frame.size - sizeof(recipe_header.identifier));
    ETSTREAM_TRY(read(std::span(recipe)));
    ContentHasher hasher;
    hasher.update(recipe);
    if (hasher.hash() != base.hash) {
      return unexpected(ErrorCode::kCorrupt, {name, size + sizeof(recipe_header)},
                        "a recipe with the hash in the header, found another");
    }
    size += sizeof(recipe_header) + recipe.size();
    return {};
  }

  /// Opens the base, and checks that it is the one that the update `name` was made from.
  [[nodiscard]] Result<ByteSource> open_base(const OpenBase& open, const std::string& name,
                                             bool checks_all) const {
    ETSTREAM_ASSIGN(ByteSource out, open(recipe, checks_all));
    const auto differs = [&](const std::string& expected, const std::string& found) {
      return error_in(ErrorCode::kInvalidArgument, out.name(),
                      "is not the file that {} was made from: expected {}, found {}", quote(name), expected,
                      found);
    };
    if (out.size() != base.size) return differs(counted(base.size, "byte"), counted(out.size(), "byte"));
    if (header.kind == kDerived) return out;
    ETSTREAM_ASSIGN(const ContentHash hash, hash_of(out));
    return hash == base.hash ? Result<ByteSource>(std::move(out))
                             : differs("the hash " + hex(base.hash), hex(hash));
  }

 private:
  template <class Read>
  static Result<void> pass_over(std::uint64_t size, const Read& read) {
    std::array<std::byte, 512> ignored{};
    for (; size > 0; size -= std::min<std::uint64_t>(size, ignored.size())) {
      ETSTREAM_TRY(read(std::span(ignored).first(std::min<std::uint64_t>(size, ignored.size()))));
    }
    return {};
  }
};

/// Reads where pieces from `index` on begin, and where the last of them ends.
Result<void> read_offsets(const ByteSource& file, const Footer& footer, std::uint64_t index,
                          std::span<std::uint64_t> out) {
  const std::uint64_t entry = footer.table_offset + sizeof(FrameStart) + index * sizeof(out[0]);
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), footer.piece_count - index));
  ETSTREAM_TRY(file.read_at(entry, std::as_writable_bytes(out.first(n))));
  if (n < out.size()) out.back() = footer.table_offset;
  return {};
}

/// Counts as a storage of its own, of as many bytes as it has unpacked, so it is no DerivedStorage.
class PackedStorage final : public ByteStorage {
 public:
  /// `file` has been checked, but for its pieces. `base` is that of an update.
  PackedStorage(ByteSource file, const Footer& footer, std::optional<ByteSource> base)
      : file_(std::move(file)), footer_(footer), base_(std::move(base)) {}

  std::uint64_t size() const noexcept override { return footer_.original_size; }
  std::string name() const override { return file_.name(); }
  Result<void> check_unchanged() const override {
    ETSTREAM_TRY(file_.check_unchanged());
    return base_ ? base_->check_unchanged() : Result<void>();
  }
  bool lies_in(const FileIdentity& file) const override {
    return file_.lies_in(file) || (base_ && base_->lies_in(file));
  }

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

  [[nodiscard]] Result<void> finish(const CodedPiece& piece) const {
    if (piece.result) return {};
    const Error& reason = piece.result.error();
    return unexpected(reason.code, {file_.name(), piece.offset}, "{}", reason.message);
  }

  /// Reads the whole piece from ends[0] to ends[1], which is to be decoded to `out`.
  Result<void> read(std::span<const std::uint64_t, 2> ends, std::span<std::byte> out,
                    CodedPiece& piece) const {
    const std::uint64_t begin = ends[0];
    const std::size_t least = sizeof(PieceHeader) + (base_ ? sizeof(RunsHeader) + sizeof(Run) : 0);
    const std::size_t most = kMostCoded + (base_ ? kMostRunBytes : 0);
    // The offsets were checked, but the file may have changed.
    if (begin > ends[1] || ends[1] - begin < least || ends[1] - begin > most) {
      return unexpected(ErrorCode::kCorrupt, {file_.name(), footer_.table_offset},
                        "offsets as they were, found others");
    }
    const std::span bytes(piece.bytes.get(), static_cast<std::size_t>(ends[1] - begin));
    ETSTREAM_TRY(file_.read_at(begin, bytes));
    file_.drop_pages(begin, bytes.size());
    std::memcpy(&piece.header, bytes.data(), sizeof(piece.header));
    const PieceHeader& header = piece.header;
    ETSTREAM_TRY(check(header, base_ ? kUpdate : kWhole, file_.name(), begin));
    const std::size_t headers = sizeof(FrameStart) + header.frame.size;
    if (header.original_size != out.size() || headers + header.coded_size != bytes.size()) {
      return unexpected(ErrorCode::kCorrupt, {file_.name(), begin},
                        "a piece of {} bytes, coded as {}, found one of {}, coded as {}", out.size(),
                        bytes.size() - std::min(headers, bytes.size()), header.original_size,
                        header.coded_size);
    }
    piece.offset = begin + headers;
    piece.coded = bytes.subspan(headers);
    piece.original = out;
    if (!base_) return {};
    RunsHeader runs;
    std::memcpy(&runs, bytes.data() + sizeof(header), sizeof(runs));
    piece.runs.resize(run_count(header));
    std::memcpy(piece.runs.data(), bytes.data() + sizeof(header) + sizeof(runs),
                piece.runs.size() * sizeof(Run));
    return piece.read_base(runs, *base_, file_.name(), begin);
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
    OrderedWorkers<CodedPiece> workers(threads_for(0), [] {
      return [decoder = std::make_shared<PieceDecoder>()](CodedPiece& piece) { piece.decode(*decoder); };
    });
    const auto finish_piece = [this](const CodedPiece& piece) { return finish(piece); };
    std::array<std::uint64_t, 65> offsets{};
    for (std::size_t i = 0; !out.empty(); ++i, ++index) {
      i %= offsets.size() - 1;
      if (i == 0) {
        const std::size_t left = (out.size() + kPieceSize - 1) / kPieceSize;
        ETSTREAM_TRY(read_offsets(file_, footer_, index,
                                  std::span(offsets).first(std::min(offsets.size(), left + 1))));
      }
      ETSTREAM_ASSIGN(CodedPiece* const piece, workers.next(finish_piece));
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
    CodedPiece& piece = decoder->piece;
    std::array<std::uint64_t, 2> ends{};
    ETSTREAM_TRY(read_offsets(file_, footer_, index, ends));
    ETSTREAM_TRY(read(ends, out, piece));
    piece.decode(decoder->pieces);
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
  const std::optional<ByteSource> base_;
  mutable std::mutex large_read_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::vector<std::unique_ptr<Decoder>> decoders_;
  mutable std::array<Kept, 4> kept_;
  mutable std::uint64_t reads_ = 0;
};

template <class T>
Result<void> read_structure(const ByteSource& file, std::uint64_t offset, T& out) {
  return file.read_at(offset, writable_bytes_of(out));
}

/// Checks that pieces follow one another to the table, and the table's hash.
Result<void> check_offsets(const ByteSource& file, const Beginning& beginning, const Footer& footer) {
  const std::uint64_t begin = beginning.size;
  const bool is_update = beginning.header.kind != kWhole;
  const std::uint64_t least_piece = sizeof(PieceHeader) + (is_update ? sizeof(RunsHeader) + sizeof(Run) : 1);
  const std::uint64_t most_piece = kMostCoded + (is_update ? kMostRunBytes : 0);
  ContentHasher hash;
  if (is_update) hash.update(bytes_of(beginning.base));
  std::array<std::uint64_t, 4096> offsets{};
  std::uint64_t before = begin;
  for (std::uint64_t i = 0; i < footer.piece_count; i += offsets.size()) {
    const std::uint64_t at = footer.table_offset + sizeof(FrameStart) + i * sizeof(offsets[0]);
    const auto some = std::span(offsets).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(offsets.size(), footer.piece_count - i)));
    ETSTREAM_TRY(file.read_at(at, std::as_writable_bytes(some)));
    hash.update(std::as_bytes(some));
    for (std::size_t j = 0; j < some.size(); ++j) {
      const std::uint64_t least = i + j == 0 ? begin : before + least_piece;
      const std::uint64_t most = i + j == 0 ? begin : before + most_piece;
      if (some[j] < least || some[j] > most || some[j] >= footer.table_offset) {
        return unexpected(ErrorCode::kCorrupt, {file.name(), at + j * sizeof(some[j])},
                          "piece {} at an offset from {} to {}, before {}, found {}", i + j, least, most,
                          footer.table_offset, some[j]);
      }
      before = some[j];
    }
  }
  if (footer.piece_count == 0 && footer.table_offset != begin) {
    return unexpected(ErrorCode::kCorrupt,
                      {file.name(), file.size() - sizeof(footer) + offsetof(Footer, table_offset)},
                      "the table of no pieces at offset {}, found {}", begin, footer.table_offset);
  }
  return check_table_hash(footer, hash, file.name(), file.size());
}

/// Checks all of a file but its pieces. Puts its end in `footer`, and returns its beginning.
Result<Beginning> check_all_but_pieces(const ByteSource& file, Footer& footer) {
  const std::string name = file.name();
  Beginning out;
  ETSTREAM_ASSIGN(const bool begins_right, is_packed(file));
  if (begins_right && file.size() >= sizeof(out.header)) ETSTREAM_TRY(read_structure(file, 0, out.header));
  ETSTREAM_TRY(check(out.header, name));
  std::uint64_t at = sizeof(out.header);
  const auto require = [&](std::uint64_t size) -> Result<void> {
    if (file.size() >= size) return {};
    return unexpected(ErrorCode::kCorrupt, {name, file.size()},
                      "at least {} bytes, found the end of the file", size);
  };
  constexpr std::uint64_t kEnd = sizeof(FrameStart) + sizeof(footer);
  ETSTREAM_TRY(require(sizeof(FrameStart) + out.header.frame.size + kEnd));
  const auto read_next = [&](std::span<std::byte> bytes) -> Result<void> {
    ETSTREAM_TRY(require(at + bytes.size() + kEnd));
    at += bytes.size();
    return file.read_at(at - bytes.size(), bytes);
  };
  ETSTREAM_TRY(out.read_rest(read_next, name));
  ETSTREAM_TRY(read_structure(file, file.size() - sizeof(footer), footer));
  ETSTREAM_TRY(check(footer, name, file.size()));
  ETSTREAM_TRY(check_offsets(file, out, footer));
  FrameStart table;
  ETSTREAM_TRY(read_structure(file, footer.table_offset, table));
  ETSTREAM_TRY(check(table, footer.piece_count, name, footer.table_offset));
  return out;
}

/// Checks a piece of an update, which begins at `piece.offset`, and adds it to the summary.
Result<void> add_piece(const std::string& name, std::uint64_t original_size, UpdateSummary::Piece piece,
                       std::span<std::byte> bytes, UpdateSummary& summary) {
  PieceHeader header;
  RunsHeader runs_header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::memcpy(&runs_header, bytes.data() + sizeof(header), sizeof(runs_header));
  ETSTREAM_TRY(check(header, kUpdate, name, piece.offset));
  const std::size_t headers = sizeof(FrameStart) + header.frame.size;
  if (header.original_size != original_size || headers + header.coded_size != bytes.size()) {
    return unexpected(ErrorCode::kCorrupt, {name, piece.offset},
                      "a piece of {} bytes that takes {}, found one of {} that takes {}", original_size,
                      bytes.size(), header.original_size, headers + header.coded_size);
  }
  std::vector<Run> runs(run_count(header));
  std::memcpy(runs.data(), bytes.data() + sizeof(header) + sizeof(runs_header), runs.size() * sizeof(Run));
  ETSTREAM_TRY(check(header, runs_header, runs, summary.base_size, name, piece.offset));
  if (hash_coded(bytes) != runs_header.coded_hash) {
    return unexpected(ErrorCode::kCorrupt, {name, piece.offset},
                      "bytes with the hash of the coded piece, found others");
  }
  for (const Run& run : runs) {
    if (run.method != kSame) piece.changed_size += run.size;
  }
  summary.changed_size += piece.changed_size;
  summary.piece_list.push_back(piece);
  return {};
}

class Unpacker {
 public:
  Unpacker(const ReadBytes& read, const std::string& name, Sink& sink, const PackOptions& options)
      : read_(read), name_(name), sink_(sink), workers_(threads_for(options.threads), [] {
          return [decoder = std::make_shared<PieceDecoder>()](CodedPiece& piece) { piece.decode(*decoder); };
        }) {}

  Result<void> run(const OpenBase& open_base) {
    Beginning beginning;
    ETSTREAM_TRY(read(writable_bytes_of(beginning.header)));
    ETSTREAM_TRY(check(beginning.header, name_));
    kind_ = beginning.header.kind;
    ETSTREAM_TRY(beginning.read_rest([this](std::span<std::byte> out) { return read(out); }, name_));
    if (kind_ != kWhole) {
      if (!open_base) return needs_base(ErrorCode::kInvalidArgument, name_);
      ETSTREAM_ASSIGN(base_, beginning.open_base(open_base, name_, true));
      for (ContentHasher* const hash : {&table_hash_, &found_hash_}) hash->update(bytes_of(beginning.base));
    } else if (open_base) {
      ETSTREAM_ASSIGN(const ByteSource base, open_base({}, false));
      return error_in(ErrorCode::kInvalidArgument, name_, "is no update, and is restored without {}",
                      quote(base.name()));
    }
    while (true) {
      PieceHeader piece;
      const std::uint64_t offset = position_;
      ETSTREAM_TRY(read(writable_bytes_of(piece)));
      // The table has there its first offset, which is the size of the file's header, or the hash of nothing.
      if (piece.identifier != PieceHeader().identifier) return finish(piece, offset);
      ETSTREAM_TRY(check(piece, kind_, name_, offset));
      ETSTREAM_TRY(take(piece, offset));
    }
  }

 private:
  Result<void> read(std::span<std::byte> out) {
    ETSTREAM_ASSIGN(const std::size_t n, read_(out));
    position_ += n;
    if (n == out.size()) return {};
    return unexpected(ErrorCode::kCorrupt, {name_, position_}, "{} bytes more, found the end of the file",
                      out.size() - n);
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
    if (!piece->original_bytes) {
      piece->original_bytes = std::make_unique_for_overwrite<std::byte[]>(kPieceSize);
    }
    piece->header = header;
    piece->original = {piece->original_bytes.get(), header.original_size};
    if (kind_ != kWhole) {
      RunsHeader runs;
      ETSTREAM_TRY(read(writable_bytes_of(runs)));
      piece->runs.resize(run_count(header));
      ETSTREAM_TRY(read(std::as_writable_bytes(std::span(piece->runs))));
      ETSTREAM_TRY(piece->read_base(runs, base_, name_, offset));
    }
    piece->offset = position_;
    piece->coded = {piece->bytes.get(), header.coded_size};
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
  ByteSource base_;  // of an update
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

Error needs_base(ErrorCode code, const std::string& name) {
  return with_advice(
      error_in(code, name, "is an update, and needs the file that it was made from to be restored"),
      {"give it as ", AdviceTerm::kBase});
}

bool is_decoded(const ByteSource& source) noexcept {
  return dynamic_cast<const packed::PackedStorage*>(source.place().storage) != nullptr;
}

std::optional<PackedSummary> packed_summary(const ByteSource& file) {
  const auto* const storage = dynamic_cast<const packed::PackedStorage*>(file.place().storage);
  if (storage == nullptr || file.size() != storage->size()) return std::nullopt;
  return storage->summary();
}

Result<bool> is_packed(const ByteSource& file) {
  packed::FileHeader header{.identifier = 0};
  const auto there =
      std::as_writable_bytes(std::span(&header, 1)).first(offsetof(packed::FileHeader, version));
  if (file.size() < there.size()) return false;
  ETSTREAM_TRY(file.read_at(0, there));
  return header.frame.magic == packed::kSkippable && header.identifier == packed::FileHeader().identifier;
}

Result<ByteSource> unpacked(ByteSource file, const OpenBase& open_base) {
  return without_exceptions([&]() -> Result<ByteSource> {
    const std::string name = file.name();
    packed::Footer footer;
    ETSTREAM_ASSIGN(const packed::Beginning beginning, packed::check_all_but_pieces(file, footer));
    std::optional<ByteSource> base;
    if (beginning.header.kind != packed::kWhole) {
      if (!open_base) return needs_base(ErrorCode::kUnsupported, name);
      ETSTREAM_ASSIGN(base, beginning.open_base(open_base, name, false));
    }
    ByteSource out(std::make_shared<packed::PackedStorage>(std::move(file), footer, std::move(base)));
    ETSTREAM_ASSIGN(const bool is_packed_twice, is_packed(out));
    if (is_packed_twice) {
      return with_advice(error_in(ErrorCode::kUnsupported, name, "is a packed file in a packed file"),
                         {"unpack it once"});
    }
    return out;
  });
}

Result<PackedSummary> read_packed_summary(const ByteSource& file) {
  return without_exceptions([&]() -> Result<PackedSummary> {
    packed::Footer footer;
    ETSTREAM_TRY(packed::check_all_but_pieces(file, footer));
    return packed::summary_of(file, footer);
  });
}

Result<UpdateSummary> read_update(const ByteSource& file) {
  return without_exceptions([&]() -> Result<UpdateSummary> {
    packed::Footer footer;
    ETSTREAM_ASSIGN(const packed::Beginning beginning, packed::check_all_but_pieces(file, footer));
    const std::uint32_t kind = beginning.header.kind;
    if (kind == packed::kWhole) return error_in(ErrorCode::kInvalidArgument, file.name(), "is no update");
    UpdateSummary out{packed::summary_of(file, footer), beginning.base.size, beginning.base.hash};
    out.is_derived = kind == packed::kDerived;
    constexpr std::size_t kLeast =
        sizeof(packed::PieceHeader) + sizeof(packed::RunsHeader) + sizeof(packed::Run);
    std::vector<std::byte> bytes(packed::kMostCoded + packed::kMostRunBytes);
    for (std::uint64_t i = 0; i < out.pieces; ++i) {
      std::array<std::uint64_t, 2> ends{};
      ETSTREAM_TRY(packed::read_offsets(file, footer, i, ends));
      const auto [begin, end] = ends;
      if (end < begin + kLeast || end - begin > bytes.size()) {
        return unexpected(ErrorCode::kCorrupt, {file.name(), begin}, "a piece of {} to {} bytes, found {}",
                          kLeast, bytes.size(), end - begin);
      }
      const auto piece = std::span(bytes).first(static_cast<std::size_t>(end - begin));
      ETSTREAM_TRY(file.read_at(begin, piece));
      file.drop_pages(begin, piece.size());
      ETSTREAM_TRY(packed::add_piece(file.name(), packed::piece_size(i, footer.original_size),
                                     {begin, piece.size()}, piece, out));
    }
    return out;
  });
}

void set_default_base(OpenBase base) { packed::default_base() = std::move(base); }

Result<ByteSource> original(ByteSource file) {
  ETSTREAM_ASSIGN(const bool needs_unpacking, is_packed(file));
  if (!needs_unpacking) return file;
  // A base is no update of itself.
  static thread_local bool opens_base = false;
  if (opens_base || !packed::default_base()) return unpacked(std::move(file));
  return unpacked(std::move(file), [](std::span<const std::byte> recipe, bool checks_all) {
    opens_base = true;
    auto base = packed::default_base()(recipe, checks_all);
    opens_base = false;
    return base;
  });
}

Result<ByteSource> open_original(const std::string& path,
                                 const std::function<Result<ByteSource>(const std::string&)>& open) {
  return without_exceptions([&]() -> Result<ByteSource> {
    auto file = open(path);
    if (!file && file.error().code == ErrorCode::kNotFound) {
      auto packed = open(path + std::string(kPackedSuffix));
      if (packed) file = std::move(packed);
    }
    return file ? original(*std::move(file)) : file;
  });
}

Result<void> check_packed(const ByteSource& file) {
  return without_exceptions([&]() -> Result<void> {
    const auto summary = packed_summary(file);
    if (!summary) return {};
    ETSTREAM_ASSIGN(const ContentHash hash, hash_of(file));
    if (hash == summary->content_hash) return {};
    return unexpected(ErrorCode::kCorrupt, {file.name(), summary->packed_size - sizeof(packed::Footer)},
                      "the hash of the original bytes, found that of other bytes");
  });
}

Result<void> unpack(const ReadBytes& read, const std::string& name, Sink& sink, const PackOptions& options,
                    const OpenBase& base) {
  return without_exceptions([&] { return packed::Unpacker(read, name, sink, options).run(base); });
}

ReadBytes reporting(ReadBytes read, Progress progress, std::uint64_t size, std::uint64_t& done) {
  return [read = std::move(read), progress = std::move(progress), size,
          &done](std::span<std::byte> out) -> Result<std::size_t> {
    ETSTREAM_ASSIGN(const std::size_t count, read(out));
    done += count;
    if (!progress(done, size)) return Error{ErrorCode::kInterrupted, "interrupted before all was written"};
    return count;
  };
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
