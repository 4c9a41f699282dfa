// SPDX-License-Identifier: BSD-3-Clause
//
// Several sinks that are committed together.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/io/file_calls_posix.h"
#include "core/io/temporary_posix.h"
#include "etstream/sink.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_sources.h"

#if defined(__linux__)
namespace {

int syncs = 0;

}  // namespace

// These take the places of the C library's.
extern "C" int fsync(int file) {
  ++syncs;
  return static_cast<int>(::syscall(SYS_fsync, file));
}
extern "C" int syncfs(int file) noexcept {
  ++syncs;
  return static_cast<int>(::syscall(SYS_syncfs, file));
}

#endif

namespace etstream::commit_together_test {
namespace {

using Names = std::vector<std::string>;
using Sinks = std::vector<std::unique_ptr<PendingOutput>>;

/// Adds a sink to `path`, with `content` appended to it.
void add_sink(Sinks& sinks, const std::string& path, const std::string& content) {
  auto sink = open_file_sink(path, {.sync = false});
  REQUIRE_MESSAGE(sink, sink.error().message);
  REQUIRE((*sink)->append(source_of(content)));
  sinks.push_back(std::move(sink).value());
}

/// A sink whose commit fails.
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

/// Adds a folder that will be at `path`, with a file in it.
void add_folder(Sinks& outputs, const std::string& path) {
  auto created = AtomicFolder::create(path, {.sync = false});
  REQUIRE_MESSAGE(created, created.error().message);
  put_file((*created)->path_of("file").value(), "new");
  CHECK(code_of((*created)->path_of("../file")) == "kInvalidArgument");
  outputs.push_back(std::move(created).value());
}

#if defined(__linux__)
TEST_CASE("an output and its folder are synced once each, and not at all where that is not asked for") {
  const TemporaryFolder folder;
  for (const bool sync : {true, false}) {
    CAPTURE(sync);
    syncs = 0;
    const auto file = open_file_sink(folder / "file", {.sync = sync});
    REQUIRE((*file)->append(source_of("content")));
    REQUIRE((*file)->commit());
    CHECK(syncs == (sync ? 2 : 0));
    syncs = 0;
    REQUIRE((*AtomicFolder::create(folder / (sync ? "one" : "other"), {.sync = sync}))->commit());
    CHECK(syncs == (sync ? 2 : 0));
  }
}

#endif

TEST_CASE("folders are committed and taken back with files") {
  const TemporaryFolder folder;
  put_file(folder / "a", "old");
  std::filesystem::create_directory(folder / "empty");
  REQUIRE(::chmod((folder / "empty").c_str(), 0700) == 0);
  for (const bool fails : {true, false}) {
    {
      Sinks outputs;
      add_folder(outputs, folder / "new");
      add_sink(outputs, folder / "a", "new a");
      add_folder(outputs, folder / "empty");
      if (fails) outputs.push_back(std::make_unique<FailingSink>());
      CHECK(error_of(commit_together(outputs)) == exactly(fails ? "kIo: no commit" : "no error"));
    }
    CHECK(folder.names() == (fails ? Names{"a", "empty"} : Names{"a", "empty", "new"}));
    CHECK(content_of(folder / "a") == (fails ? "old" : "new a"));
    CHECK(permissions_of(folder / "empty") == 0700);
    CHECK(std::filesystem::is_empty(folder / "empty") == fails);
  }
  CHECK(content_of(folder / "empty/file") == "new");
}

TEST_CASE("a folder that is no longer empty is kept, and so is what is beside it") {
  const TemporaryFolder folder;
  put_file(folder / "a", "old");
  {
    Sinks outputs;
    add_sink(outputs, folder / "a", "new a");
    add_folder(outputs, folder / "b");
    std::filesystem::create_directory(folder / "b");
    put_file(folder / "b/precious", "");
    CHECK(error_of(commit_together(outputs)) == containing("it exists, and is not an empty folder"));
  }
  CHECK(folder.names() == Names{"a", "b"});
  CHECK(content_of(folder / "a") == "old");
  CHECK(std::filesystem::exists(folder / "b/precious"));
}

TEST_CASE("thousands of files are committed together by a process that may not have as many open") {
  const TemporaryFolder folder;
  ::rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const ::rlimit few{.rlim_cur = 128, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  {
    Sinks outputs;
    for (int i = 0; i < 300; ++i) {
      add_sink(outputs, folder / std::to_string(i), "new");
      REQUIRE(outputs.back()->prepare());
    }
    CHECK(error_of(commit_together(outputs)) == exactly("no error"));
  }
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(folder.names().size() == 300);
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
