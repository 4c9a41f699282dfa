// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/packed_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/base/hashes.h"
#include "core/base/try.h"
#include "core/io/packed_bytes.h"
#include "core/io/read_pieces.h"
#include "core/packed/packed_format.h"
#include "counted_bytes.h"
#include "seeded_random.h"
#include "test_errors.h"
#include "test_files.h"

namespace etstream::packed_file_test {
namespace {

using packed::FileHeader;
using packed::Footer;
using packed::FrameStart;
using packed::kPieceSize;
using packed::PieceHeader;

/// Returns pieces of all kinds: of zeros, of any bytes, in planes, and a short one.
std::string some_pieces() {
  std::string out(kPieceSize, '\0');
  out += patterned(kPieceSize);
  for (std::uint32_t i = 0; i < kPieceSize / 4; ++i) {
    const std::uint32_t number = 0x3F000000 + (i * 2654435761U >> 8);
    out.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  return out + "x";
}

std::size_t footer_of(const std::string& packed) { return packed.size() - sizeof(Footer); }
std::size_t table_of(const std::string& packed) {
  return get_at<std::uint64_t>(packed, footer_of(packed) + offsetof(Footer, table_offset));
}
std::size_t entry_of(const std::string& packed, std::size_t piece) {
  return table_of(packed) + sizeof(FrameStart) + piece * sizeof(std::uint64_t);
}
std::size_t offset_of(const std::string& packed, std::size_t piece) {
  return get_at<std::uint64_t>(packed, entry_of(packed, piece));
}

/// Puts in the table's hash what its bytes have.
void hash_table(std::string& packed) {
  const std::size_t at = footer_of(packed) + offsetof(Footer, table_hash);
  put_at(packed, at, ContentHash{});
  ContentHasher hasher;
  hasher.update(std::as_bytes(std::span(packed).subspan(entry_of(packed, 0))));
  put_at(packed, at, hasher.hash());
}

TEST_CASE("files of any size are packed, and read as they were") {
  const std::string original = some_pieces();
  const std::vector<std::size_t> sizes{
      0, 1, kPieceSize - 1, kPieceSize, kPieceSize + 1, 3 * kPieceSize, original.size()};
  for (const std::size_t size : sizes) {
    CAPTURE(size);
    const std::string part = original.substr(original.size() - size);
    const std::string packed = packed_bytes(part);
    CHECK((packed_bytes(part, 4) == packed));
    CHECK(packed.starts_with("\x5C\x2A\x4D\x18"));
    const auto anywhere = read_anywhere(packed);
    REQUIRE_MESSAGE(anywhere, anywhere.error().message);
    CHECK((*anywhere == part));
    for (const unsigned threads : {1U, 4U}) {
      const auto through = read_through(packed, threads);
      REQUIRE_MESSAGE(through, through.error().message);
      CHECK((*through == part));
    }
    const auto summary = packed_summary(*unpacked(source_of(packed)));
    REQUIRE(summary.has_value());
    CHECK(summary->packed_size == packed.size());
    CHECK(summary->original_size == size);
    CHECK(summary->pieces == (size + kPieceSize - 1) / kPieceSize);
    ContentHasher hasher;
    hasher.update(bytes_of(part));
    CHECK((summary->content_hash == hasher.hash()));
  }
  CHECK(packed_bytes("").size() == 104);
  CHECK(packed_bytes("x").size() == 165);
}

TEST_CASE("any range is read as it was") {
  const std::string original = some_pieces();
  const auto source = unpacked(source_of(packed_bytes(original)));
  REQUIRE(source);
  testing::SeededRandom random(1);
  for (std::uint64_t i = 0; i < 15 * testing::rounds(); ++i) {
    const std::size_t offset = random.below(original.size());
    const std::size_t most = random.below(3) == 0 ? original.size() : 100;
    const std::size_t size = random.below(std::min(original.size() - offset, most) + 1);
    CAPTURE(offset);
    CAPTURE(size);
    std::string found(size, '?');
    REQUIRE(source->read_at(offset, std::as_writable_bytes(std::span(found))).has_value());
    REQUIRE((found == original.substr(offset, size)));
  }
}

TEST_CASE("a reader of metadata that jumps between pieces has each page decoded at most twice") {
  constexpr std::size_t kPieces = 8;
  const std::string original = patterned(kPieces * std::size_t{kPieceSize});
  const auto storage = std::make_shared<CountedBytes>(packed_bytes(original));
  const auto source = unpacked(ByteSource(storage));
  REQUIRE(source);
  PagedReader reader(source->slice(8, source->size() - 8).value(), "packed");
  const int before = storage->reads();
  for (std::size_t i = 0; i < 100 * kPieces; ++i) {
    const std::size_t at = i % kPieces * kPieceSize + 1000 + i / kPieces;
    std::string found(4, '?');
    REQUIRE(reader.read(at, std::as_writable_bytes(std::span(found))).has_value());
    REQUIRE(found == original.substr(8 + at, 4));
  }
  constexpr int kReadsOfAPiece = 3;  // its place, its header and its frames
  CHECK(storage->reads() - before <= 2 * static_cast<int>(kPieces) * kReadsOfAPiece);
}

TEST_CASE("a file is packed once") {
  const std::string once = packed_bytes("the original");
  CHECK(error_of(try_pack(source_of(once))) ==
        exactly("kInvalidArgument: original: is a packed file already; unpack it first"));
  // Such a file can be made by others.
  std::vector<std::byte> out;
  const auto sink = open_packing_sink(open_memory_sink(out), {.threads = 1});
  REQUIRE(sink->append(source_of(once)).has_value());
  REQUIRE(sink->commit().has_value());
  const std::string twice = text_of(out);
  CHECK(error_of(unpacked(file_of(twice))) ==
        exactly("kUnsupported: bad: is a packed file in a packed file; unpack it once"));
  CHECK((read_through(twice).value() == once));
}

TEST_CASE("packing ends with the first error of its input or its output") {
  const std::string original = patterned(12 * std::size_t{kPieceSize});
  for (const unsigned threads : {1U, 4U}) {
    for (const int most : {0, 1, 5, 12, 13}) {
      CAPTURE(most);
      int calls = 0;
      const auto take = [&](std::span<const std::byte>) -> Result<void> {
        if (++calls > most) return Error{ErrorCode::kIo, "the disk is on fire"};
        return {};
      };
      const auto sink = open_packing_sink(open_callback_sink(take), {.threads = threads});
      auto done = pack(source_reader(source_of(original)), "original", *sink);
      if (done) done = sink->commit();
      CHECK(error_of(done) == exactly(most == 13 ? "no error" : "kIo: the disk is on fire"));
      CHECK(calls == std::min(most + 1, 13));
    }
    CHECK(error_of(try_pack(failing(10 * kPieceSize, 7 * kPieceSize), threads)) ==
          exactly("kIo: the disk is on fire"));
  }
}

TEST_CASE("unpacking ends with the first error of its input or its output") {
  const std::string packed = packed_bytes(patterned(12 * std::size_t{kPieceSize}));
  for (const unsigned threads : {1U, 4U}) {
    for (const int most : {0, 1, 5, 11, 12}) {
      CAPTURE(most);
      int calls = 0;
      const auto sink = open_callback_sink([&](std::span<const std::byte>) -> Result<void> {
        if (++calls > most) return Error{ErrorCode::kIo, "the disk is on fire"};
        return {};
      });
      const auto done = unpack(source_reader(source_of(packed)), "packed", *sink, {.threads = threads});
      CHECK(error_of(done) == exactly(most == 12 ? "no error" : "kIo: the disk is on fire"));
    }
    std::size_t given = 0;
    const ReadBytes read = [&](std::span<std::byte> out) -> Result<std::size_t> {
      if (given + out.size() > packed.size() / 2) return Error{ErrorCode::kIo, "the pipe is on fire"};
      std::copy_n(std::as_bytes(std::span(packed)).begin() + static_cast<std::ptrdiff_t>(given), out.size(),
                  out.begin());
      given += out.size();
      return out.size();
    };
    std::vector<std::byte> out;
    CHECK(error_of(unpack(read, "packed", *open_memory_sink(out), {.threads = threads})) ==
          exactly("kIo: the pipe is on fire"));
  }
}

TEST_CASE("errors of reading a packed file are passed on") {
  CHECK(error_of(is_packed(failing(1000, 0))) == exactly("kIo: the disk is on fire"));
  CHECK(error_of(unpacked(failing(1000, 0))) == exactly("kIo: the disk is on fire"));
  const std::string packed = packed_bytes("the original");
  Result<void> done = Error{ErrorCode::kIo, ""};
  for (int nth = 0; !done; ++nth) {
    CAPTURE(nth);
    const auto storage = std::make_shared<CountedBytes>(packed, nth);
    done = [&]() -> Result<void> {
      ETSTREAM_ASSIGN(const ByteSource original, unpacked(ByteSource(storage)));
      std::vector<std::byte> out(original.size());
      ETSTREAM_TRY(original.read_at(0, out));
      return check_packed(original);
    }();
    if (!done) CHECK(error_of(done) == exactly("kIo: the disk is on fire"));
    if (done) CHECK(storage->reads() == nth);
  }
}

TEST_CASE("a packed file is written once, however often it is prepared") {
  std::vector<std::byte> out;
  const auto sink = open_packing_sink(open_memory_sink(out), {.threads = 1});
  REQUIRE(sink->append(source_of("the original")).has_value());
  for (int i = 0; i < 2; ++i) REQUIRE(sink->prepare().has_value());
  REQUIRE(sink->commit().has_value());
  CHECK((text_of(out) == packed_bytes("the original")));
}

TEST_CASE("packing takes memory for each piece that is coded, and for each thread") {
  CHECK(packing_memory({.threads = 1}) == 6'291'752);
  CHECK(packing_memory({.threads = 4}) == 26'216'176);
  CHECK(packed::kMostPieces == 536'870'903);
}

TEST_CASE("offsets that change while a packed file is read are an error") {
  constexpr std::size_t kShort = 200;
  std::string packed = packed_bytes(patterned(kPieceSize + kShort));
  const auto original = unpacked(ByteSource::memory(std::as_bytes(std::span(packed))));
  REQUIRE(original);
  const std::size_t table = table_of(packed);
  const auto error_with = [&](std::size_t offset) {
    put_at(packed, entry_of(packed, 1), std::uint64_t{offset});
    std::vector<std::byte> out(kShort);
    return error_of(original->read_at(kPieceSize, out));
  };
  const std::string others =
      "kCorrupt: memory: offset " + std::to_string(table) + ": expected offsets as they were, found others";
  CHECK(error_with(offset_of(packed, 1)) == "no error");
  CHECK(error_with(table + 1) == exactly(others));
  CHECK(error_with(table - sizeof(PieceHeader) + 1) == exactly(others));
  CHECK(error_with(table - packed::kMostCoded - 1) == exactly(others));
  // There is no header, but there is room for one, and not more than a piece may take.
  for (const std::size_t offset : {table - sizeof(PieceHeader), table - packed::kMostCoded}) {
    CHECK(error_with(offset) == containing("kCorrupt: memory: offset " + std::to_string(offset) +
                                           ": expected the number of a skippable frame, "));
  }
  // From this offset on there seem to be 200 bytes, if numbers overflow.
  put_at(packed, entry_of(packed, 0), ~std::uint64_t{0} - 99);
  put_at(packed, entry_of(packed, 1), std::uint64_t{100});
  std::vector<std::byte> out(kPieceSize);
  CHECK(error_of(original->read_at(0, out)) == exactly(others));
}

TEST_CASE("the coded bytes of a piece are forgotten once they are read") {
  const std::string packed = packed_bytes(std::string(kPieceSize, '\0') + patterned(1000) + "x");
  const std::size_t second = offset_of(packed, 1);
  // The first piece is read once more, to see whether the original is packed again.
  const RecordingStorage::Ranges pieces{
      {32, second - 32}, {32, second - 32}, {second, table_of(packed) - second}};
  const auto whole = std::make_shared<RecordingStorage>(source_of(packed));
  CHECK(text_of(*unpacked(ByteSource(whole))).size() == kPieceSize + 1001);
  CHECK(whole->forgotten() == pieces);
  const auto through = std::make_shared<RecordingStorage>(source_of(packed));
  std::vector<std::byte> out;
  REQUIRE(unpack(source_reader(ByteSource(through)), "packed", *open_memory_sink(out), {.threads = 1}));
  std::uint64_t end = 0;
  for (const auto& [offset, size] : through->forgotten()) {
    CHECK(offset == end);
    end += size;
  }
  CHECK(end == packed.size());
}

TEST_CASE("what is not packed is no packed file, and has no summary") {
  for (const std::string& other : {std::string(), std::string("ETZ1"), std::string(100, 'x')}) {
    CHECK(is_packed(source_of(other)).value() == false);
    CHECK(error_of(unpacked(file_of(other))) ==
          exactly("kUnsupported: bad: offset 0: expected a packed file (ETZ1), found another kind"));
    CHECK(!packed_summary(source_of(other)).has_value());
    CHECK(check_packed(source_of(other)).has_value());
  }
  // A part of a packed file's original has no hash.
  const auto original = unpacked(source_of(packed_bytes("original")));
  CHECK(!packed_summary(original->slice(1, 3).value()).has_value());
  CHECK(!packed_summary(original->slice(0, 3).value()).has_value());
  CHECK(check_packed(original->slice(1, 3).value()).has_value());
}

TEST_CASE("a file that is cut anywhere is an error") {
  const std::string packed = packed_bytes(std::string(kPieceSize, '\0') + "x");
  for (std::size_t size = 0; size < packed.size(); ++size) {
    CAPTURE(size);
    const std::string cut = packed.substr(0, size);
    CHECK(!read_anywhere(cut));
    CHECK(code_of(read_through(cut)) == "kCorrupt");
  }
  CHECK(read_anywhere(packed));
  CHECK(!read_anywhere(packed + "x"));
  CHECK(!read_through(packed + "x"));
}

TEST_CASE("a flipped bit is an error, or changes nothing in the original") {
  std::string original(kPieceSize, '\0');
  for (int i = 0; i < 100; ++i) original.append(1, static_cast<char>(60 + i % 2)).append(patterned(3));
  const std::string packed = packed_bytes(original);
  const std::size_t second = offset_of(packed, 1);
  REQUIRE(get_at<PieceHeader>(packed, second).arrangement.element_size == 4);
  const std::size_t table = table_of(packed);
  for (std::size_t at = 0; at < packed.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      if (!testing::is_tried(8 * at + bit)) continue;
      CAPTURE(at);
      CAPTURE(bit);
      std::string flipped = packed;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      const auto anywhere = read_anywhere(flipped);
      const auto through = read_through(flipped);
      CHECK(anywhere.has_value() == through.has_value());
      if (anywhere) CHECK((*anywhere == original));
      if (through) CHECK((*through == original));
      const bool is_unused = at >= offsetof(FileHeader, unused) && at < sizeof(FileHeader);
      if (is_unused) CHECK(anywhere.has_value());
      // There are other ways to code the same bytes by zstd.
      const bool is_in_frame = at < table && at >= 32 + 40 && (at < second || at >= second + 40);
      if (!is_unused && !is_in_frame) CHECK(!anywhere);
    }
  }
}

/// Returns the error, without the words of zstd, which its versions have others of.
template <class T>
std::string own_words(const Result<T>& result) {
  const std::string error = error_of(result).c_str();
  const std::size_t zstd = error.find(", found: ");
  return zstd == std::string::npos ? error : error.substr(0, zstd) + ", found: ...";
}

/// A change of a packed file that has a piece of zeros and a stored one of 4096 bytes, and the errors of its
/// readers.
struct Bad {
  const char* name;
  std::function<void(std::string&)> change;
  std::string anywhere;
  std::string through;  // empty if it is the same
};

template <class T>
std::function<void(std::string&)> put(std::size_t at, T value) {
  return [=](std::string& file) { put_at(file, at, value); };
}

template <class T>
std::function<void(std::string&)> put_in_piece(std::size_t piece, std::size_t at, T value) {
  return [=](std::string& file) { put_at(file, offset_of(file, piece) + at, value); };
}

/// Puts a value in the footer, and the hash that the table then has.
template <class T>
std::function<void(std::string&)> put_in_footer(std::size_t at, T value) {
  return [=](std::string& file) {
    const std::size_t entries = entry_of(file, 0);
    put_at(file, footer_of(file) + at, value);
    put_at(file, footer_of(file) + offsetof(Footer, table_hash), ContentHash{});
    ContentHasher hasher;
    hasher.update(std::as_bytes(std::span(file).subspan(entries)));
    put_at(file, footer_of(file) + offsetof(Footer, table_hash), hasher.hash());
  };
}

std::function<void(std::string&)> put_entry(std::size_t piece, std::uint64_t value) {
  return [=](std::string& file) {
    put_at(file, entry_of(file, piece), value);
    hash_table(file);
  };
}

TEST_CASE("each structural error has its message, of either reader") {
  const std::string packed = packed_bytes(std::string(kPieceSize, '\0') + patterned(4096));
  const std::size_t second = offset_of(packed, 1);
  const auto piece_at = [&](std::size_t piece, std::size_t at) {
    return "kCorrupt: bad: offset " + std::to_string(offset_of(packed, piece) + at) + ": expected ";
  };
  const auto footer_at = [&](std::size_t at) {
    return "kCorrupt: bad: offset " + std::to_string(footer_of(packed) + at) + ": expected ";
  };
  const auto entry_at = [&](std::size_t piece) {
    return "kCorrupt: bad: offset " + std::to_string(entry_of(packed, piece)) + ": expected ";
  };
  const auto number = [](std::size_t n) { return std::to_string(n); };
  const std::size_t table = table_of(packed);
  const std::string other_kind =
      "kUnsupported: bad: offset 0: expected a packed file (ETZ1), found another kind";
  const std::string other_offsets = "kCorrupt: bad: offset " + number(table + 8) +
                                    ": expected the offsets of the pieces before, found others";
  const std::string neither = "kCorrupt: bad: offset " + number(second) +
                              ": expected a piece, or the table of 1 piece in a skippable frame of 72 bytes, "
                              "found neither";
  const std::string no_table = "kCorrupt: bad: offset " + number(table) +
                               ": expected a piece, or the table of 2 pieces in a skippable frame of 80 "
                               "bytes, found neither";
  const std::vector<Bad> cases{
      {"the number of a frame", put(0, 0x184D2A5BU), other_kind, ""},
      {"identifier", put(8, 'e'), other_kind, ""},
      {"version", put(12, 2U),
       "kUnsupported: bad: offset 12: expected a packed file of version 1, found version 2; a newer etstream "
       "reads it",
       ""},
      {"a short header", put(4, 23U),
       "kCorrupt: bad: offset 4: expected a header of 24 to 1048576 bytes, found 23", ""},
      {"a long header", put(4, 1048577U),
       "kCorrupt: bad: offset 4: expected a header of 24 to 1048576 bytes, found 1048577", ""},
      {"a header as long as the file", put(4, static_cast<std::uint32_t>(packed.size())),
       "kCorrupt: bad: offset " + number(packed.size()) + ": expected at least " +
           number(8 + packed.size() + 72) + " bytes, found the end of the file",
       "kCorrupt: bad: offset " + number(packed.size()) +
           ": expected 8 bytes more, found the end of the file"},
      {"piece size", put(16, 65536U), "kCorrupt: bad: offset 16: expected pieces of 1048576, found 65536",
       ""},
      {"kind", put(20, 3U), "kUnsupported: bad: offset 20: expected kind 0 to 2, found 3", ""},

      {"the number of a piece's frame", put_in_piece(1, 0, 0x184D2A5BU),
       piece_at(1, 0) + "the number of a skippable frame, 407710300, found 407710299", ""},
      {"the size of a piece's header", put_in_piece(1, 4, 33U), piece_at(1, 4) + "a header of 32, found 33",
       ""},
      {"the identifier of a piece", put_in_piece(1, 8, 'x'),
       piece_at(1, 8) + "the identifier 'ETZp', found 'xTZp'", neither},
      {"a piece of no bytes", put_in_piece(1, 12, 0U),
       piece_at(1, 12) + "a piece of 1 to 1048576 bytes, found 0", ""},
      {"a piece of too many bytes", put_in_piece(1, 12, 1048577U),
       piece_at(1, 12) + "a piece of 1 to 1048576 bytes, found 1048577", ""},
      {"no coded bytes", put_in_piece(1, 16, 0U), piece_at(1, 16) + "1 to 4352 coded bytes for 4096, found 0",
       ""},
      {"too many coded bytes", put_in_piece(1, 16, 4353U),
       piece_at(1, 16) + "1 to 4352 coded bytes for 4096, found 4353", ""},
      {"elements of 0 bytes", put_in_piece(1, 20, 0U),
       piece_at(1, 20) + "elements of 1, 2 or 4 bytes, found 0", ""},
      {"elements of 3 bytes", put_in_piece(1, 20, 3U),
       piece_at(1, 20) + "elements of 1, 2 or 4 bytes, found 3", ""},
      {"elements of 8 bytes", put_in_piece(1, 20, 8U),
       piece_at(1, 20) + "elements of 1, 2 or 4 bytes, found 8", ""},
      {"a rotation of bytes", put_in_piece(1, 24, 1U),
       piece_at(1, 24) + "elements of 1 byte rotated by at most 0 bits, found 1", ""},
      {"a rotation by two bits",
       [](std::string& file) {
         put_at(file, offset_of(file, 1) + 20, 2U);
         put_at(file, offset_of(file, 1) + 24, 2U);
       },
       piece_at(1, 24) + "elements of 2 bytes rotated by at most 1 bit, found 2", ""},
      {"bytes before a byte", put_in_piece(1, 28, 1U),
       piece_at(1, 28) + "fewer than 1 byte before the first element, found 1", ""},
      {"the hash of a piece", put_in_piece(1, 32, '\0'),
       piece_at(1, 40) + "bytes with the hash of the piece, found others", ""},
      {"a frame of zstd", put_in_piece(1, 40, '\0'),
       piece_at(1, 40) + "zstd frames of 4096 bytes, found: ...", ""},
      {"fewer bytes than a piece has", put_in_piece(1, 12, 4097U),
       piece_at(1, 0) + "a piece of 4096 bytes, coded as 4108, found one of 4097, coded as 4108",
       piece_at(1, 40) + "zstd frames of 4097 bytes, found 4096"},
      {"coded bytes up to another place", put_in_piece(1, 16, 4113U),
       piece_at(1, 0) + "a piece of 4096 bytes, coded as 4108, found one of 4096, coded as 4113",
       piece_at(1, 40) + "zstd frames of 4096 bytes, found: ..."},
      {"a short piece before the last", put_in_piece(0, 12, 1048575U),
       piece_at(0, 0) + "a piece of 1048576 bytes, coded as " + number(second - 72) +
           ", found one of 1048575, coded as " + number(second - 72),
       piece_at(1, 0) + "the table after piece 1, found another piece"},

      {"the number of the table's frame", put(table, 0x184D2A5BU),
       "kCorrupt: bad: offset " + number(table) +
           ": expected the number of a skippable frame, 407710300, found 407710299",
       no_table},
      {"the size of the table", put(table + 4, 79U),
       "kCorrupt: bad: offset " + number(table + 4) + ": expected a table of 80, found 79", no_table},
      {"the first entry", put_entry(0, 33),
       entry_at(0) + "piece 0 at an offset from 32 to 32, before " + number(table) + ", found 33",
       other_offsets},
      {"an entry that is too low", put_entry(1, 72),
       entry_at(1) + "piece 1 at an offset from 73 to 1048904, before " + number(table) + ", found 72",
       other_offsets},
      {"an entry that is not that of the piece", put_entry(1, second - 1),
       piece_at(0, 0) + "a piece of 1048576 bytes, coded as " + number(second - 73) +
           ", found one of 1048576, coded as " + number(second - 72),
       other_offsets},
      {"an entry beyond the table", put_entry(1, table),
       entry_at(1) + "piece 1 at an offset from 73 to 1048904, before " + number(table) + ", found " +
           number(table),
       other_offsets},
      {"an entry without the table's hash", put(table + 16, static_cast<std::uint64_t>(second - 1)),
       footer_at(16) + "the hash of the table of pieces, found that of other bytes", other_offsets},

      {"the content's hash", put_in_footer(0, 'x'),
       footer_at(0) + "the hash of the original bytes, found that of other bytes", ""},
      {"the table's hash", put(footer_of(packed) + 16, 'x'),
       footer_at(16) + "the hash of the table of pieces, found that of other bytes", ""},
      {"the original's size", put_in_footer(32, std::uint64_t{kPieceSize + 4097}),
       piece_at(1, 0) + "a piece of 4097 bytes, coded as 4108, found one of 4096, coded as 4108",
       footer_at(32) + "1052672 bytes as the pieces have, found 1052673"},
      {"the table's offset", put_in_footer(40, std::uint64_t{table + 1}),
       footer_at(40) + "the offset of a table of 88 bytes that ends the file of " + number(packed.size()) +
           ", found " + number(table + 1),
       ""},
      {"the number of pieces", put_in_footer(48, 3U),
       footer_at(48) + "as many pieces as the size tells, 2, found 3", ""},
      {"the footer's reserved number", put_in_footer(52, 1U),
       footer_at(52) + "the reserved number 0, found 1", ""},
      {"the footer's version", put_in_footer(56, 2U),
       "kUnsupported: bad: offset " + number(footer_of(packed) + 56) +
           ": expected a packed file of version 1, found version 2; a newer etstream reads it",
       ""},
      {"the footer's identifier", put_in_footer(60, 'x'),
       footer_at(60) +
           "the identifier 'ETZe', found 'xTZe'; the end of the file is missing, or is followed by other "
           "bytes; get it again",
       ""},
  };
  for (const Bad& each : cases) {
    CAPTURE(each.name);
    std::string file = packed;
    each.change(file);
    CHECK(own_words(read_anywhere(file)) == each.anywhere);
    CHECK(own_words(read_through(file)) == (each.through.empty() ? each.anywhere : each.through));
  }
}

TEST_CASE("nothing lies between the header and the table of no pieces") {
  std::string packed = packed_bytes("");
  packed.insert(32, 1, 'x');
  put_at(packed, footer_of(packed) + offsetof(Footer, table_offset), std::uint64_t{33});
  hash_table(packed);
  CHECK(error_of(read_anywhere(packed)) ==
        exactly("kCorrupt: bad: offset 81: expected the table of no pieces at offset 32, found 33"));
  CHECK(!read_through(packed));
}

TEST_CASE("bytes that a later version adds to the header are ignored") {
  for (const std::string& more : {std::string("x"), std::string("ETZp and more"), std::string(513, 'x'),
                                  std::string(kPieceSize - 24, 'x')}) {
    std::string packed = packed_bytes("the original");
    const auto size = static_cast<std::uint32_t>(more.size());
    packed.insert(sizeof(FileHeader), more);
    put_at(packed, offsetof(FrameStart, size), 24 + size);
    put_at(packed, offsetof(FileHeader, unused), ~std::uint64_t{0});
    const std::size_t table = footer_of(packed) - 16;
    put_at(packed, footer_of(packed) + offsetof(Footer, table_offset), std::uint64_t{table});
    put_at(packed, table + 8, std::uint64_t{sizeof(FileHeader) + size});
    hash_table(packed);
    CHECK(read_anywhere(packed).value() == "the original");
    CHECK(read_through(packed).value() == "the original");
  }
}

}  // namespace
}  // namespace etstream::packed_file_test
