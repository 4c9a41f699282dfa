// SPDX-License-Identifier: BSD-3-Clause
//
// Files that killed processes leave beside their outputs, and folders that are made for outputs.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>

#include "core/io/descriptor_posix.h"
#include "core/io/temporary_posix.h"
#include "etstream/sink.h"
#include "test_errors.h"
#include "test_files.h"

#if defined(__linux__)
namespace {

int failing_locks = 0;  // the next ones
int lock_error = 0;     // of these; 0 removes the file instead
int locks = 0;

}  // namespace

// It takes the place of the C library's.
extern "C" int flock(int file, int operation) noexcept {
  ++locks;
  if (failing_locks == 0) return static_cast<int>(::syscall(SYS_flock, file, operation));
  --failing_locks;
  errno = lock_error;
  if (lock_error != 0) return -1;
  std::error_code ignored;
  std::filesystem::remove(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file), ignored),
                          ignored);
  return 0;
}

#endif

namespace etstream::leftovers_test {
namespace {

constexpr const char* kLeft = ".weights.ptd.etstream-0123456789abcdef.tmp";

TEST_CASE("a temporary file is found from each path that leads to its folder, for whatever it was") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "elsewhere");
  put_file(folder / "model.pte", "");
  std::filesystem::create_symlink("../model.pte", folder / "elsewhere/link");
  put_file(folder / "elsewhere/other", "");
  CHECK(leftover_beside(folder / "model.pte") == std::nullopt);
  put_file(folder / kLeft, "");
  std::filesystem::create_directory(folder / ".zoo.etstream-0123456789abcdef.tmp");
  CHECK(leftover_beside(folder / "model.pte") == folder / kLeft);
  CHECK(leftover_beside(folder / "elsewhere/link") == folder / "elsewhere/../" + kLeft);
  CHECK(leftover_beside(folder.path()) == folder / kLeft);
  CHECK(leftover_beside(folder / "elsewhere/other") == std::nullopt);
  put_file(folder / ".a.etstream-0123456789abcdef.tmp", "");
  CHECK(leftover_beside(folder / "model.pte") == folder / ".a.etstream-0123456789abcdef.tmp");
}

TEST_CASE("names that only look like temporary ones are those of others") {
  const TemporaryFolder folder;
  for (const char* const name :
       {"weights.ptd.etstream-0123456789abcdef.tmp", ".etstream-0123456789abcdef.tmp",
        "..etstream-0123456789abcdef.tmp", ".weights.ptd.etstream-0123.tmp",
        ".weights.ptd.etstream-0123456789abcdef.tmp2", ".weights.ptd.etstream_0123456789abcdef.tmp"}) {
    put_file(folder / name, "");
  }
  CHECK(leftover_beside(folder / "model.pte") == std::nullopt);
}

TEST_CASE("what a living process writes is no leftover") {
  const TemporaryFolder folder;
  put_file(folder / kLeft, "");
  {
    const Descriptor writer(::open((folder / kLeft).c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(::flock(writer.get(), LOCK_EX) == 0);
    CHECK(leftover_beside(folder / "model.pte") == std::nullopt);
  }
  CHECK(leftover_beside(folder / "model.pte") == folder / kLeft);
}

#if defined(__linux__)
TEST_CASE("without locks, what nobody has written to for a day is a leftover") {
  const TemporaryFolder folder;
  put_file(folder / kLeft, "");
  lock_error = ENOLCK;
  for (const std::time_t age : {0, 86300, 86500}) {
    const timespec times[2] = {{0, UTIME_OMIT}, {std::time(nullptr) - age, 0}};
    REQUIRE(::utimensat(AT_FDCWD, (folder / kLeft).c_str(), times, 0) == 0);
    failing_locks = 1;
    CHECK(leftover_beside(folder.path()).has_value() == (age > 86400));
    failing_locks = 1;
    remove_leftovers(folder / "", "weights.ptd");
    CHECK(folder.names().empty() == (age > 86400));
  }
  // They are not needed to write.
  failing_locks = 1;
  const auto sink = open_file_sink(folder / "out", {.sync = false});
  REQUIRE(sink);
  CHECK(failing_locks == 0);
  REQUIRE((*sink)->commit());
  CHECK(folder.names() == std::vector<std::string>{"out"});
}

TEST_CASE("a temporary file that another process takes for a leftover is made again, up to 16 times") {
  const TemporaryFolder folder;
  for (const int error : {0, EWOULDBLOCK}) {
    CAPTURE(error);
    lock_error = error;
    locks = 0;
    failing_locks = 15;
    {
      const auto sink = open_file_sink(folder / "out", {.sync = false});
      REQUIRE(sink);
      REQUIRE((*sink)->commit());
    }
    CHECK(folder.names() == std::vector<std::string>{"out"});
    CHECK(locks == 16);
    failing_locks = 17;
    CHECK(error_of(open_file_sink(folder / "out")) ==
          exactly("kIo: cannot create a temporary file beside '" + folder / "out" +
                  "' in 16 attempts; write to an open descriptor, or elsewhere and copy it"));
    CHECK(failing_locks == 1);
    failing_locks = 0;
    CHECK(folder.names() == std::vector<std::string>{"out"});
  }
}
#endif

TEST_CASE("a path leads to a file through up to 39 links, and to a descriptor, too") {
  const TemporaryFolder folder;
  for (const std::string target : {"target", "/dev/fd/0"}) {
    CAPTURE(target);
    std::string link = target;
    for (int i = 1; i <= 40; ++i) {
      const std::string name = folder / (target.substr(target.rfind('/') + 1) + std::to_string(i));
      std::filesystem::create_symlink(link, name);
      link = name;
      if (target == "target") {
        const auto end = follow_links(link);
        CHECK((i < 40 ? end && *end == folder / "target" : !end));
      } else {
        CHECK(descriptor_named(link) == (i < 40 ? std::optional(0) : std::nullopt));
      }
    }
  }
  for (const char* const other : {"/dev/fd/", "/dev/fd/x", "/dev/fd/0x", "/dev/fd/-1", "dev/fd/0"}) {
    CHECK(descriptor_named(other) == std::nullopt);
  }
  CHECK(descriptor_named("/proc/self/fd/12") == 12);
}

TEST_CASE("room for a file is told without one being made") {
  const TemporaryFolder folder;
  put_file(folder / "file", "");
  CHECK(error_of(check_file_sink(folder / std::string(255, 'n'))) == "no error");
  CHECK(error_of(check_file_sink(folder / std::string(256, 'n'))) == containing("File name too long"));
  CHECK(error_of(check_file_sink(folder / "none/new")) ==
        exactly("kNotFound: cannot write '" + folder / "none/new" + "': there is no folder '" +
                folder / "none/" + "'"));
  CHECK(error_of(check_file_sink(folder / "file/new")) ==
        exactly("kNotFound: cannot write beside '" + folder / "file/new" + "': Not a directory"));
  CHECK(error_of(check_file_sink("/dev/null")) == "no error");
  CHECK(error_of(check_file_sink("new")) == "no error");
  CHECK(folder.names() == std::vector<std::string>{"file"});
}

TEST_CASE("a folder is made once, and neither over a file nor in a folder that is not there") {
  const TemporaryFolder folder;
  for (const bool sync : {true, false}) {
    const std::string path = folder / (sync ? "synced/" : "not");
    CHECK(make_folder(path, {.sync = sync}).value());
    CHECK_FALSE(make_folder(path, {.sync = sync}).value());
  }
  put_file(folder / "file", "");
  CHECK(error_of(make_folder(folder / "file")) == containing("File exists"));
  CHECK(error_of(make_folder(folder / "none/new")) == containing("No such file"));
}

}  // namespace
}  // namespace etstream::leftovers_test
