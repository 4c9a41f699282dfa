// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/packed_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "core/base/content_hash.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/packed_storage.h"
#include "core/io/read_pieces.h"
#include "core/packed/packed_checks.h"
#include "core/packed/packed_format.h"

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
