// SPDX-License-Identifier: BSD-3-Clause
//
// Several sinks that are committed together.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "etstream/sink.h"
#include "io/file_calls_posix.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_sources.h"

namespace etstream::commit_together_test {
namespace {

using Names = std::vector<std::string>;
using Sinks = std::vector<std::unique_ptr<Sink>>;

/// Adds a sink to `path` that `content` has been appended to.
void add_sink(Sinks& sinks, const std::string& path, const std::string& content) {
  auto sink = open_file_sink(path, {.sync = false});
  REQUIRE_MESSAGE(sink, sink.error().message);
  REQUIRE((*sink)->append(source_of(content)));
  sinks.push_back(std::move(sink).value());
}

/// One whose commit fails.
class FailingSink final : public Sink {
 public:
  Result<void> reserve(std::uint64_t /*size*/) override { return {}; }
  Result<void> append(const ByteSource& /*source*/) override { return {}; }
  Result<void> commit() override { return Error{ErrorCode::kIo, "no commit"}; }
};

TEST_CASE("all sinks are committed, and nothing else is left") {
  const TemporaryFolder folder;
  put_file(folder / "a", "old");
  {
    Sinks sinks;
    add_sink(sinks, folder / "a", "new a");
    add_sink(sinks, folder / "b", "new b");
    REQUIRE(commit_together(sinks));
  }
  CHECK(folder.names() == Names{"a", "b"});
  CHECK(content_of(folder / "a") == "new a");
  CHECK(content_of(folder / "b") == "new b");
}

TEST_CASE(
    "where the last commit fails, those before it are taken back: old files are there, new ones are not") {
  const TemporaryFolder folder;
  put_file(folder / "a", "old");
  REQUIRE(::chmod((folder / "a").c_str(), 0640) == 0);
  {
    Sinks sinks;
    add_sink(sinks, folder / "a", "new a");
    add_sink(sinks, folder / "b", "new b");
    sinks.push_back(std::make_unique<FailingSink>());
    CHECK(error_of(commit_together(sinks)) == exactly("kIo: no commit"));
  }
  CHECK(folder.names() == Names{"a"});
  CHECK(content_of(folder / "a") == "old");
  CHECK(permissions_of(folder / "a") == 0640);
}

TEST_CASE("where a rename fails, what was renamed before it is put back") {
  const TemporaryFolder folder;
  put_file(folder / "a", "old");
  {
    Sinks sinks;
    add_sink(sinks, folder / "a", "new a");
    add_sink(sinks, folder / "b", "new b");
    std::filesystem::create_directory(folder / "b");
    put_file(folder / "b/full", "");
    CHECK(error_of(commit_together(sinks)) == containing("cannot replace '" + folder / "b" + "'"));
  }
  CHECK(folder.names() == Names{"a", "b"});
  CHECK(content_of(folder / "a") == "old");
}

TEST_CASE("what a device refuses is told before any file is replaced") {
  const TemporaryFolder folder;
  put_file(folder / "a", "old");
  struct stat before {};
  REQUIRE(::stat((folder / "a").c_str(), &before) == 0);
  {
    Sinks sinks;
    add_sink(sinks, folder / "a", "new a");
    add_sink(sinks, "/dev/full", "new b");
    CHECK(error_of(commit_together(sinks)) == containing("/dev/full"));
  }
  struct stat after {};
  REQUIRE(::stat((folder / "a").c_str(), &after) == 0);
  CHECK(times_of(after).changed.tv_nsec == times_of(before).changed.tv_nsec);
  CHECK(folder.names() == Names{"a"});
}

}  // namespace
}  // namespace etstream::commit_together_test
