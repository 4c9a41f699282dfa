// SPDX-License-Identifier: BSD-3-Clause
//
// Files that killed processes leave beside their outputs, and folders that are made for outputs.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>

#include <filesystem>
#include <optional>
#include <string>

#include "core/io/descriptor_posix.h"
#include "core/io/temporary_names_posix.h"
#include "etstream/sink.h"
#include "test_errors.h"
#include "test_files.h"

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
}

TEST_CASE("names that only look like temporary ones are those of others") {
  const TemporaryFolder folder;
  for (const char* const name :
       {"weights.ptd.etstream-0123456789abcdef.tmp", ".etstream-0123456789abcdef.tmp",
        ".weights.ptd.etstream-0123.tmp", ".weights.ptd.etstream-0123456789abcdef.tmp2",
        ".weights.ptd.etstream_0123456789abcdef.tmp"}) {
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
