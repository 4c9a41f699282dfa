// SPDX-License-Identifier: BSD-3-Clause
//
// That verify() and inspect() open each file once and read its metadata once.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>

#include "etstream/inspect.h"
#include "etstream/verify.h"
#include "file_bytes.h"

namespace etstream::verify_reads_test {
namespace {

/// A file that counts how often it is read, and how many bytes.
class CountedFile final : public ByteStorage {
 public:
  explicit CountedFile(std::string bytes) : bytes_(std::move(bytes)) {}

  std::uint64_t size() const noexcept override { return bytes_.size(); }
  std::string name() const override { return "counted"; }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    ++reads_;
    bytes_read_ += out.size();
    return {};
  }
  [[nodiscard]] int reads() const { return reads_; }
  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  const std::string bytes_;
  mutable std::atomic<int> reads_ = 0;
  mutable std::atomic<std::uint64_t> bytes_read_ = 0;
};

struct Reads {
  int number;
  std::uint64_t bytes;
};

/// What verify() reads of a file to say what is wrong with it and what it needs of others.
Reads reads_of(const std::string& bytes) {
  const auto file = std::make_shared<CountedFile>(bytes);
  const auto findings = verify(ByteSource(file), {});
  REQUIRE(findings);
  CHECK(findings->ok());
  CHECK(findings->external_keys == std::vector<std::string>());
  return {file->reads(), file->bytes_read()};
}

TEST_CASE("a program is opened once: its identifier, its header, its tables and the padding are read") {
  const Reads reads = reads_of(real_program());
  CHECK(reads.number <= 4);
  CHECK(reads.bytes < 2700);
}

TEST_CASE("a bundle and the program in it are opened once each") {
  const Reads reads = reads_of(real_bundle());
  CHECK(reads.number <= 8);
  CHECK(reads.bytes < 10500);
}

TEST_CASE("files that are checked together are read no more often than alone, but for what they share") {
  const std::string named_data = content_of(ETSTREAM_GOLDEN_DIR "/tensor_data/expected.ptd");
  const auto program = std::make_shared<CountedFile>(real_program());
  const auto weights = std::make_shared<CountedFile>(named_data);
  REQUIRE(verify(ByteSource(program), {ByteSource(weights)}));
  const auto alone = std::make_shared<CountedFile>(named_data);
  REQUIRE(verify(ByteSource(alone)));
  // The identifier tells once more that it is of the kind that is expected.
  CHECK(program->reads() <= reads_of(real_program()).number + 1);
  CHECK(weights->reads() <= alone->reads() + 1);
}

TEST_CASE("what the delegates of a program ask for is read once, also where weights are to have it") {
  const std::string bytes = content_of(ETSTREAM_GOLDEN_DIR "/delegated_program/program.pte");
  const auto named_data =
      std::make_shared<CountedFile>(content_of(ETSTREAM_GOLDEN_DIR "/tensor_data/expected.ptd"));
  const auto program = std::make_shared<CountedFile>(bytes);
  REQUIRE(verify(ByteSource(program), {ByteSource(named_data)}));
  // The identifier tells once more that it is of the kind that is expected.
  CHECK(program->reads() <= reads_of(bytes).number + 1);
}

TEST_CASE("to find duplicates too, a file is opened once") {
  const auto file = std::make_shared<CountedFile>(real_program());
  REQUIRE(inspect(ByteSource(file)));
  const int alone = file->reads();
  REQUIRE(inspect(ByteSource(file), {.duplicates = true}));
  CHECK(file->reads() <= 2 * alone + 2);  // its two constants of one size
}

}  // namespace
}  // namespace etstream::verify_reads_test
