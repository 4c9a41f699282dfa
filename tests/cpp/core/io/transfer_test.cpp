// SPDX-License-Identifier: BSD-3-Clause
#include "core/io/transfer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "test_errors.h"
#include "test_sources.h"

namespace etstream::transfer_test {
namespace {

constexpr std::size_t kBuffer = kTransferBufferSize;

/// Keeps the pieces that it gets, and their sizes.
class CollectingSink final : public BufferedSink {
 public:
  using BufferedSink::set_forgetful;

  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] const std::vector<std::size_t>& pieces() const { return pieces_; }
  [[nodiscard]] int finished() const { return finished_; }
  void fail_at_piece(std::size_t piece) { failing_piece_ = piece; }

 private:
  Result<void> take(std::span<const std::byte> bytes) override {
    if (pieces_.size() == failing_piece_) return Error{ErrorCode::kIo, "no more"};
    pieces_.push_back(bytes.size());
    bytes_ += text_of(bytes);
    return {};
  }
  Result<void> finish() override {
    ++finished_;
    return {};
  }

  std::string bytes_;
  std::vector<std::size_t> pieces_;
  std::size_t failing_piece_ = SIZE_MAX;
  int finished_ = 0;
};

TEST_CASE("sources of all sizes around the buffer's arrive whole, in full pieces") {
  const std::vector<std::vector<std::size_t>> tables = {
      {},
      {0},
      {1},
      {kBuffer - 1},
      {kBuffer},
      {kBuffer + 1},
      {2 * kBuffer},
      {3 * kBuffer - 1},
      {kBuffer - 1, 1},
      {kBuffer - 1, 2},
      {1, kBuffer},
      {kBuffer, kBuffer, 1},
      {0, 5, 0, 3 * kBuffer, 0, 7, kBuffer - 12},
      std::vector<std::size_t>(3000, 997),
  };
  for (const std::vector<std::size_t>& sizes : tables) {
    const std::size_t total = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
    CAPTURE(sizes.size());
    CAPTURE(total);
    const std::string expected = patterned(total);
    CollectingSink sink;
    std::size_t offset = 0;
    for (const std::size_t size : sizes) {
      REQUIRE(sink.append(source_of(std::string_view(expected).substr(offset, size))));
      offset += size;
    }
    REQUIRE(sink.commit());
    CHECK((sink.bytes() == expected));
    std::vector<std::size_t> full(total / kBuffer, kBuffer);
    if (total % kBuffer != 0) full.push_back(total % kBuffer);
    CHECK(sink.pieces() == full);
    CHECK(sink.finished() == 1);
  }
}

TEST_CASE("a source is read once, front to back, never more than a buffer at a time") {
  const auto storage = std::make_shared<RecordingStorage>(2 * kBuffer + 100);
  CollectingSink sink;
  REQUIRE(sink.append(source_of("0123456789")));
  REQUIRE(sink.append(ByteSource(storage)));
  REQUIRE(sink.commit());
  CHECK(storage->read() ==
        RecordingStorage::Ranges{{0, kBuffer - 10}, {kBuffer - 10, kBuffer}, {2 * kBuffer - 10, 110}});
  CHECK(storage->forgotten().empty());
}

TEST_CASE("a forgetful sink has a large source forget all that was read, and leaves a small one be") {
  for (const std::size_t size : {2 * kBuffer + 100, std::size_t{1000}}) {
    const auto storage = std::make_shared<RecordingStorage>(size);
    CollectingSink sink;
    sink.set_forgetful(true);
    REQUIRE(sink.append(ByteSource(storage)));
    REQUIRE(sink.commit());
    CHECK(storage->read().size() == size / kBuffer + 1);
    CHECK(storage->forgotten() == (size > kBuffer ? storage->read() : RecordingStorage::Ranges()));
  }
}

TEST_CASE("a read error ends the transfer and is passed on") {
  CollectingSink sink;
  CHECK(error_of(sink.append(failing(4 * kBuffer, kBuffer + 1))) == "kIo: the disk is on fire");
  CHECK(sink.pieces().size() == 1);
  CHECK(sink.finished() == 0);
}

TEST_CASE("an error from the taker ends the transfer and is passed on, by append or by commit") {
  CollectingSink sink;
  sink.fail_at_piece(1);
  CHECK(error_of(sink.append(ByteSource::zeros(4 * kBuffer))) == "kIo: no more");
  CHECK(sink.pieces().size() == 1);
  CollectingSink late;
  late.fail_at_piece(0);
  REQUIRE(late.append(source_of("x")));
  CHECK(error_of(late.commit()) == "kIo: no more");
  CHECK(late.finished() == 0);
}

}  // namespace
}  // namespace etstream::transfer_test
