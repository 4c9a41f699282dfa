// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "etstream/sink.h"
#include "test_errors.h"
#include "test_fallocate.h"
#include "test_files.h"
#include "test_sources.h"

namespace etstream::file_sink_test {
namespace {

using Names = std::vector<std::string>;

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::unique_ptr<Sink> open_sink(const std::string& path, bool sync = false) {
  auto sink = open_file_sink(path, {.sync = sync});
  REQUIRE_MESSAGE(sink, sink.error().message);
  return std::move(sink).value();
}

/// Opens, appends and commits.
void write_through_sink(const std::string& path, std::string_view content, bool sync = false) {
  const auto sink = open_sink(path, sync);
  REQUIRE(sink->reserve(content.size()));
  REQUIRE(sink->append(source_of(content)));
  const auto committed = sink->commit();
  REQUIRE_MESSAGE(committed, committed.error().message);
}

/// Returns the names of temporary files for `name` in the folder.
Names temporaries(const TemporaryFolder& folder, const std::string& name) {
  Names out;
  for (const std::string& found : folder.names()) {
    const bool is_one = found.starts_with("." + name + ".etstream-") && found.ends_with(".tmp");
    if (is_one) out.push_back(found);
  }
  return out;
}

TEST_CASE(
    "before commit, bytes wait under a recognisable name, and without one the destination is untouched") {
  const TemporaryFolder folder;
  put_file(folder / "out", "before");
  for (const std::string name : {"out", "new"}) {
    const auto sink = open_sink(folder / name);
    REQUIRE(sink->reserve(5 * kMiB));
    REQUIRE(sink->append(ByteSource::zeros(3 * kMiB)));
    CHECK(temporaries(folder, name).size() == 1);
    CHECK(folder.names().size() == 2);
  }
  CHECK(folder.names() == Names{"out"});
  CHECK(content_of(folder / "out") == "before");
}

TEST_CASE("commit makes what was appended the whole content and leaves no temporary file") {
  const TemporaryFolder folder;
  const std::string large = patterned(20 * kMiB + 3);  // more than two windows of write-back
  for (const bool sync : {true, false}) {
    for (const std::string& content : {std::string(), std::string("small"), large}) {
      CAPTURE(sync);
      CAPTURE(content.size());
      put_file(folder / "out", "before");
      write_through_sink(folder / "out", content, sync);
      CHECK(folder.names() == Names{"out"});
      CHECK((content_of(folder / "out") == content));
    }
  }
}

/// A storage whose ranges can be shared, as it says.
class SharedStorage final : public ByteStorage {
 public:
  explicit SharedStorage(std::uint64_t size) : size_(size) {}

  std::uint64_t size() const noexcept override { return size_; }
  std::string name() const override { return "shared"; }
  Result<void> read_at(std::uint64_t, std::span<std::byte>) const override { return {}; }
  bool clone_range(std::uint64_t, std::uint64_t, int, std::uint64_t) const noexcept override { return true; }

 private:
  std::uint64_t size_;
};

TEST_CASE("what is smaller than 256 KiB is not shared with its source, and of larger ones whole blocks are") {
  const TemporaryFolder folder;
  const auto sink = open_sink(folder.path() + "/out");
  const auto shared = [&](std::uint64_t size, std::uint64_t offset) {
    return sink->clone_range(ByteSource(std::make_shared<SharedStorage>(size)), offset);
  };
  CHECK(shared((256 << 10) - 1, 0) == 0);
  CHECK(shared(256 << 10, 0) == 256 << 10);
  CHECK(shared((256 << 10) + 1, 1 << 20) == 256 << 10);
  CHECK(shared(256 << 10, (1 << 20) + 1) == 0);
}

#if defined(__linux__)
TEST_CASE("space is reserved around what is shared, and it is told where there is none") {
  const TemporaryFolder folder;
  const auto sink = open_sink(folder / "out");
  const ByteSource shared(std::make_shared<SharedStorage>(kMiB));
  const auto reserved_for = [&](std::uint64_t size, int error) {
    testing::reserved = "";
    testing::reserve_error = error;
    return sink->reserve(size);
  };
  CHECK(reserved_for(0, 0));
  CHECK(testing::reserved == "");
  REQUIRE(sink->clone_range(shared, kMiB) == kMiB);
  REQUIRE(sink->clone_range(shared, 4 * kMiB) == kMiB);
  CHECK(reserved_for(7 * kMiB, 0));
  CHECK(testing::reserved == "0 + 1048576; 2097152 + 2097152; 5242880 + 2097152; ");
  const std::string cannot = "cannot reserve space for '" + folder / "out" + "': ";
  CHECK(error_of(reserved_for(7 * kMiB, EIO)) == exactly("kIo: " + cannot + "Input/output error (1.0 MiB)"));
  CHECK(error_of(reserved_for(7 * kMiB, ENOSPC)) ==
        containing("kIo: " + cannot + "No space left on device (1.0 MiB; "));
  // A file system that can't reserve says how much is free.
  CHECK(error_of(reserved_for(7 * kMiB, EOPNOTSUPP)) == "no error");
  CHECK(error_of(reserved_for(std::uint64_t{1} << 60, EOPNOTSUPP)) ==
        containing("kIo: " + cannot + "No space left on device (1024.0 PiB; "));
  testing::reserve_error = 0;
  CHECK(error_of(reserved_for((std::uint64_t{1} << 63), 0)) ==
        exactly("kTooLarge: cannot write '" + folder / "out" +
                "': 9223372036854775808 bytes are more than a file can have"));
}
#endif

TEST_CASE("what is skipped lies where it was shared, behind what was appended") {
  const TemporaryFolder folder;
  const auto sink = open_sink(folder / "out");
  REQUIRE(sink->append(source_of("head")));
  REQUIRE(sink->skip(10));
  REQUIRE(sink->append(source_of("tail")));
  REQUIRE(sink->commit());
  CHECK(content_of(folder / "out") == "head" + std::string(10, '\0') + "tail");
}

TEST_CASE("reserved space that is not used is not part of the file") {
  const TemporaryFolder folder;
  const auto sink = open_sink(folder / "out");
  REQUIRE(sink->reserve(10 * kMiB));
  REQUIRE(sink->append(source_of("short")));
  REQUIRE(sink->commit());
  CHECK(content_of(folder / "out") == "short");
}

TEST_CASE("a new file's permissions come from the umask") {
  const TemporaryFolder folder;
  for (const mode_t mask : {mode_t{022}, mode_t{027}, mode_t{0}}) {
    CAPTURE(mask);
    const mode_t before = ::umask(mask);
    write_through_sink(folder / "out", "x");
    ::umask(before);
    CHECK(permissions_of(folder / "out") == (0666U & ~unsigned{mask}));
    std::filesystem::remove(folder / "out");
  }
}

TEST_CASE("links that go round in a circle are an error") {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("b", folder / "a");
  std::filesystem::create_symlink("a", folder / "b");
  CHECK(code_of(open_file_sink(folder / "a")) == "kIo");
}

TEST_CASE("a folder and an empty path are refused") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "below");
  std::filesystem::create_symlink("below", folder / "link");
  for (const std::string name : {"below", "below/", "link"}) {
    CAPTURE(name);
    CHECK(error_of(open_file_sink(folder / name)) ==
          exactly("kInvalidArgument: cannot write '" + folder / name + "': it is a folder"));
  }
  CHECK(error_of(open_file_sink("")) == "kInvalidArgument: cannot write '': it is no path");
  CHECK(error_of(open_file_sink(std::string("a\0b", 3))) ==
        "kInvalidArgument: cannot write 'a\\x00b': it is no path");
  CHECK(folder.names() == Names{"below", "link"});
}

TEST_CASE("a name of 255 bytes is written, and a longer one is refused") {
  const TemporaryFolder folder;
  const std::string name(255, 'n');
  write_through_sink(folder / name, "long");
  CHECK(content_of(folder / name) == "long");
  CHECK(folder.names() == Names{name});
  CHECK(code_of(open_file_sink(folder / (name + "n"))) == "kIo");
}

TEST_CASE("two sinks to one destination do not disturb each other, and the last commit stays") {
  const TemporaryFolder folder;
  const auto first = open_sink(folder / "out");
  const auto second = open_sink(folder / "out");
  REQUIRE(first->append(source_of("first")));
  REQUIRE(second->append(source_of("second")));
  CHECK(temporaries(folder, "out").size() == 2);
  REQUIRE(second->commit());
  CHECK(content_of(folder / "out") == "second");
  REQUIRE(first->commit());
  CHECK(content_of(folder / "out") == "first");
  CHECK(folder.names() == Names{"out"});
}

TEST_CASE("only what is named like a leftover of this destination is removed") {
  const TemporaryFolder folder;
  const Names others = {".other.etstream-0123456789abcdef.tmp", ".out.etstream-0123.tmp",
                        ".out.etstream-x.tmp", ".out.etstream-0123456789abcdef.tmp~",
                        "out.etstream-0123456789abcdef.tmp"};
  for (const std::string& name : others) put_file(folder / name, "x");
  std::filesystem::create_symlink("x", folder / ".out.etstream-00000000000000ee.tmp");
  const Names before = folder.names();
  put_file(folder / ".out.etstream-0123456789abcdef.tmp", "x");
  REQUIRE(folder.names() != before);
  { const auto sink = open_sink(folder / "out"); }
  CHECK(folder.names() == before);
}

}  // namespace
}  // namespace etstream::file_sink_test
