// SPDX-License-Identifier: BSD-3-Clause
#include "formats/checkpoint/rename/rename_rules.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "test_errors.h"
#include "test_sources.h"

namespace etstream {
namespace {

/// Returns the expected output of interleave_rope(), row by row.
std::string interleaved(const std::string& rows, std::size_t head_dim, std::size_t row_size) {
  std::string out;
  for (std::size_t head = 0; head * head_dim * row_size < rows.size(); ++head) {
    for (std::size_t row = 0; row < head_dim; ++row) {
      const std::size_t from = head * head_dim + row % 2 * (head_dim / 2) + row / 2;
      out += rows.substr(from * row_size, row_size);
    }
  }
  return out;
}

TEST_CASE("any range of interleaved rows reads as it is in the whole") {
  for (const auto& [head_dim, row_size] : {std::pair{6, 1}, {4, 3}, {8, 5}, {2, 7}}) {
    const auto rows = patterned(static_cast<std::size_t>(head_dim * row_size) * 3);
    const auto expected =
        interleaved(rows, static_cast<std::size_t>(head_dim), static_cast<std::size_t>(row_size));
    const ByteSource source = interleave_rope(source_of(rows), static_cast<std::uint64_t>(head_dim),
                                              static_cast<std::uint64_t>(row_size));
    REQUIRE(source.size() == rows.size());
    for (std::size_t begin = 0; begin < rows.size(); ++begin) {
      for (std::size_t end = begin; end <= rows.size(); ++end) {
        REQUIRE(text_of(source.slice(begin, end - begin).value()) == expected.substr(begin, end - begin));
      }
    }
  }
}

TEST_CASE("rows longer and shorter than what is read at once are interleaved alike") {
  // These are sizes in bytes; 256 KiB are read at once.
  for (const std::size_t row_size : {4097U, 262144U, 262145U, 600001U}) {
    CAPTURE(row_size);
    const auto rows = patterned(row_size * 8);
    const std::string expected = interleaved(rows, 4, row_size);
    const ByteSource source = interleave_rope(source_of(rows), 4, row_size);
    CHECK(text_of(source) == expected);
    for (const std::size_t begin : {std::size_t{1}, row_size - 1, row_size * 3 + 5}) {
      const std::size_t size = row_size * 4 + 3;
      CHECK(text_of(source.slice(begin, size).value()) == expected.substr(begin, size));
    }
  }
}

TEST_CASE("several rows are read together") {
  const auto storage = std::make_shared<RecordingStorage>(std::uint64_t{1} << 20);
  const ByteSource source = interleave_rope(ByteSource(storage), 128, 1024);
  std::vector<std::byte> out(source.size());
  REQUIRE(source.read_at(0, out));
  RecordingStorage::Ranges halves;  // of the eight heads
  for (std::uint64_t i = 0; i < 16; ++i) halves.emplace_back(i << 16, 1 << 16);
  CHECK(storage->read() == halves);
}

TEST_CASE("what has been read of interleaved rows is forgotten by whole heads") {
  const auto storage = std::make_shared<RecordingStorage>(96);
  const ByteSource source = interleave_rope(ByteSource(storage), 4, 8);
  source.drop_pages(0, 31);
  source.drop_pages(31, 40);
  source.drop_pages(71, 25);
  CHECK(storage->forgotten() == RecordingStorage::Ranges{{0, 64}, {64, 32}});
}

TEST_CASE("errors of reading pass through interleaved rows, and its name and changes are its source's") {
  const ByteSource source = interleave_rope(failing(64, 32), 4, 8);
  std::vector<std::byte> out(64);
  CHECK(error_of(source.read_at(0, out)) == containing("the disk is on fire"));
  CHECK(code_of(source.read_at(0, std::span(out).first(32))) == "no error");
  CHECK(source.name() == "fill");
  CHECK(code_of(source.check_unchanged()) == "no error");
}

}  // namespace
}  // namespace etstream
