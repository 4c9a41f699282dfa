// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/packed_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/content_hash.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/packed_storage.h"
#include "core/io/read_pieces.h"
#include "core/packed/packed_checks.h"
#include "core/packed/packed_format.h"
#include "core/packed/piece_coder.h"

namespace etstream::packed {
namespace {

template <class T>
Result<void> read_structure(const ByteSource& file, std::uint64_t offset, T& out) {
  return file.read_at(offset, std::as_writable_bytes(std::span(&out, 1)));
}

/// Checks that pieces follow one another from `begin` to the table, and the table's hash.
Result<void> check_offsets(const ByteSource& file, std::uint64_t begin, std::uint32_t kind,
                           const Footer& footer) {
  const bool is_update = kind == kUpdate;
  const std::uint64_t least_piece = sizeof(PieceHeader) + (is_update ? sizeof(RunsHeader) + sizeof(Run) : 1);
  const std::uint64_t most_piece = kMostCoded + (is_update ? kMostRunBytes : 0);
  ContentHasher hash;
  if (is_update) {
    BaseHeader base;
    ETSTREAM_TRY(read_structure(file, sizeof(FileHeader), base));
    hash.update(bytes_of(base));
  }
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

/// Checks all of a file but its pieces. Puts its end in `footer`, and returns its kind.
Result<std::uint32_t> check_all_but_pieces(const ByteSource& file, Footer& footer) {
  const std::string name = file.name();
  FileHeader header{.identifier = 0};
  ETSTREAM_ASSIGN(const bool begins_right, is_packed(file));
  if (begins_right && file.size() >= sizeof(header)) ETSTREAM_TRY(read_structure(file, 0, header));
  ETSTREAM_TRY(check(header, name));
  const std::uint64_t begin = std::uint64_t{sizeof(FrameStart)} + header.frame.size;
  if (file.size() < begin + sizeof(FrameStart) + sizeof(footer)) {
    return unexpected(ErrorCode::kCorrupt, {name, file.size()},
                      "at least {} bytes, found the end of the file",
                      begin + sizeof(FrameStart) + sizeof(footer));
  }
  ETSTREAM_TRY(read_structure(file, file.size() - sizeof(footer), footer));
  ETSTREAM_TRY(check(footer, name, file.size()));
  ETSTREAM_TRY(check_offsets(file, begin, header.kind, footer));
  FrameStart table;
  ETSTREAM_TRY(read_structure(file, footer.table_offset, table));
  ETSTREAM_TRY(check(table, footer.piece_count, name, footer.table_offset));
  return header.kind;
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

}  // namespace
}  // namespace etstream::packed

namespace etstream {

Result<bool> is_packed(const ByteSource& file) {
  packed::FileHeader header{.identifier = 0};
  const auto there =
      std::as_writable_bytes(std::span(&header, 1)).first(offsetof(packed::FileHeader, version));
  if (file.size() < there.size()) return false;
  ETSTREAM_TRY(file.read_at(0, there));
  return header.frame.magic == packed::kSkippable && header.identifier == packed::FileHeader().identifier;
}

Result<ByteSource> unpacked(ByteSource file) {
  return without_exceptions([&]() -> Result<ByteSource> {
    const std::string name = file.name();
    packed::Footer footer;
    ETSTREAM_ASSIGN(const std::uint32_t kind, packed::check_all_but_pieces(file, footer));
    if (kind == packed::kUpdate) return packed::needs_base(ErrorCode::kUnsupported, name);
    ByteSource out = packed::original_bytes(std::move(file), footer);
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
    ETSTREAM_ASSIGN(const std::uint32_t kind, packed::check_all_but_pieces(file, footer));
    if (kind != packed::kUpdate) return error_in(ErrorCode::kInvalidArgument, file.name(), "is no update");
    packed::BaseHeader base;
    ETSTREAM_TRY(packed::read_structure(file, sizeof(packed::FileHeader), base));
    UpdateSummary out{packed::summary_of(file, footer), base.size, base.hash};
    constexpr std::size_t kLeast =
        sizeof(packed::PieceHeader) + sizeof(packed::RunsHeader) + sizeof(packed::Run);
    std::vector<std::byte> bytes(packed::kMostCoded + packed::kMostRunBytes);
    const std::uint64_t table = footer.table_offset + sizeof(packed::FrameStart);
    std::uint64_t next = 0;
    if (out.pieces > 0) ETSTREAM_TRY(packed::read_structure(file, table, next));
    for (std::uint64_t i = 0; i < out.pieces; ++i) {
      const std::uint64_t begin = std::exchange(next, footer.table_offset);
      if (i + 1 < out.pieces)
        ETSTREAM_TRY(packed::read_structure(file, table + (i + 1) * sizeof(next), next));
      if (next < begin + kLeast || next - begin > bytes.size()) {
        return unexpected(ErrorCode::kCorrupt, {file.name(), begin}, "a piece of {} to {} bytes, found {}",
                          kLeast, bytes.size(), next - begin);
      }
      const auto piece = std::span(bytes).first(static_cast<std::size_t>(next - begin));
      ETSTREAM_TRY(file.read_at(begin, piece));
      file.drop_pages(begin, piece.size());
      ETSTREAM_TRY(packed::add_piece(file.name(), packed::piece_size(i, footer.original_size),
                                     {begin, piece.size()}, piece, out));
    }
    return out;
  });
}

Result<ByteSource> original(ByteSource file) {
  ETSTREAM_ASSIGN(const bool needs_unpacking, is_packed(file));
  return needs_unpacking ? unpacked(std::move(file)) : std::move(file);
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

}  // namespace etstream
