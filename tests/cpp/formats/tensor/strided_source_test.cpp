// SPDX-License-Identifier: BSD-3-Clause
#include "formats/tensor/strided_source.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "counted_bytes.h"
#include "seeded_random.h"
#include "test_errors.h"
#include "test_sources.h"

namespace etstream::strided_source_test {
namespace {

/// Returns the elements one by one, by the definition of StridedElements.
std::string one_by_one(const std::string& bytes, const StridedElements& elements) {
  std::string out;
  const std::size_t count =
      std::accumulate(elements.sizes.begin(), elements.sizes.end(), std::uint64_t{1}, std::multiplies<>());
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t rest = i;
    auto at = static_cast<std::int64_t>(elements.offset);
    for (std::size_t d = elements.sizes.size(); d-- > 0; rest /= elements.sizes[d]) {
      at += static_cast<std::int64_t>(rest % elements.sizes[d]) * elements.strides[d];
    }
    out.append(bytes, static_cast<std::size_t>(at), elements.item_size);
  }
  return out;
}

/// Makes strides of random signs, steps and orders, sometimes 0. Their span is at a random place in `bytes`.
StridedElements random_elements(std::mt19937& random, std::uint64_t largest_size, std::size_t bytes) {
  StridedElements out;
  out.item_size = std::vector<std::uint64_t>{1, 2, 3, 4, 8, 16}[random() % 6];
  const std::size_t dimensions = random() % 5;
  std::int64_t step = static_cast<std::int64_t>(out.item_size);
  std::int64_t before = 0;
  std::int64_t behind = step;
  std::vector<std::size_t> order(dimensions);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  out.sizes.assign(dimensions, 1);
  out.strides.assign(dimensions, 0);
  for (const std::size_t d : order) {
    const auto size = static_cast<std::int64_t>(1 + random() % largest_size);
    std::int64_t stride = step * static_cast<std::int64_t>(1 + random() % 3 / 2);
    if (random() % 8 == 0) stride = 0;
    const std::int64_t reach = (size - 1) * stride;
    if (before + behind + reach > static_cast<std::int64_t>(bytes)) continue;
    const bool backwards = random() % 3 == 0;
    (backwards ? before : behind) += reach;
    out.sizes[d] = static_cast<std::uint64_t>(size);
    out.strides[d] = backwards ? -stride : stride;
    if (stride != 0) step = stride * size;
  }
  const std::uint64_t room = bytes - static_cast<std::uint64_t>(before + behind);
  out.offset = static_cast<std::uint64_t>(before) + random() % (room + 1);
  return out;
}

TEST_CASE("elements come in the order of their indices, wherever they lie") {
  std::mt19937 random(7);
  const std::string bytes = patterned(std::size_t{1} << 16);
  const ByteSource source = source_of(bytes);
  for (std::uint64_t i = 0; i < 150 * testing::rounds(); ++i) {
    CAPTURE(i);
    const StridedElements elements = random_elements(random, 1 + random() % 12, bytes.size());
    const std::string expected = one_by_one(bytes, elements);
    const auto gathered = gather(source, elements);
    REQUIRE(gathered);
    REQUIRE(gathered->size() == expected.size());
    CHECK(text_of(*gathered) == expected);
    const std::size_t from = random() % expected.size();
    const std::size_t size = 1 + random() % (expected.size() - from);
    CHECK(text_of(gathered->slice(from, size).value()) == expected.substr(from, size));
  }
}

TEST_CASE("arrays of several windows are as those of one") {
  std::mt19937 random(8);
  const std::string bytes = patterned(std::size_t{9} << 20);
  const ByteSource source = source_of(bytes);
  for (const StridedElements& elements : {
           StridedElements{8, {512, 1024}, {8, 4096}, 0},             // a transposed matrix
           StridedElements{4, {3, 200, 1000}, {4, 12000, 12}, 1},     // channels first of channels last
           StridedElements{4, {500, 700, 3}, {2800, 4, 1400000}, 0},  // and the other way round
           StridedElements{4, {3, 600000}, {4, 12}, 0},               // a row is longer than a window
           StridedElements{4, {800000}, {-8}, 6400000},               // backwards
           StridedElements{8, {5, 40000, 2}, {0, 80, 8}, 16},         // each row five times
           StridedElements{8, {35, 300, 70}, {240000, 8, 2400}, 0},   // its outermost dimension is as it lies
       }) {
    const std::string expected = one_by_one(bytes, elements);
    const ByteSource gathered = gather(source, elements).value();
    CHECK(text_of(gathered) == expected);
    for (int i = 0; i < 20; ++i) {
      const std::size_t from = random() % expected.size();
      const std::size_t size = std::min<std::size_t>(1 + random() % 100000, expected.size() - from);
      CHECK(text_of(gathered.slice(from, size).value()) == expected.substr(from, size));
    }
  }
}

TEST_CASE("elements that lie one after another are a slice") {
  const ByteSource source = source_of(patterned(100));
  CHECK(gather(source, {2, {1, 3, 5}, {77, 10, 2}, 4})->offset_in(source) == 4);
  CHECK(gather(source, {4, {}, {}, 96})->offset_in(source) == 96);
  CHECK(gather(source, {4, {3, 0}, {-1000, 1000}, 5000})->size() == 0);
  CHECK(gather(source_of(""), {4, {0}, {4}, 0})->size() == 0);
}

TEST_CASE("what is gathered twice is read from where it lies") {
  const ByteSource source = source_of(patterned(240));
  const ByteSource transposed = gather(source, {4, {5, 12}, {4, 20}, 0}).value();
  const ByteSource back = gather(transposed, {4, {12, 5}, {4, 48}, 0}).value();
  CHECK(back.offset_in(source) == 0);
  CHECK(gather(transposed, {4, {12, 1, 5}, {4, 999, 48}, 0})->offset_in(source) == 0);
  const auto check = [](const ByteSource& gathered, const StridedElements& again) {
    CHECK(text_of(gather(gathered, again).value()) == one_by_one(text_of(gathered), again));
  };
  check(transposed, {4, {30}, {8}, 4});
  check(transposed, {4, {4, 15}, {48, 4}, 0});  // strides of its dimensions with other sizes
  check(gather(source, {2, {5, 2}, {2, 10}, 0}).value(), {4, {5}, {4}, 0});
  check(gather(source, {1, {2, 2, 2, 8}, {1, 2, 4, 8}, 0}).value(), {1, {8, 8}, {1, 1}, 0});
}

TEST_CASE("channels are brought to the end by large reads of each") {
  constexpr std::uint64_t kPixels = std::uint64_t{1} << 20;
  const auto storage = std::make_shared<CountedBytes>(patterned(3 * 4 * kPixels));
  const ByteSource nhwc = gather(ByteSource(storage), {4, {kPixels, 3}, {4, 4 * kPixels}, 0}).value();
  std::string page(4096, '\0');
  for (std::uint64_t at = 0; at < nhwc.size(); at += page.size()) {
    REQUIRE(nhwc.read_at(at, std::as_writable_bytes(std::span(page))));
  }
  CHECK(storage->bytes_read() == nhwc.size());  // each once, though it was asked for in pages
  CHECK(storage->reads() < 50);
}

TEST_CASE("rows that are far apart are not read with all that lies between") {
  const auto storage = std::make_shared<CountedBytes>(std::string(std::size_t{32} << 20, 'x'));
  const ByteSource column = gather(ByteSource(storage), {4, {512}, {65536}, 0}).value();
  text_of(column);
  CHECK(storage->bytes_read() == column.size());
  const ByteSource rows = gather(ByteSource(storage), {4, {64, 2048}, {65536, 4}, 0}).value();
  text_of(rows);
  CHECK(storage->bytes_read() == column.size() + rows.size());
}

TEST_CASE("elements that are near each other are read at once, and kept while other sources come and go") {
  const auto storage = std::make_shared<CountedBytes>(patterned(240));
  const StridedElements elements{4, {5, 12}, {4, 20}, 0};
  const ByteSource gathered = gather(ByteSource(storage), elements).value();
  const std::string expected = one_by_one(patterned(240), elements);
  CHECK(text_of(gathered.slice(0, 100).value()) == expected.substr(0, 100));
  CHECK(gather(ByteSource(storage), {4, {30}, {8}, 0}));
  CHECK(text_of(gathered.slice(100, 140).value()) == expected.substr(100));
  CHECK(storage->reads() == 1);
}

TEST_CASE("pages are dropped with the window that needed them, or at the end") {
  const auto storage = std::make_shared<RecordingStorage>(std::uint64_t{12} << 20);
  const std::uint64_t pixels = std::uint64_t{1} << 20;
  const ByteSource nhwc = gather(ByteSource(storage), {4, {pixels, 3}, {4, 4 * pixels}, 0}).value();
  nhwc.drop_pages(0, std::uint64_t{4} << 20);
  CHECK(storage->forgotten().size() == 6);  // three channels of the two windows that end there
  nhwc.drop_pages(0, nhwc.size());
  CHECK(storage->forgotten().back() == std::pair<std::uint64_t, std::uint64_t>(0, nhwc.size()));
}

TEST_CASE("pages are dropped of large blocks that are used by half") {
  struct Row {
    StridedElements elements;
    std::uint64_t step, span;  // of the blocks in the first window; their span is 0 if none is dropped
  };
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  for (const Row& row :
       {Row{{1, {8, 129, 2048}, {kMiB, 4112, 1}, 0}, kMiB, 2 * 129 * 2048},
        Row{{1, {8, 129, 2048}, {kMiB, 4113, 1}, 0}, kMiB, 0},
        Row{{1, {9, 262144}, {kMiB, 1}, 0}, kMiB, 262144}, Row{{1, {9, 262143}, {kMiB, 1}, 0}, kMiB, 0}}) {
    const auto storage = std::make_shared<RecordingStorage>(9 * kMiB);
    const ByteSource gathered = gather(ByteSource(storage), row.elements).value();
    const std::uint64_t each = gathered.size() / row.elements.sizes[0];
    const std::uint64_t rows = 2 * kMiB / each;
    gathered.drop_pages(0, rows * each);
    RecordingStorage::Ranges expected;
    for (std::uint64_t i = 0; i < rows && row.span > 0; ++i) expected.emplace_back(i * row.step, row.span);
    CHECK((storage->forgotten() == expected));
  }
}

TEST_CASE("errors of reading are passed on") {
  const ByteSource gathered = gather(failing(100, 50), {1, {10, 10}, {1, 10}, 0}).value();
  std::byte one{};
  CHECK(error_of(gathered.read_at(0, std::span(&one, 1))) == exactly("kIo: the disk is on fire"));
}

TEST_CASE("elements outside their source are refused") {
  const ByteSource source = source_of(patterned(100));
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  CHECK(error_of(gather(source, {4, {25}, {4}, 1})) == containing("are not all inside its 100 bytes"));
  CHECK(error_of(gather(source, {4, {2}, {-4}, 3})) == containing("are not all inside its 100 bytes"));
  CHECK(error_of(gather(source, {4, {2}, {kMost}, 0})) == containing("are not all inside its 100 bytes"));
  CHECK(error_of(gather(source, {4, {3}, {kLeast}, 50})) == containing("are not all inside its 100 bytes"));
  CHECK(error_of(gather(source, {4, {1}, {4}, 200})) == containing("are not all inside its 100 bytes"));
  CHECK(error_of(gather(source, {1, {1ULL << 32, 1ULL << 32}, {0, 0}, 0})) ==
        containing("take 2^63 bytes or more"));
  CHECK(gather(repeated('x', kMost), {1, {kMost}, {0}, 5})->size() == kMost);
  CHECK(error_of(gather(source, {0, {1}, {1}, 0})) == containing("are not 1 to 16 bytes each"));
  CHECK(error_of(gather(source, {17, {1}, {1}, 0})) == containing("are not 1 to 16 bytes each"));
  CHECK(gather(source, {1, std::vector<std::uint64_t>(64, 1), std::vector<std::int64_t>(64, 1), 0}));
  CHECK(error_of(gather(source, {4, {1, 1}, {1}, 0})) == containing("a stride for each"));
  CHECK(error_of(gather(source, {4, std::vector<std::uint64_t>(65, 1), std::vector<std::int64_t>(65, 1),
                                 0})) == containing("at most 64 dimensions"));
}

}  // namespace
}  // namespace etstream::strided_source_test
