// SPDX-License-Identifier: BSD-3-Clause
//
// Several sinks that are committed together.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
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
int failing_sync = 0;  // the number of the one that fails
int sync_error = 0;    // of that one
/// The errors of the next changes of an owner or of permissions, 0 for none.
std::vector<int> change_errors;

int synced(long call, int file) {
  if (++syncs != failing_sync) return static_cast<int>(::syscall(call, file));
  errno = sync_error;
  return -1;
}

bool change_fails() {
  errno = EIO;  // which says nothing where a call succeeds
  if (change_errors.empty()) return false;
  errno = change_errors.front();
  change_errors.erase(change_errors.begin());
  return errno != 0;
}

}  // namespace

// These take the places of the C library's.
extern "C" int fsync(int file) { return synced(SYS_fsync, file); }
extern "C" int syncfs(int file) noexcept { return synced(SYS_syncfs, file); }
extern "C" int fchown(int file, uid_t owner, gid_t group) noexcept {
  return change_fails() ? -1 : static_cast<int>(::syscall(SYS_fchown, file, owner, group));
}
extern "C" int fchmod(int file, mode_t mode) noexcept {
  return change_fails() ? -1 : static_cast<int>(::syscall(SYS_fchmod, file, mode));
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

/// A sink whose commit fails, after something else has happened.
class FailingSink final : public Sink {
 public:
  explicit FailingSink(std::function<void()> before = [] {}) : before_(std::move(before)) {}

  Result<void> reserve(std::uint64_t /*size*/) override { return {}; }
  Result<void> append(const ByteSource& /*source*/) override { return {}; }
  Result<void> commit() override {
    before_();
    return Error{ErrorCode::kIo, "no commit"};
  }

 private:
  std::function<void()> before_;
};

TEST_CASE("what can't be taken back is told") {
  const TemporaryFolder folder;
  Sinks sinks;
  add_sink(sinks, folder / "a", "new a");
  add_sink(sinks, folder / "b", "new b");
  sinks.push_back(std::make_unique<FailingSink>([&] { std::filesystem::remove(folder / "a"); }));
  CHECK(error_of(commit_together(sinks)) == exactly("kIo: no commit; cannot put back what was at '" +
                                                    folder / "a" + "': No such file or directory"));
  CHECK(folder.names().empty());
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
    REQUIRE((*AtomicFolder::create(folder / (sync ? "one/" : "other"), {.sync = sync}))->commit());
    CHECK(syncs == (sync ? 2 : 0));
  }
}

TEST_CASE("a sync that fails is an error, and one that a file system lacks is told") {
  std::string warning;
  const FileSinkOptions options{.warn = [&](const Finding& told) { warning += full_message(told); }};
  const std::string lacks = ": a power failure may undo what was written; sync = false does not ask for it";
  const auto file = [&](const TemporaryFolder& folder) {
    const auto sink = open_file_sink(folder / "new", options);
    return (*sink)->commit();
  };
  const auto folder_of_files = [&](const TemporaryFolder& folder) {
    return (*AtomicFolder::create(folder / "new", options))->commit();
  };
  const auto plain_folder = [&](const TemporaryFolder& folder) -> Result<void> {
    const auto made = make_folder(folder / "new/", options);
    return made ? Result<void>() : made.error();
  };
  const auto together = [&](const TemporaryFolder& folder) {
    Sinks sinks;
    sinks.push_back(*open_file_sink(folder / "new", options));
    sinks.push_back(*AtomicFolder::create(folder / "other", options));
    return commit_together(sinks);
  };
  struct Row {
    std::function<Result<void>(const TemporaryFolder&)> write;
    int failing;
    int error;
    std::string found;  // the error or the warning; "" for none; FOLDER stands for the folder
    int syncs;
    Names names;
  };
  const std::vector<Row> rows{
      {file, 1, EIO, "kIo: cannot sync 'FOLDER/new': Input/output error", 1, {}},
      {file, 1, EROFS, "cannot sync 'FOLDER/new': Read-only file system" + lacks, 1, {"new"}},
      {file,
       2,
       EIO,
       "kIo: what was written is complete, but its folder could not be synced: 'FOLDER/new': Input/output "
       "error",
       2,
       {"new"}},
      {file, 2, EINVAL, "cannot sync 'FOLDER/': Invalid argument" + lacks, 2, {"new"}},
      {folder_of_files, 1, EIO, "kIo: cannot sync 'FOLDER/new': Input/output error", 1, {}},
      {folder_of_files, 1, ENOSYS, "cannot sync 'FOLDER/new': Function not implemented" + lacks, 1, {"new"}},
      {folder_of_files,
       2,
       EIO,
       "kIo: what was written is complete, but its folder could not be synced: 'FOLDER/new': Input/output "
       "error",
       2,
       {"new"}},
      {plain_folder, 1, EIO, "kIo: cannot sync the folder of 'FOLDER/new': Input/output error", 1, {}},
      {plain_folder, 1, EINVAL, "cannot sync 'FOLDER/': Invalid argument" + lacks, 1, {"new"}},
      {together, 1, EIO, "kIo: cannot sync 'FOLDER/new': Input/output error", 1, {}},
      // The file, its folder, and the folder of files; then the names of both.
      {together, 2, EIO, "kIo: cannot sync the folder of 'FOLDER/new': Input/output error", 2, {}},
      {together, 2, EINVAL, "", 5, {"new", "other"}},
      {together, 3, EROFS, "cannot sync 'FOLDER/other': Read-only file system" + lacks, 4, {"new", "other"}},
      {together, 4, EIO, "kIo: cannot sync the folder of 'FOLDER/new': Input/output error", 4, {}},
      {together, 5, EIO, "kIo: cannot sync the folder of 'FOLDER/other': Input/output error", 5, {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.found);
    const TemporaryFolder folder;
    warning = "";
    syncs = 0;
    failing_sync = row.failing;
    sync_error = row.error;
    const auto done = row.write(folder);
    failing_sync = 0;
    std::string expected = row.found;
    if (const auto place = expected.find("FOLDER"); place != std::string::npos) {
      expected.replace(place, 6, folder.path());
    }
    CHECK((done ? exactly(warning) : error_of(done)) == exactly(expected));
    CHECK(syncs == row.syncs);
    CHECK(folder.names() == row.names);
  }
}

TEST_CASE("an owner that can't be kept is given up, then a group, but other errors of that are told") {
  const TemporaryFolder folder;
  struct Row {
    std::vector<int> errors;
    uid_t owner;
    gid_t group;
    std::string error;
  };
  const std::vector<Row> rows{
      {{}, 1, 2, "no error"},
      {{EPERM}, ::geteuid(), 2, "no error"},
      {{EPERM, EPERM}, ::geteuid(), ::getegid(), "no error"},
      {{EIO}, 1, 2, "kIo: cannot set the owner of what replaces '" + folder / "a" + "': Input/output error"},
      {{EPERM, EIO},
       1,
       2,
       "kIo: cannot set the owner of what replaces '" + folder / "a" + "': Input/output error"},
  };
  for (const Row& row : rows) {
    put_file(folder / "a", "old");
    if (::chown((folder / "a").c_str(), 1, 2) != 0) {
      MESSAGE("SKIPPED: only root may give files away");
      return;
    }
    change_errors = row.errors;
    const auto sink = open_file_sink(folder / "a", {.sync = false});
    CHECK(error_of(sink) == exactly(row.error));
    if (sink) REQUIRE((*sink)->commit());
    struct stat found {};
    REQUIRE(::stat((folder / "a").c_str(), &found) == 0);
    CHECK(found.st_uid == row.owner);
    CHECK(found.st_gid == row.group);
  }
  change_errors = {};
}

TEST_CASE("permissions that can't be kept are told, if those of the new file allow others no more") {
  const TemporaryFolder folder;
  const std::string message =
      "cannot set the permissions of what replaces '" + folder / "a" + "': Operation not permitted";
  put_file(folder / "a", "old");
  REQUIRE(::chmod((folder / "a").c_str(), 0400) == 0);
  std::string warning;
  const Warn warn = [&](const Finding& told) { warning += full_message(told); };
  change_errors = {EIO};
  CHECK(
      error_of(open_file_sink(folder / "a", {.sync = false, .warn = warn})) ==
      exactly("kIo: cannot set the permissions of what replaces '" + folder / "a" + "': Input/output error"));
  change_errors = {EPERM, EPERM};
  CHECK(error_of(open_file_sink(folder / "a", {.sync = false})) == "no error");
  CHECK(warning == "");
  CHECK(error_of(open_file_sink(folder / "a", {.sync = false, .warn = warn})) == "no error");
  CHECK(warning == message + ": it has 0600 instead of 0400");
  change_errors = {};
}

#endif

TEST_CASE("files and folders are all committed, or taken back where the last commit fails") {
  const TemporaryFolder folder;
  put_file(folder / "a", "old");
  REQUIRE(::chmod((folder / "a").c_str(), 0640) == 0);
  std::filesystem::create_directory(folder / "empty");
  REQUIRE(::chmod((folder / "empty").c_str(), 0700) == 0);
  for (const bool fails : {true, false}) {
    {
      Sinks outputs;
      add_folder(outputs, folder / "new");
      add_sink(outputs, folder / "a", "new a");
      add_sink(outputs, folder / "b", "new b");
      add_folder(outputs, folder / "empty");
      if (fails) outputs.push_back(std::make_unique<FailingSink>());
      CHECK(error_of(commit_together(outputs)) == exactly(fails ? "kIo: no commit" : "no error"));
    }
    CHECK(folder.names() == (fails ? Names{"a", "empty"} : Names{"a", "b", "empty", "new"}));
    CHECK(content_of(folder / "a") == (fails ? "old" : "new a"));
    CHECK(permissions_of(folder / "a") == 0640);
    CHECK(permissions_of(folder / "empty") == 0700);
    CHECK(std::filesystem::is_empty(folder / "empty") == fails);
  }
  CHECK(content_of(folder / "empty/file") == "new");
  for (const std::string& used : {std::string("/"), folder / "a", folder / "empty"}) {
    CHECK(error_of(AtomicFolder::create(used, {})) ==
          exactly("kInvalidArgument: cannot write the folder '" + used +
                  "': it exists, and is not an empty folder"));
  }
  CHECK(error_of(AtomicFolder::create("", {})) == containing("cannot write the folder ''"));
  CHECK(code_of(AtomicFolder::create(folder / "missing/new", {})) == "kNotFound");
}

TEST_CASE("an error about a file in a folder names the place where it would have been") {
  const TemporaryFolder folder;
  const auto created = AtomicFolder::create(folder / "new", {}).value();
  const auto told = [&](const Error& error) { return created->in_terms_of_destination(error); };
  Error error{ErrorCode::kIo, "x", 0, created->path_of("file").value()};
  error.message = "cannot write '" + *error.file + "'";
  CHECK(told(error).file == folder / "new/file");
  CHECK(full_message(told(error)) == "cannot write '" + folder / "new/file" + "'");
  error.advice = {AdviceTerm::kWriteToDescriptor, ", or elsewhere and copy it"};
  CHECK(full_message(told(error)) ==
        "cannot write '" + folder / "new/file" + "'; write it elsewhere and copy it");
  const Error other{ErrorCode::kIo, "cannot read 'x'", 0, "x", {}, {"get it again"}};
  CHECK(full_message(told(other)) == "cannot read 'x'; get it again");
  CHECK(told(other).file == "x");
}

TEST_CASE("a folder that is no longer empty is kept, and so is what is beside it") {
  const TemporaryFolder folder;
  put_file(folder / "a", "old");
  {
    Sinks outputs;
    add_sink(outputs, folder / "a", "new a");
    add_folder(outputs, folder / "b");
    put_file(folder / "b", "");
    CHECK(error_of(outputs.back()->commit()) == containing("it exists, and is not an empty folder"));
    std::filesystem::remove(folder / "b");
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
