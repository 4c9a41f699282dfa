// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/sink.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/layout/file_plan.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_sources.h"

namespace etstream::write_test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kStep = 16 * kMiB;  // at most between two calls of the progress function

FilePlan plan_of(std::vector<ByteSource> sources) {
  FilePlan plan;
  for (ByteSource& source : sources) {
    const std::uint64_t size = source.size();
    plan.extents.push_back({plan.size, 1, 0, std::move(source)});
    plan.size += size;
  }
  plan.labels = {"part"};
  plan.payload_size = plan.size;
  return plan;
}

/// A sink that records its calls, and fails at the call that it is told to fail at.
class JournalSink final : public Sink {
 public:
  explicit JournalSink(std::string failing = "") : failing_(std::move(failing)) {}

  std::uint64_t clone_range(const ByteSource& source, std::uint64_t offset) override {
    if (source.size() < smallest_shared) return 0;
    const std::uint64_t size = source.size() / 4096 * 4096;
    return note("share " + std::to_string(offset) + " +", size) ? size : 0;
  }
  Result<void> reserve(std::uint64_t size) override { return note("reserve", size); }
  Result<void> skip(std::uint64_t size) override { return note("skip", size); }
  Result<void> append(const ByteSource& source) override { return note("append", source.size()); }
  Result<void> commit() override { return note("commit", 0); }

  [[nodiscard]] const std::string& journal() const { return journal_; }
  std::uint64_t smallest_shared = UINT64_MAX;

 private:
  Result<void> note(const std::string& call, std::uint64_t size) {
    journal_ += call + " " + std::to_string(size) + "; ";
    if (call == failing_) return Error{ErrorCode::kIo, "cannot " + call};
    return {};
  }

  std::string failing_;
  std::string journal_;
};

TEST_CASE("the sink hears the size first and commit once, last") {
  JournalSink sink;
  REQUIRE(write(plan_of({source_of("meta"), ByteSource::zeros(kStep + 1)}), sink));
  CHECK(sink.journal() == "reserve 16777221; append 4; append 16777216; append 1; commit 0; ");
  JournalSink empty;
  REQUIRE(write(FilePlan(), empty));
  CHECK(empty.journal() == "reserve 0; commit 0; ");
}

TEST_CASE("the sink's error ends the writing and is passed on") {
  const FilePlan plan = plan_of({source_of("meta"), source_of("data")});
  struct Row {
    std::string failing;
    std::string journal;
  };
  const std::vector<Row> rows = {{"reserve", "reserve 8; "},
                                 {"append", "reserve 8; append 4; "},
                                 {"commit", "reserve 8; append 4; append 4; commit 0; "}};
  for (const Row& row : rows) {
    CAPTURE(row.failing);
    JournalSink sink(row.failing);
    CHECK(error_of(write(plan, sink)) == exactly("kIo: cannot " + row.failing));
    CHECK(sink.journal() == row.journal);
  }
}

TEST_CASE("what a sink shares is skipped, and only the rest appended") {
  JournalSink sink;
  sink.smallest_shared = 10'000;
  REQUIRE(
      write(plan_of({source_of("meta"), ByteSource::zeros(2 * kStep + 1), ByteSource::zeros(8192)}), sink));
  CHECK(sink.journal() ==
        "share 4 + 33554432; reserve 33562629; append 4; skip 33554432; append 1; append 8192; commit 0; ");
}

TEST_CASE(
    "what is shared is hashed like what is copied, with progress, and an error in it ends the writing") {
  const std::string payload = patterned(800 * 4096);
  const auto hashed = [&](Sink& sink, ByteSource source, const Progress& progress = {}) {
    FilePlan plan = plan_of({std::move(source), ByteSource::zeros(16)});
    ContentHash hash{};
    plan.trailer = Trailer{{{0, payload.size()}}, [&hash](std::span<const ContentHash> hashes) {
                             hash = hashes[0];
                             return std::vector<std::byte>(16);
                           }};
    const auto written = write(plan, sink, progress);
    return std::pair(written, hash);
  };
  std::vector<std::byte> copy;
  const auto [copied, expected] = hashed(*open_memory_sink(copy), source_of(payload));
  JournalSink sharing;
  sharing.smallest_shared = 10'000;
  std::vector<std::uint64_t> seen;
  const auto [shared, actual] = hashed(sharing, source_of(payload), [&](std::uint64_t done, std::uint64_t) {
    seen.push_back(done);
    return true;
  });
  REQUIRE(copied);
  REQUIRE(shared);
  CHECK((actual == expected));
  CHECK((actual != ContentHash{}));
  CHECK(sharing.journal() == "share 0 + 3276800; reserve 3276816; skip 3276800; append 16; commit 0; ");
  CHECK(seen == std::vector<std::uint64_t>{0, payload.size() + 16});

  JournalSink failed;
  failed.smallest_shared = 10'000;
  CHECK(error_of(hashed(failed, failing(payload.size(), 2'000'000)).first) == "kIo: the disk is on fire");
  CHECK(failed.journal() == "share 0 + 3276800; reserve 3276816; ");
}

TEST_CASE("a sink that shares nothing does not skip") {
  std::vector<std::byte> out;
  const auto sink = open_memory_sink(out);
  CHECK(sink->clone_range(ByteSource::zeros(kMiB), 0) == 0);
  CHECK(error_of(sink->skip(5)) == "kInvalidArgument: a sink that shares nothing can't skip 5 bytes");
}

TEST_CASE("progress grows at least every 16 MiB and reaches the total") {
  const FilePlan plan = plan_of({source_of("meta"), ByteSource::zeros(50 * kMiB), source_of("data"),
                                 ByteSource::zeros(kStep), ByteSource::zeros(3)});
  JournalSink sink;
  std::vector<std::uint64_t> seen;
  REQUIRE(write(plan, sink, [&](std::uint64_t done, std::uint64_t total) {
    CHECK(total == plan.size);
    seen.push_back(done);
    return true;
  }));
  REQUIRE(seen.size() >= 6);
  CHECK(seen.front() == 0);
  CHECK(seen.back() == plan.size);
  for (std::size_t i = 1; i < seen.size(); ++i) {
    CHECK(seen[i] > seen[i - 1]);
    CHECK(seen[i] - seen[i - 1] <= kStep);
  }
}

TEST_CASE("a destination is untouched when progress says to stop, whenever it does") {
  const TemporaryFolder folder;
  put_file(folder / "out", "before");
  const FilePlan plan = plan_of({source_of("meta"), ByteSource::zeros(kStep + 5)});
  constexpr int kCalls = 4;  // before each append, and before the commit
  for (int stop_at = 1; stop_at <= kCalls + 1; ++stop_at) {
    CAPTURE(stop_at);
    int calls = 0;
    Result<void> written;
    {
      auto sink = open_file_sink(folder / "out", {.sync = false});
      REQUIRE(sink);
      written = write(plan, **sink, [&](std::uint64_t, std::uint64_t) { return ++calls < stop_at; });
    }
    CHECK(calls == std::min(stop_at, kCalls));
    CHECK(folder.names() == std::vector<std::string>{"out"});
    CHECK(code_of(written) == (stop_at <= kCalls ? "kInterrupted" : "no error"));
    CHECK((content_of(folder / "out") == "before") == (stop_at <= kCalls));
  }
}

TEST_CASE("the plan of a copy is the source as it is") {
  std::vector<std::byte> out;
  const FilePlan plan = plan_copy(source_of("all of it"), "program");
  CHECK(plan.size == 9);
  CHECK(plan.payload_size == 9);
  CHECK(plan.metadata_size == 0);
  REQUIRE(write(plan, *open_memory_sink(out)));
  CHECK(text_of(out) == "all of it");
  CHECK(plan.label(plan.extents[0]) == "program");
  CHECK(plan_copy(ByteSource(), "nothing").size == 0);
}

TEST_CASE("segments follow one another at their alignments, with zeros between") {
  const std::vector<Segment> segments{
      {source_of("abc"), 4, "one"}, {source_of("d"), 16, "two"}, {{}, 8, "none"}};
  const auto offsets = place(segments);
  REQUIRE(offsets);
  CHECK(*offsets == std::vector<std::uint64_t>{0, 16, 24});
  FilePlan plan = plan_copy(source_of("head."), "head");
  CHECK(append(plan, segments, *offsets, 8).value() == 8);
  REQUIRE(append(plan, 2, "one", source_of("e")));
  std::string found;
  for (const Extent& extent : plan.extents) {
    found += text("{} + {} {} {}; ", extent.offset, extent.size(), extent.alignment, plan.label(extent));
  }
  CHECK(found ==
        "0 + 5 1 head; 5 + 3 1 padding; 8 + 3 4 one; 11 + 13 1 padding; 24 + 1 16 two; "
        "25 + 7 1 padding; 32 + 1 2 one; ");
  CHECK(plan.labels == std::vector<std::string>{"head", "padding", "one", "two"});
  CHECK(plan.size == 33);
}

TEST_CASE("a plan ends at 2^64 - 1 bytes") {
  const ByteSource most = ByteSource::zeros(UINT64_MAX);
  const std::string too_large = "kTooLarge: the file would be over 2^64 - 1 bytes";
  CHECK(error_of(place({{most, 1, "a"}})) == "no error");
  for (const std::uint32_t alignment : {1U, 2U}) {
    CHECK(error_of(place({{most, 1, "a"}, {source_of("b"), alignment, "b"}})) ==
          "kTooLarge: the segments would be over 2^64 - 1 bytes");
  }
  FilePlan plan = plan_copy(source_of("x"), "x");
  CHECK(error_of(append(plan, 1, "most", most)) == exactly(too_large));
  CHECK(error_of(append(plan, {{most, 1, "a"}}, {0}, 1)) == exactly(too_large));
  CHECK(error_of(append(plan, {{source_of("b"), 1, "b"}}, {UINT64_MAX}, 1)) == exactly(too_large));
  FilePlan full = plan_copy(most, "most");
  CHECK(error_of(append(full, {}, {}, 4)) == exactly(too_large));
}

TEST_CASE("an alignment is a power of two up to a limit") {
  CHECK(check_alignment("alignment", 1, 16));
  CHECK(check_alignment("alignment", 16, 16));
  for (const std::uint32_t bad : {0U, 3U, 32U, 0x80000000U}) {
    CHECK(error_of(check_alignment("segment alignment", bad, 16)) ==
          exactly(text("kInvalidArgument: segment alignment {}: expected a power of two from 1 to 16", bad)));
  }
}

TEST_CASE("a plan's memory is its metadata and a buffer, not its payload") {
  FilePlan plan = plan_of({ByteSource::zeros(std::uint64_t{1} << 40)});
  plan.metadata_size = 1000;
  CHECK(plan.memory() >= kMiB + 1000);
  CHECK(plan.memory() < 2 * kMiB);
}

}  // namespace
}  // namespace etstream::write_test
