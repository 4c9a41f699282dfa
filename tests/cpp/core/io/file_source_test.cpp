// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "etstream/byte_source.h"
#include "open_files.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_sources.h"

namespace etstream::file_source_test {
namespace {

constexpr std::size_t kMostDescriptors = 64;  // that all file sources keep open together

/// Gives the file this modification time, so that no test depends on the clock's grain.
void set_time(const std::string& path, time_t seconds) {
  const timespec times[2] = {{0, UTIME_OMIT}, {seconds, 5}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator entries("/dev/fd");
  return static_cast<std::size_t>(std::distance(entries, std::filesystem::directory_iterator()));
}

/// Closes the descriptors of all files that were opened before, as others take their places.
void close_all_others(const TemporaryFolder& folder) {
  for (const auto& source : open_files(folder, "other-", kMostDescriptors)) CHECK(source.size() > 0);
}

TEST_CASE("a file source has the file's size, name and bytes") {
  const TemporaryFolder folder;
  const std::string bytes = patterned(100'000);
  put_file(folder / "model.pte", bytes);
  const ByteSource source = ByteSource::file(folder / "model.pte").value();
  CHECK(source.size() == bytes.size());
  CHECK(source.name() == folder / "model.pte");
  CHECK(text_of(source) == bytes);
  CHECK(text_of(source.slice(70'000, 11).value()) == bytes.substr(70'000, 11));
  CHECK(source.check_unchanged());
}

TEST_CASE("a file source may be empty, sparse, or behind a link") {
  const TemporaryFolder folder;
  put_file(folder / "empty", "");
  CHECK(text_of(ByteSource::file(folder / "empty").value()) == "");
  put_file(folder / "sparse", "");
  const std::uint64_t size = std::uint64_t{5} << 30;
  std::filesystem::resize_file(folder / "sparse", size);
  const ByteSource sparse = ByteSource::file(folder / "sparse").value();
  CHECK(sparse.size() == size);
  CHECK(text_of(sparse.slice(size - 4, 4).value()) == std::string(4, '\0'));
  put_file(folder / "target", "linked");
  std::filesystem::create_symlink("target", folder / "link");
  CHECK(text_of(ByteSource::file(folder / "link").value()) == "linked");
}

TEST_CASE("a file that is not there is not found") {
  const TemporaryFolder folder;
  put_file(folder / "file", "x");
  CHECK(error_of(ByteSource::file(folder / "missing")) ==
        exactly("kNotFound: cannot open '" + folder / "missing" + "': No such file or directory"));
  CHECK(code_of(ByteSource::file(folder / "file/below")) == "kNotFound");
  CHECK(code_of(ByteSource::file("")) == "kNotFound");
  CHECK(error_of(ByteSource::file(std::string("a\0b", 3))) ==
        "kInvalidArgument: cannot open 'a\\x00b': it is no path");
  CHECK(ByteSource::file(folder / "missing").error().system_code == ENOENT);
  CHECK(ByteSource::file(folder / "file/below").error().system_code == ENOTDIR);
}

TEST_CASE("an error of the system has the file as it was named, and none of its bytes in another form") {
  const TemporaryFolder folder;
  const std::string name = folder / "it's\xff: offset 7: x" + std::string(200, 'y');
  const Error error = ByteSource::file(name).error();
  CHECK(error.file == name);
  CHECK(!error.offset);
}

TEST_CASE("what has no size beforehand is refused, and a FIFO without a writer does not hang") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  CHECK(error_of(ByteSource::file(folder / "fifo")) == containing("fifo': it is not a regular file"));
  CHECK(code_of(ByteSource::file(folder / "fifo")) == "kInvalidArgument");
  CHECK(code_of(ByteSource::file("/dev/null")) == "kInvalidArgument");
  CHECK(error_of(ByteSource::file(folder.path())) ==
        exactly("kInvalidArgument: cannot read '" + folder.path() + "': it is a folder; give a file in it"));
}

TEST_CASE("a file that is shortened while it is read is corrupt") {
  const TemporaryFolder folder;
  put_file(folder / "file", patterned(1000));
  const ByteSource source = ByteSource::file(folder / "file").value();
  std::filesystem::resize_file(folder / "file", 600);
  std::array<std::byte, 100> out{};
  CHECK(source.read_at(500, out));
  CHECK(error_of(source.read_at(550, out)) ==
        exactly("kCorrupt: " + folder / "file" +
                ": has nothing at offset 600, expected 1000 bytes as when it "
                "was opened: it was shortened while it was read"));
  CHECK(source.read_at(550, out).error().file == folder / "file");
  CHECK(source.read_at(550, out).error().offset == 600);
  CHECK(source.read_at(550, out).error().system_code == 0);
  CHECK(code_of(source.check_unchanged()) == "kCorrupt");
}

TEST_CASE("a file that is changed while it is read is found changed, by its slices and concatenations too") {
  const TemporaryFolder folder;
  put_file(folder / "file", "12345");
  const ByteSource source = ByteSource::file(folder / "file").value();
  const ByteSource part = ByteSource::concatenation({source_of("x"), source.slice(1, 2).value()}).value();
  CHECK(part.check_unchanged());
  put_file(folder / "file", "54321");
  set_time(folder / "file", 1'000'000'000);
  for (const ByteSource& changed : {source, part}) {
    CHECK(error_of(changed.check_unchanged()) ==
          exactly("kCorrupt: " + folder / "file" +
                  ": was changed or replaced while it was read; run again once it is complete"));
  }
}

TEST_CASE("a range of a file is told with a descriptor of the file that was opened") {
  const TemporaryFolder folder;
  put_file(folder / "file", "0123456789");
  const ByteSource source = ByteSource::file(folder / "file").value();
  put_file(folder / "new", "abcdefghij");
  std::filesystem::rename(folder / "new", folder / "file");
  const auto range = source.slice(2, 5)->slice(1, 3)->open_range();
  REQUIRE(range);
  CHECK(range->offset == 3);
  CHECK(range->size == 3);
  char bytes[3];
  CHECK(::pread(range->descriptor, bytes, 3, 3) == 3);
  CHECK(std::string(bytes, 3) == "345");
  CHECK((::fcntl(range->descriptor, F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(::close(range->descriptor) == 0);
  CHECK(text_of(source) == "0123456789");
}

TEST_CASE("what is not in a file has no range of one, nor has a file that was changed") {
  const TemporaryFolder folder;
  put_file(folder / "file", "12345");
  const ByteSource source = ByteSource::file(folder / "file").value();
  for (const ByteSource& other : {ByteSource(), source_of("x"), ByteSource::zeros(3),
                                  ByteSource::concatenation({source, source}).value()}) {
    CHECK(code_of(other.open_range()) == "kUnsupported");
  }
  std::filesystem::resize_file(folder / "file", 3);
  CHECK(error_of(source.open_range()) == containing("changed or replaced"));
}

TEST_CASE("a file that is replaced while it is not held open is an error at the next read") {
  const TemporaryFolder folder;
  put_file(folder / "file", "first");
  const ByteSource source = ByteSource::file(folder / "file").value();
  close_all_others(folder);
  put_file(folder / "new", "other");
  std::filesystem::rename(folder / "new", folder / "file");
  std::array<std::byte, 5> out{};
  CHECK(error_of(source.read_at(0, out)) == containing("changed or replaced"));
  CHECK(code_of(source.read_at(0, out)) == "kCorrupt");
  CHECK(code_of(source.check_unchanged()) == "kCorrupt");
}

TEST_CASE("a file that is changed is found out by its size, its time or its identity alone") {
  constexpr time_t kTime = 1'000'000'000;
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  const auto opened = [&] {
    put_file(path, "12345");
    set_time(path, kTime);
    return ByteSource::file(path).value();
  };
  const ByteSource resized = opened();
  std::filesystem::resize_file(path, 6);
  set_time(path, kTime);
  CHECK(code_of(resized.check_unchanged()) == "kCorrupt");
  const ByteSource touched = opened();
  set_time(path, kTime + 1);
  CHECK(code_of(touched.check_unchanged()) == "kCorrupt");
  const ByteSource replaced = opened();
  close_all_others(folder);
  put_file(folder / "new", "54321");
  set_time(folder / "new", kTime);
  std::filesystem::rename(folder / "new", path);
  CHECK(code_of(replaced.check_unchanged()) == "kCorrupt");
}

TEST_CASE("a file that is removed while it is not held open is not found at the next read") {
  const TemporaryFolder folder;
  put_file(folder / "file", "first");
  const ByteSource source = ByteSource::file(folder / "file").value();
  close_all_others(folder);
  std::filesystem::remove(folder / "file");
  std::array<std::byte, 5> out{};
  CHECK(code_of(source.read_at(0, out)) == "kNotFound");
  source.drop_pages(0, 5);  // has no error to give, and does no harm
}

TEST_CASE("any number of file sources keeps at most 64 descriptors open") {
  const TemporaryFolder folder;
  const std::size_t before = open_descriptors();
  const auto sources = open_files(folder, "file-", 200);
  CHECK(open_descriptors() <= before + 64);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      REQUIRE(text_of(sources[i]) == "content of file-" + std::to_string(i));
    }
  }
  CHECK(open_descriptors() <= before + 64);
}

TEST_CASE("a source that was made from a relative path survives a change of folder") {
  const TemporaryFolder folder;
  const auto old_folder = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  put_file("file", "first");
  const auto source = ByteSource::file("file");
  std::filesystem::current_path(old_folder);
  REQUIRE(source);
  close_all_others(folder);
  std::array<std::byte, 5> out{};
  CHECK(error_of(source->read_at(0, out)) == "no error");
}

TEST_CASE("a file whose sources are all gone is not kept open") {
  const TemporaryFolder folder;
  put_file(folder / "file", "first");
  const auto holds_file = [&] {
    constexpr int kHighest = 1024;
    struct stat file {};
    REQUIRE(::stat((folder / "file").c_str(), &file) == 0);
    for (int descriptor = 0; descriptor <= kHighest; ++descriptor) {
      struct stat open {};
      if (::fstat(descriptor, &open) == 0 && open.st_dev == file.st_dev && open.st_ino == file.st_ino)
        return true;
    }
    return false;
  };
  {
    const ByteSource source = ByteSource::file(folder / "file").value();
    CHECK(source.size() == 5);
  }
  CHECK_FALSE(holds_file());
}

}  // namespace
}  // namespace etstream::file_source_test
