// SPDX-License-Identifier: BSD-3-Clause
//
// Updates: packed files that are made from a base, and restored with it.
#include <doctest/doctest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/hashes.h"
#include "core/io/packed_bytes.h"
#include "core/packed/packed_format.h"
#include "counted_bytes.h"
#include "etstream/packed_file.h"
#include "seeded_random.h"
#include "test_errors.h"

namespace etstream::update_test {
namespace {

using packed::BaseHeader;
using packed::FileHeader;
using packed::kPieceSize;
using packed::PieceHeader;
using packed::Run;
using packed::RunsHeader;

constexpr std::size_t kFirstPiece = sizeof(FileHeader) + sizeof(BaseHeader);
constexpr std::size_t kFirstRun = kFirstPiece + sizeof(PieceHeader) + sizeof(RunsHeader);

ContentHash hash_of(const std::string& bytes) {
  ContentHasher hasher;
  hasher.update(std::as_bytes(std::span(bytes)));
  return hasher.hash();
}

std::string update_of(const std::string& now, const std::string& base, std::vector<BaseRange> ranges,
                      unsigned threads = 1) {
  std::vector<std::byte> out;
  const auto sink = open_packing_sink(open_memory_sink(out), {.threads = threads},
                                      Base{source_of(base), hash_of(base), std::move(ranges)});
  REQUIRE(pack(source_reader(source_of(now)), "now", *sink).has_value());
  REQUIRE(sink->commit().has_value());
  return text_of(out);
}

OpenBase opener(ByteSource base) {
  return
      [base = std::move(base)](std::span<const std::byte> /*recipe*/, bool /*checks_all*/) { return base; };
}

Result<std::string> restored(const std::string& update, const std::optional<std::string>& base,
                             unsigned threads = 1) {
  std::vector<std::byte> out;
  const auto sink = open_memory_sink(out);
  OpenBase base_file;
  if (base) base_file = opener(source_of(*base));
  if (auto done = unpack(source_reader(file_of(update)), "bad", *sink, {.threads = threads}, base_file);
      !done) {
    return done.error();
  }
  // A reader at any place gives the same.
  const auto opened = unpacked(file_of(update), base_file);
  REQUIRE_MESSAGE(opened, opened.error().message);
  CHECK((text_of(*opened) == text_of(out)));
  return text_of(out);
}

/// Returns floats of `size` bytes in all.
std::string floats(std::size_t size) {
  testing::SeededRandom random(3);
  std::string out;
  while (out.size() < size) {
    const float number = 1.0F + static_cast<float>(random.below(1000)) / 1000;
    out.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  return out.substr(0, size);
}

/// Returns the floats, of which one in `n` is another, a little larger.
std::string moved(std::string floats, std::uint64_t n) {
  testing::SeededRandom random(4);
  for (std::size_t at = 0; at + 4 <= floats.size(); at += 4) {
    if (random.one_in(n)) put_at(floats, at, get_at<std::uint32_t>(floats, at) + 1000);
  }
  return floats;
}

TEST_CASE("updates of any size are restored as they were") {
  const std::string base = floats(3 * kPieceSize + 1000);
  const std::string now = moved(base, 10);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{kPieceSize} - 1,
                                 std::size_t{kPieceSize}, std::size_t{kPieceSize} + 1, now.size()}) {
    CAPTURE(size);
    const std::string part = now.substr(0, size);
    std::vector<BaseRange> ranges;
    if (size > 0) ranges.push_back({0, size, 0});
    const std::string update = update_of(part, base, ranges);
    CHECK((update_of(part, base, ranges, 4) == update));
    for (const unsigned threads : {1U, 4U}) {
      const auto again = restored(update, base, threads);
      REQUIRE_MESSAGE(again, again.error().message);
      CHECK((*again == part));
    }
    const auto summary = read_packed_summary(source_of(update));
    REQUIRE_MESSAGE(summary, summary.error().message);
    CHECK(summary->original_size == size);
    CHECK(summary->packed_size == update.size());
    // A tenth of the places differ, which takes half a bit for each of two planes.
    if (size > kPieceSize) CHECK(update.size() < size / 25);
  }
  CHECK(update_of("", base, {}).size() == 128);
}

TEST_CASE("of bytes without names, an update takes what is a little elsewhere in the base too") {
  // Entries as of a table in an executable, each with an address. In the new one all of these have moved.
  const auto table = [](std::size_t entries, std::size_t added) {
    testing::SeededRandom random(7);
    std::string out;
    for (std::size_t i = 0; i < entries; ++i) {
      if (added != 0 && i % added == 0) out += "an entry that is added";
      std::string entry = patterned(20 + 4 * random.below(4));
      put_at(entry, 8, static_cast<std::uint32_t>(i * 1000 + added + random.below(1000)));
      out += entry;
    }
    return out;
  };
  const std::string base = table(60'000, 0);
  const std::string now = "something new" + table(60'000, 77);
  std::size_t sizes[2];
  for (const bool is_named : {false, true}) {
    const std::string update = update_of(now, base, {{16, base.size() - 16, 3, is_named}}, 2);
    const auto again = restored(update, base, 2);
    REQUIRE_MESSAGE(again, again.error().message);
    CHECK((*again == now));
    CHECK(read_update(source_of(update)));
    sizes[is_named ? 1 : 0] = update.size();
  }
  CHECK(3 * sizes[0] < 2 * sizes[1]);
}

TEST_CASE("all of a range is made from the base, in each piece that it lies in") {
  const std::string base = floats(kPieceSize + 4000);
  // Ranges may follow one another in a piece, and from piece to piece.
  constexpr std::size_t kHalf = kPieceSize / 2;
  const std::vector<BaseRange> ranges{{0, kHalf, 0}, {kHalf, kHalf, kHalf}, {kPieceSize, 4000, kPieceSize}};
  CHECK(update_of(base, base, ranges).size() < 400);
  // The second piece has a single byte of the range, which is no whole element.
  const std::string later = "xy" + base.substr(0, kPieceSize);
  const auto again = restored(update_of(later, base, {{2, kPieceSize - 1, 0}}), base);
  REQUIRE_MESSAGE(again, again.error().message);
  CHECK((*again == later));
}

TEST_CASE("ranges may lie anywhere, and be of any size") {
  testing::SeededRandom random(5);
  for (std::uint64_t i = 0; i < testing::rounds(); ++i) {
    CAPTURE(i);
    const std::string base = floats(random.below(kPieceSize) + 1);
    std::string now;
    std::vector<BaseRange> ranges;
    while (now.size() < 3 * kPieceSize / 2) {
      if (random.one_in(2)) now += patterned(random.below(random.one_in(2) ? 10 : 100000));
      const std::size_t size = random.below(random.one_in(2) ? 10 : base.size()) % base.size() + 1;
      const std::size_t at = random.below(base.size() - size + 1);
      ranges.push_back({now.size(), size, at});
      now += random.one_in(2) ? base.substr(at, size) : moved(base.substr(at, size), random.below(20) + 1);
    }
    const auto again = restored(update_of(now, base, ranges, 2), base, 2);
    REQUIRE_MESSAGE(again, again.error().message);
    CHECK((*again == now));
  }
}

TEST_CASE("the same bytes take next to nothing, and many small ranges have their limit") {
  const std::string base = patterned(kPieceSize);
  CHECK(update_of(base, base, {{0, base.size(), 0}}).size() < 300);
  std::vector<BaseRange> ranges;
  for (std::uint64_t at = 0; at + 40 < base.size(); at += 40)
    ranges.push_back({at, 20, base.size() - at - 20});
  const auto again = restored(update_of(base, base, ranges), base);
  REQUIRE_MESSAGE(again, again.error().message);
  CHECK((*again == base));
}

TEST_CASE("where the base is of no use, an update is little larger than a packed file") {
  const std::string now = floats(2 * kPieceSize);
  const std::string base = patterned(2 * kPieceSize);
  const std::string update = update_of(now, base, {{0, now.size(), 0}});
  CHECK(update.size() < packed_bytes(now).size() + 200);
  const auto again = restored(update, base);
  REQUIRE_MESSAGE(again, again.error().message);
  CHECK((*again == now));
}

TEST_CASE(
    "a piece of as many runs as there may be, whose new bytes nothing makes smaller, is part of an update") {
  testing::SeededRandom random(6);
  std::string now(kPieceSize, '\0');
  for (std::size_t at = 0; at < now.size(); at += 4)
    put_at(now, at, static_cast<std::uint32_t>(random.bits()));
  std::vector<BaseRange> ranges;
  for (std::size_t at = 0; at < now.size(); at += 2 * kPieceSize / packed::kMostRuns)
    ranges.push_back({at, 24, at});
  const std::string update = update_of(now, now, ranges);
  CHECK(update.size() > kPieceSize + 16384);
  const auto again = restored(update, now);
  REQUIRE_MESSAGE(again, again.error().message);
  CHECK((*again == now));
}

TEST_CASE("an update is restored with its base alone") {
  const std::string base = floats(10000);
  const std::string update = update_of(moved(base, 2), base, {{0, 10000, 0}});
  CHECK(error_of(restored(update, std::nullopt)) ==
        exactly("kInvalidArgument: bad: is an update, and needs the file that it was made from to be "
                "restored; give it as base to unpack()"));
  CHECK(error_of(restored(update, base + "x")) ==
        exactly("kInvalidArgument: memory: is not the file that 'bad' was made from: expected 10000 bytes, "
                "found 10001 bytes"));
  std::string flipped = base;
  flipped[5000] = static_cast<char>(flipped[5000] ^ 1);
  CHECK(error_of(restored(update, flipped)) ==
        containing("kInvalidArgument: memory: is not the file that 'bad' was made from: expected the hash "));
  CHECK(error_of(restored(packed_bytes(base), base)) ==
        exactly("kInvalidArgument: bad: is no update, and is restored without 'memory'"));
  CHECK(error_of(unpacked(file_of(update))) ==
        exactly("kUnsupported: bad: is an update, and needs the file that it was made from to be restored; "
                "give it as base to unpack()"));
}

TEST_CASE("errors of reading the base are passed on") {
  const std::string base = floats(10000);
  const std::string update = update_of(moved(base, 2), base, {{0, 10000, 0}});
  std::vector<std::byte> out;
  const auto sink = open_memory_sink(out);
  CHECK(error_of(unpack(source_reader(source_of(update)), "update", *sink, {},
                        opener(failing(10000, 100)))) == exactly("kIo: the disk is on fire"));
  const auto packing = open_packing_sink(open_memory_sink(out), {.threads = 1},
                                         Base{failing(10000, 100), hash_of(base), {{0, 10000, 0}}});
  REQUIRE(packing->append(source_of(base)).has_value());
  CHECK(error_of(packing->commit()) == exactly("kIo: the disk is on fire"));
}

TEST_CASE("errors of reading an update are passed on") {
  const std::string base = floats(10000);
  const std::string update = update_of(moved(base, 2), base, {{0, 10000, 0}});
  Result<void> done = Error{ErrorCode::kIo, ""};
  for (int nth = 0; !done; ++nth) {
    CAPTURE(nth);
    const auto storage = std::make_shared<CountedBytes>(update, nth);
    std::vector<std::byte> out;
    const auto sink = open_memory_sink(out);
    done =
        unpack(source_reader(ByteSource(storage)), "update", *sink, {.threads = 1}, opener(source_of(base)));
    if (!done) CHECK(error_of(done) == exactly("kIo: the disk is on fire"));
    if (done) CHECK(storage->reads() == nth);
  }
}

TEST_CASE("a flipped bit of an update is an error, or changes nothing in what is restored") {
  const std::string base = floats(9000);
  std::string now = moved(base, 10);
  now.replace(0, 3000, base, 0, 3000);
  now += "new bytes";
  const std::string update = update_of(now, base, {{0, 9000, 0}});
  const auto header = get_at<PieceHeader>(update, kFirstPiece);
  const std::size_t frames = kFirstPiece + 8 + header.frame.size;
  for (std::size_t at = 0; at < update.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      if (!testing::is_tried(8 * at + bit)) continue;
      CAPTURE(at);
      CAPTURE(bit);
      std::string flipped = update;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      const auto found = restored(flipped, base);
      if (found) CHECK((*found == now));
      const bool is_unused = at >= offsetof(FileHeader, unused) && at < sizeof(FileHeader);
      const bool is_in_frame = at >= frames && at < frames + header.coded_size;
      // These are checked without the base.
      const std::size_t window = kFirstRun - sizeof(RunsHeader) + offsetof(RunsHeader, window_size);
      const bool is_apart = at >= window && at < kFirstRun;
      if (!is_unused && !is_in_frame && !is_apart) CHECK(!found);
      if (!is_unused) CHECK_FALSE(read_update(file_of(flipped)));
    }
  }
  for (std::size_t size = 0; size < update.size(); ++size) CHECK(!restored(update.substr(0, size), base));
}

TEST_CASE("pieces of an update are as long as they may be") {
  const std::string base = floats(kPieceSize + 4000);
  std::string update = update_of(base, base, {{0, base.size(), 0}});
  const std::size_t table = update.size() - sizeof(packed::Footer) - 2 * sizeof(std::uint64_t) - 8;
  const auto error_with = [&](std::uint64_t offset) {
    put_at(update, table + 16, offset);
    return error_of(read_packed_summary(file_of(update)));
  };
  for (const std::uint64_t offset : {135U, 2000000U}) {
    CHECK(error_with(offset) == exactly("kCorrupt: bad: offset " + std::to_string(table + 16) +
                                        ": expected piece 1 at an offset from 136 to 1114488, before " +
                                        std::to_string(table) + ", found " + std::to_string(offset)));
  }
}

TEST_CASE("each structural error of an update has its message") {
  const std::string base = floats(8192);
  std::string now = moved(base, 3);
  now.replace(0, 4096, base, 0, 4096);
  now += "new";
  const std::string update = update_of(now, base, {{0, 8192, 0}});
  const std::vector<Run> runs{{4096, packed::kSame, 0}, {4096, 4, 4096}, {3, packed::kNew, 0}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    REQUIRE((get_at<Run>(update, kFirstRun + i * sizeof(Run)) == runs[i]));
  }
  const auto at = [](std::size_t offset) {
    return "kCorrupt: bad: offset " + std::to_string(offset) + ": expected ";
  };
  const auto run_at = [](std::size_t run, std::size_t field) {
    return kFirstRun + run * sizeof(Run) + field;
  };
  const auto put = [](std::size_t offset, auto value) {
    return [=](std::string& file) { put_at(file, offset, value); };
  };
  struct Bad {
    const char* name;
    std::function<void(std::string&)> change;
    std::string error;
  };
  const std::vector<Bad> cases{
      {"kind", put(20, 3U), "kUnsupported: bad: offset 20: expected kind 0 to 2, found 3"},
      {"a header without a base", put(4, 47U), at(4) + "a header of 48 to 1048576 bytes, found 47"},
      {"the base's size", put(32, std::uint64_t{8193}),
       "kInvalidArgument: memory: is not the file that 'bad' was made from: expected 8193 bytes, found 8192 "
       "bytes"},
      {"no runs", put(kFirstPiece + 4, 56U),
       at(kFirstPiece + 4) + "a header of 56 bytes and 16 more for each of up to 4096 runs, found 56"},
      {"a part of a run", put(kFirstPiece + 4, 73U),
       at(kFirstPiece + 4) + "a header of 56 bytes and 16 more for each of up to 4096 runs, found 73"},
      {"too many runs", put(kFirstPiece + 4, 65608U),
       at(kFirstPiece + 4) + "a header of 56 bytes and 16 more for each of up to 4096 runs, found 65608"},
      {"sparse planes", put(kFirstPiece + 40, 16U),
       at(kFirstPiece + 40) + "sparse planes among 4, found the bits 16"},
      {"a window that is too long", put(kFirstPiece + 44, 1048577U),
       at(kFirstPiece + 44) + "a window of at most 1048576 bytes, found 1048577"},
      {"a window beyond the base", put(kFirstPiece + 48, std::uint64_t{8193}),
       at(kFirstPiece + 48) + "the offset of a window of 0 bytes in a base of 8192, found 8193"},
      {"an empty run", put(run_at(1, 0), 0U), at(run_at(1, 0)) + "run 1 of 1 to 4099 bytes, found 0"},
      {"a run that is too long", put(run_at(1, 0), 4100U),
       at(run_at(1, 0)) + "run 1 of 1 to 4099 bytes, found 4100"},
      {"runs that are too short", put(run_at(2, 0), 2U), at(run_at(2, 0)) + "run 2 of 3 to 3 bytes, found 2"},
      {"runs behind the end",
       [&](std::string& file) {
         put_at(file, run_at(1, 0), Run{4099, packed::kNew, 0});
       },
       at(run_at(2, 0)) + "run 2 of 1 to 0 bytes, found 3"},
      {"method", put(run_at(0, 4), 3U), at(run_at(0, 4)) + "method 0, 1, 2, 4 or 8, found 3"},
      {"a higher method", put(run_at(0, 4), 9U), at(run_at(0, 4)) + "method 0, 1, 2, 4 or 8, found 9"},
      {"a place beyond the base", put(run_at(1, 8), std::uint64_t{4097}),
       at(run_at(1, 8)) + "the offset of 4096 bytes in a base of 8192, found 4097"},
      {"a place that overflows", put(run_at(1, 8), ~std::uint64_t{0}),
       at(run_at(1, 8)) + "the offset of 4096 bytes in a base of 8192, found 18446744073709551615"},
      {"a place of new bytes", put(run_at(2, 8), std::uint64_t{1}),
       at(run_at(2, 8)) + "for new bytes the offset 0, found 1"},
      {"no coded bytes", put(kFirstPiece + 16, 0U),
       at(kFirstPiece + 16) + "1 to 4355 coded bytes for 4099, found 0"},
      {"too many coded bytes", put(kFirstPiece + 16, 4356U),
       at(kFirstPiece + 16) + "1 to 4355 coded bytes for 4099, found 4356"},
      {"another method", put(run_at(1, 4), 1U),
       at(kFirstRun + 3 * sizeof(Run)) + "bytes with the hash of the piece, found others"},
      {"another place", put(run_at(0, 8), std::uint64_t{4}),
       at(kFirstRun + 3 * sizeof(Run)) + "bytes with the hash of the piece, found others"},
  };
  for (const Bad& each : cases) {
    CAPTURE(each.name);
    std::string file = update;
    each.change(file);
    CHECK(error_of(restored(file, base)) == exactly(each.error));
    CHECK_FALSE(read_update(source_of(file)));
  }
  CHECK(read_update(source_of(update)));
  std::string file = update;
  const auto sparse = get_at<std::uint32_t>(file, kFirstPiece + 40);
  put_at(file, kFirstPiece + 40, sparse ^ 8U);
  CHECK(error_of(restored(file, base)) ==
        containing(at(kFirstRun + 3 * sizeof(Run)) + "sparse planes of 4099 bytes, found others in "));
}

}  // namespace
}  // namespace etstream::update_test
