// SPDX-License-Identifier: BSD-3-Clause
//
// A count of reads: verify() and inspect() open each file once and read its metadata once.
#include <doctest/doctest.h>

#include "counted_bytes.h"
#include "etstream/inspect.h"
#include "etstream/verify.h"
#include "file_bytes.h"
#include "test_paths.h"

namespace etstream::verify_reads_test {
namespace {

struct Reads {
  int number;
  std::uint64_t bytes;
};

/// Returns the reads by which verify() finds the problems of a file and what it needs of others.
Reads reads_of(const std::string& bytes) {
  const auto file = std::make_shared<CountedBytes>(bytes);
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
  const std::string named_data = content_of(kGoldenDir + "/tensor_data/expected.ptd");
  const auto program = std::make_shared<CountedBytes>(real_program());
  const auto weights = std::make_shared<CountedBytes>(named_data);
  REQUIRE(verify(ByteSource(program), {ByteSource(weights)}));
  const auto alone = std::make_shared<CountedBytes>(named_data);
  REQUIRE(verify(ByteSource(alone)));
  // The identifier is read once more to see that the kind is the expected one.
  CHECK(program->reads() <= reads_of(real_program()).number + 1);
  CHECK(weights->reads() <= alone->reads() + 1);
}

TEST_CASE("what the delegates of a program ask for is read once, also where weights are to have it") {
  const std::string bytes = content_of(kGoldenDir + "/delegated_program/program.pte");
  const auto named_data =
      std::make_shared<CountedBytes>(content_of(kGoldenDir + "/tensor_data/expected.ptd"));
  const auto program = std::make_shared<CountedBytes>(bytes);
  REQUIRE(verify(ByteSource(program), {ByteSource(named_data)}));
  // The identifier is read once more to see that the kind is the expected one.
  CHECK(program->reads() <= reads_of(bytes).number + 1);
}

TEST_CASE("to find duplicates too, a file is opened once") {
  const auto file = std::make_shared<CountedBytes>(real_program());
  REQUIRE(inspect(ByteSource(file)));
  const int alone = file->reads();
  REQUIRE(inspect(ByteSource(file), {.duplicates = true}));
  CHECK(file->reads() <= 2 * alone + 2);  // its two constants of one size
}

}  // namespace
}  // namespace etstream::verify_reads_test
