// SPDX-License-Identifier: BSD-3-Clause
//
// Outputs that are inputs too: by their paths, and in place.
#include "etstream/byte_source.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "etstream/sink.h"
#include "test_errors.h"
#include "test_files.h"

namespace etstream::input_record_test {
namespace {

TEST_CASE("an output is refused that is a file which was opened, whatever its name") {
  const TemporaryFolder folder;
  put_file(folder / "input", "x");
  put_file(folder / "before", "x");
  put_file(folder / "later", "x");
  std::filesystem::create_symlink("input", folder / "link");
  REQUIRE(ByteSource::file(folder / "before"));
  InputRecord record;
  REQUIRE(ByteSource::file(folder / "link"));
  const std::string named = "' is the input '" + folder / "link" + "'; give the output another name";
  CHECK(error_of(record.check_output(folder / "input")) ==
        exactly("kInvalidArgument: the output '" + folder / "input" + named));
  CHECK(error_of(record.check_output(folder / "./link")) == containing(named));
  CHECK(record.check_output(folder / "before"));
  CHECK(record.check_output(folder / "missing"));
  CHECK(record.check_output(folder / "later"));
  record.add(folder / "later");
  CHECK(code_of(record.check_output(folder / "later")) == "kInvalidArgument");
}

TEST_CASE("an input may be replaced by a new file on purpose, and is not written in place for all that") {
  const TemporaryFolder folder;
  put_file(folder / "input", "x");
  const auto file = identity_of(folder / "input");
  REQUIRE(file);
  const InputRecord record(file);
  REQUIRE(ByteSource::file(folder / "input"));
  CHECK(record.check_output(folder / "input"));
  CHECK(code_of(record.check_output_in_place(*file, "descriptor 3")) == "kInvalidArgument");
}

TEST_CASE("the newest record notes what is opened, and the one before it does afterwards") {
  const TemporaryFolder folder;
  put_file(folder / "a", "x");
  put_file(folder / "b", "x");
  const InputRecord outer;
  {
    const InputRecord inner;
    REQUIRE(ByteSource::file(folder / "a"));
    CHECK(code_of(inner.check_output(folder / "a")) == "kInvalidArgument");
  }
  CHECK(outer.check_output(folder / "a"));
  REQUIRE(ByteSource::file(folder / "b"));
  CHECK(code_of(outer.check_output(folder / "b")) == "kInvalidArgument");
  CHECK(InputRecord::current() == &outer);
}

TEST_CASE("no output is committed once an input has changed, alone or together with others") {
  const TemporaryFolder folder;
  put_file(folder / "input", "x");
  put_file(folder / "before", "x");
  const auto before = ByteSource::file(folder / "before");
  REQUIRE(before);
  for (const std::string input : {"input", "before"}) {
    InputRecord record;
    REQUIRE(ByteSource::file(folder / "input"));
    record.add(*before);
    std::vector<std::unique_ptr<PendingOutput>> outputs;
    for (const std::string name : {"a", "b"}) {
      const auto alone = open_file_sink(folder / name);
      REQUIRE(alone);
      outputs.push_back(open_file_sink(folder / name).value());
      std::filesystem::last_write_time(folder / input, {});
      CHECK(error_of((*alone)->commit()) == containing(input + ": was changed or replaced"));
    }
    CHECK(code_of(commit_together(outputs)) == "kCorrupt");
    CHECK_FALSE(identity_of(folder / "a"));
    CHECK_FALSE(identity_of(folder / "b"));
  }
}

}  // namespace
}  // namespace etstream::input_record_test
