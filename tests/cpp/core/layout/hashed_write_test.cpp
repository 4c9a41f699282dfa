// SPDX-License-Identifier: BSD-3-Clause
//
// Layouts whose last extent is made from the hashes of the bytes before it.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/hashes.h"
#include "etstream/sink.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_sources.h"

namespace etstream::hashed_write_test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Plans a file of the sources, with the hashes of `ranges` behind them.
FilePlan hashed_plan(std::vector<ByteSource> sources, std::vector<Trailer::Range> ranges) {
  FilePlan plan;
  plan.labels = {"part"};
  sources.push_back(ByteSource::zeros(ranges.size() * sizeof(ContentHash)));
  for (ByteSource& source : sources) {
    const std::uint64_t size = source.size();
    plan.extents.push_back({plan.size, 1, 0, std::move(source)});
    plan.size += size;
  }
  plan.trailer = Trailer{std::move(ranges), [](std::span<const ContentHash> hashes) {
                           const auto bytes = std::as_bytes(hashes);
                           return std::vector<std::byte>(bytes.begin(), bytes.end());
                         }};
  return plan;
}

std::string hash_of(std::string_view bytes) {
  ContentHasher hasher;
  hasher.update(std::as_bytes(std::span(bytes)));
  const ContentHash hash = hasher.hash();
  return text_of(hash);
}

TEST_CASE("the hashes of what was written end the file, also of what took several steps") {
  const std::string payload = patterned(33 * kMiB + 5);
  const FilePlan plan = hashed_plan({source_of("meta"), source_of(payload)},
                                    {{0, 4}, {0, 10}, {4, payload.size()}, {16 * kMiB, 17 * kMiB}});
  const std::string expected = "meta" + payload;
  for (int i = 0; i < 2; ++i) {
    std::vector<std::byte> out;
    REQUIRE(write(plan, *open_memory_sink(out)));
    const std::string written = text_of(out);
    REQUIRE(written.size() == plan.size);
    CHECK((written.substr(0, expected.size()) == expected));
    std::string hashes;
    for (const auto& range : plan.trailer->hashed) {
      hashes += hash_of(std::string_view(expected).substr(range.offset, range.size));
    }
    CHECK(written.substr(expected.size()) == hashes);
  }
}

/// Reads the appended bytes, and then the second one of the second source once more.
class RereadingSink final : public Sink {
 public:
  Result<void> reserve(std::uint64_t) override { return {}; }
  Result<void> append(const ByteSource& source) override {
    std::vector<std::byte> bytes(source.size());
    if (auto read = source.read_at(0, bytes); !read || ++sources_ != 2) return read;
    return source.read_at(1, std::span(bytes).first(1));
  }
  Result<void> commit() override { return {}; }

 private:
  int sources_ = 0;
};

TEST_CASE("a sink that reads twice what is hashed is an error, not another hash") {
  RereadingSink sink;
  CHECK(
      error_of(write(hashed_plan({source_of("meta"), source_of("data")}, {{0, 8}}), sink)) ==
      exactly(
          "kInvalidArgument: memory: a sink read at 5 of the file, expected it at 8: what is hashed is read "
          "once and in order"));
}

TEST_CASE("a plan whose end is not known yet is no source") {
  CHECK(error_of(etstream::source_of(hashed_plan({source_of("meta")}, {{0, 4}}))) ==
        "kUnsupported: the end of the file is not known yet");
}

TEST_CASE("a large source is forgotten when it is hashed too") {
  const TemporaryFolder folder;
  const auto recording = std::make_shared<RecordingStorage>(3 * kMiB);
  const auto sink = open_file_sink(folder / "out");
  REQUIRE(sink);
  REQUIRE(write(hashed_plan({ByteSource(recording)}, {{0, 3 * kMiB}}), **sink));
  CHECK(recording->forgotten() == recording->read());
}

}  // namespace
}  // namespace etstream::hashed_write_test
