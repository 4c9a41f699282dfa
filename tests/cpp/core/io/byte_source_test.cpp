// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/byte_source.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/io/derived_storage.h"
#include "core/io/read_pieces.h"
#include "seeded_random.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_sources.h"

namespace etstream::byte_source_test {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

std::string read_text(const ByteSource& source, std::uint64_t offset, std::size_t size) {
  std::string out(size, '?');
  const auto read = source.read_at(offset, std::as_writable_bytes(std::span(out)));
  REQUIRE_MESSAGE(read, read.error().message);
  return out;
}

TEST_CASE("the empty source has no bytes and no errors") {
  const ByteSource empty;
  CHECK(empty.size() == 0);
  CHECK(empty.name() == "nothing");
  CHECK(text_of(empty) == "");
  CHECK(empty.check_unchanged());
  CHECK(empty.slice(0, 0).value().size() == 0);
  empty.drop_pages(0, 0);
  std::byte one{};
  CHECK(code_of(empty.read_at(0, {&one, 1})) == "kInvalidArgument");
}

TEST_CASE("a memory source reads the caller's bytes, not a copy") {
  std::vector<std::byte> bytes = bytes_of("etstream");
  const ByteSource source = ByteSource::memory(bytes);
  CHECK(source.size() == 8);
  CHECK(source.name() == "memory");
  CHECK(text_of(source) == "etstream");
  bytes[0] = std::byte{'E'};
  CHECK(text_of(source) == "Etstream");
  CHECK(ByteSource::memory({}).size() == 0);
}

TEST_CASE("a slice of an owned source outlives it") {
  ByteSource slice;
  {
    const ByteSource source = ByteSource::owned(bytes_of("owned"));
    slice = source.slice(1, 4).value();
  }
  CHECK(text_of(slice) == "wned");
  CHECK(slice.name() == "memory");
}

TEST_CASE("zeros of any size take no memory") {
  const ByteSource zeros = ByteSource::zeros(kLargest);
  CHECK(zeros.size() == kLargest);
  CHECK(zeros.name() == "zeros");
  CHECK(read_text(zeros, 0, 3) == std::string(3, '\0'));
  CHECK(read_text(zeros, kLargest - 5, 5) == std::string(5, '\0'));
}

TEST_CASE("a range that is not inside is an error that names the range") {
  const ByteSource whole = source_of("0123456789");
  struct Range {
    std::uint64_t offset;
    std::uint64_t size;
  };
  const std::vector<Range> outside = {
      {0, 11}, {10, 1}, {11, 0}, {5, 6}, {kLargest, 1}, {1, kLargest}, {kLargest, kLargest}};
  for (const Range& range : outside) {
    const std::string spelled =
        text("bytes {} to {} + {} are not inside its 10 bytes", range.offset, range.offset, range.size);
    CHECK(error_of(whole.slice(range.offset, range.size)) == exactly("kInvalidArgument: memory: " + spelled));
  }
  CHECK(whole.slice(10, 0).value().size() == 0);
  CHECK(whole.slice(0, 10).value().size() == 10);
}

TEST_CASE("a source knows where it lies in another that it is a range of") {
  const ByteSource storage = source_of("0123456789");
  const ByteSource whole = storage.slice(2, 6).value();
  CHECK(whole.offset_in(storage) == 2U);
  CHECK(whole.offset_in(whole) == 0U);
  CHECK(whole.slice(3, 2).value().offset_in(whole) == 3U);
  CHECK(whole.slice(6, 0).value().offset_in(whole) == 6U);
  for (const ByteSource& other : {storage, storage.slice(1, 2).value(), storage.slice(7, 2).value(),
                                  source_of("0123456789"), ByteSource()}) {
    CHECK(other.offset_in(whole) == std::nullopt);
  }
}

TEST_CASE("a slice does not read past its own end") {
  const ByteSource slice = source_of("0123456789").slice(2, 3).value();
  std::array<std::byte, 4> out{};
  CHECK(code_of(slice.read_at(0, out)) == "kInvalidArgument");
  CHECK(code_of(slice.read_at(kLargest, std::span(out).first(1))) == "kInvalidArgument");
  CHECK(code_of(slice.slice(0, 4)) == "kInvalidArgument");
  CHECK(slice.read_at(3, {}));
  CHECK(slice.next_data(3) == 3);
  CHECK(ByteSource().next_data(0) == 0);
}

TEST_CASE("a concatenation ends at 2^64 - 1 bytes") {
  CHECK(ByteSource::concatenation({ByteSource::zeros(kLargest - 1), source_of("x")}).value().size() ==
        kLargest);
  CHECK(code_of(ByteSource::concatenation({ByteSource::zeros(kLargest), source_of("x")})) == "kTooLarge");
}

TEST_CASE("concatenations are not nested without end") {
  auto whole = ByteSource::concatenation({source_of("a")});
  for (int depth = 1; depth < 256; ++depth) whole = ByteSource::concatenation({*whole, source_of("a")});
  REQUIRE_MESSAGE(whole, whole.error().message);
  CHECK(text_of(*whole) == std::string(256, 'a'));
  CHECK(error_of(ByteSource::concatenation({*whole})) ==
        exactly("kTooLarge: a concatenation is nested more than 256 deep"));
}

TEST_CASE("a concatenation of one twice, of that twice, and so on, is walked once each") {
  const ByteSource file = ByteSource(std::make_shared<RecordingStorage>(1));
  ByteSource whole = file;
  for (int depth = 0; depth < 60; ++depth) whole = ByteSource::concatenation({whole, whole}).value();
  CHECK(whole.size() == std::uint64_t{1} << 60);
  CHECK(whole.check_unchanged());
  CHECK_FALSE(whole.lies_in({}));
  int origins = 0;
  for_each_origin(whole, [&](const ByteSource& origin) {
    CHECK(origin.place() == file.place());
    ++origins;
  });
  CHECK(origins == 2);
}

TEST_CASE("a concatenation passes on the error of the part that has one") {
  const ByteSource whole = ByteSource::concatenation({source_of("good"), failing(10, 5)}).value();
  CHECK(whole.name() == "concatenation from memory");
  std::array<std::byte, 9> out{};
  CHECK(whole.read_at(0, out));
  CHECK(error_of(whole.read_at(1, out)) == "kIo: the disk is on fire");
}

TEST_CASE("what is forgotten reaches the parts, in their own offsets") {
  const auto first = std::make_shared<RecordingStorage>(10);
  const auto second = std::make_shared<RecordingStorage>(20);
  const ByteSource whole =
      ByteSource::concatenation({ByteSource(first).slice(2, 8).value(), ByteSource(second)}).value();
  whole.drop_pages(5, 7);
  CHECK(first->forgotten() == RecordingStorage::Ranges{{7, 3}});
  CHECK(second->forgotten() == RecordingStorage::Ranges{{0, 4}});
  whole.slice(10, 18).value().drop_pages(3, 2);
  CHECK(second->forgotten() == RecordingStorage::Ranges{{0, 4}, {5, 2}});
}

TEST_CASE("to forget a range that is not inside does nothing") {
  const auto storage = std::make_shared<RecordingStorage>(10);
  const ByteSource slice = ByteSource(storage).slice(2, 5).value();
  slice.drop_pages(0, 6);
  slice.drop_pages(kLargest, 2);
  CHECK(storage->forgotten().empty());
}

/// A storage whose first data are at 40.
class HoleStorage final : public ByteStorage {
 public:
  std::uint64_t size() const noexcept override { return 100; }
  std::string name() const override { return "hole"; }
  Result<void> read_at(std::uint64_t, std::span<std::byte>) const override { return {}; }
  std::uint64_t next_data(std::uint64_t offset) const noexcept override {
    return std::max(offset, std::uint64_t{40});
  }
};

TEST_CASE("a range has its next data where its storage has them, or ends before") {
  const ByteSource hole(std::make_shared<HoleStorage>());
  CHECK(hole.slice(10, 50)->next_data(5) == 30);
  CHECK(hole.slice(10, 50)->next_data(35) == 35);
  CHECK(hole.slice(10, 20)->next_data(5) == 20);
}

TEST_CASE("the first byte that is not zero is found in any range") {
  const std::vector<std::uint64_t> places{0,    1,     2,     4094,  4095,   4096,   4097,   8191,
                                          8192, 70000, 70001, 99999, 135536, 135537, 199998, 199999};
  std::string bytes(200'000, '\0');
  for (const std::uint64_t at : places) bytes[at] = static_cast<char>('a' + at % 26);
  const ByteSource source = source_of(bytes);
  PagedReader reader(source, "reader");
  for (const std::uint64_t begin : places) {
    for (const std::uint64_t end : places) {
      CAPTURE(begin);
      CAPTURE(end);
      // Without its first byte, as most ranges then have zeros before the next one.
      const std::size_t next = begin < end ? bytes.find_first_not_of('\0', begin + 1) : end;
      for (const auto& found : {find_nonzero(source, begin + 1, end), find_nonzero(reader, begin + 1, end)}) {
        REQUIRE(found);
        REQUIRE(found->has_value() == (next < end));
        if (next >= end) continue;
        CHECK((*found)->offset == next);
        CHECK((*found)->value == bytes[next]);
      }
    }
  }
  std::array<std::byte, 2> out{};
  CHECK(error_of(reader.read(199'999, out)) ==
        "kCorrupt: reader: offset 199999: expected 2 bytes inside the 200000 bytes there are");
}

TEST_CASE("an error ends a search for a byte that is not zero, and a page that was not read is read again") {
  const ByteSource zeros(std::make_shared<FillStorage>('\0', 100'000, 50'000));
  CHECK(error_of(find_nonzero(zeros, 0, 60'000)) == "kIo: the disk is on fire");
  PagedReader reader(zeros, "reader");
  for (int i = 0; i < 2; ++i)
    CHECK(error_of(find_nonzero(reader, 49'000, 50'001)) == "kIo: the disk is on fire");
}

/// A source, and the bytes that it must have.
struct Model {
  ByteSource source;
  std::string bytes;
};

/// Makes sources of every kind, random in size and nested in each other.
class RandomSources {
 public:
  explicit RandomSources(const TemporaryFolder& folder) : file_bytes_(patterned(5000)) {
    put_file(folder / "file", file_bytes_);
    file_ = ByteSource::file(folder / "file").value();
  }

  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }

  Model make(int depth) {
    const std::size_t kind = below(depth > 0 ? 6 : 5);
    if (kind == 5) return concatenation(depth);
    const std::size_t size = kind == 0 ? 0 : below(700);
    const std::size_t offset = below(file_bytes_.size() - size);
    std::string bytes = file_bytes_.substr(offset, size);
    switch (kind) {
      case 1:
        return {file_.slice(offset, size).value(), bytes};
      case 2:
        return {ByteSource::zeros(size), std::string(size, '\0')};
      case 3:
        return {ByteSource::memory(std::as_bytes(std::span(file_bytes_)).subspan(offset, size)), bytes};
      default:
        return {source_of(bytes), bytes};
    }
  }

  Model concatenation(int depth) {
    std::vector<ByteSource> parts;
    std::string bytes;
    for (std::size_t count = below(6); count > 0; --count) {
      Model part = make(depth - 1);
      parts.push_back(std::move(part.source));
      bytes += part.bytes;
    }
    return {ByteSource::concatenation(std::move(parts)).value(), bytes};
  }

  /// Returns a random range of `model`, as a slice.
  Model slice(const Model& model) {
    const std::size_t offset = below(model.bytes.size() + 1);
    const std::size_t size = below(model.bytes.size() - offset + 1);
    return {model.source.slice(offset, size).value(), model.bytes.substr(offset, size)};
  }

 private:
  std::mt19937 random_{20240229};
  std::string file_bytes_;
  ByteSource file_;
};

TEST_CASE("random slices of random concatenations read as their model says") {
  const TemporaryFolder folder;
  RandomSources sources(folder);
  std::size_t bytes_compared = 0;
  for (std::uint64_t i = 0; i < 10 * testing::rounds(); ++i) {
    CAPTURE(i);
    const Model whole = sources.concatenation(3);
    REQUIRE(whole.source.size() == whole.bytes.size());
    REQUIRE(text_of(whole.source) == whole.bytes);
    for (int slices = 0; slices < 10; ++slices) {
      const Model outer = sources.slice(whole);
      const Model inner = sources.slice(outer);
      REQUIRE(text_of(outer.source) == outer.bytes);
      REQUIRE(text_of(inner.source) == inner.bytes);
      bytes_compared += inner.bytes.size();
    }
  }
  CHECK(bytes_compared > 5000 * testing::rounds());
}

}  // namespace
}  // namespace etstream::byte_source_test
