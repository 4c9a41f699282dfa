// SPDX-License-Identifier: BSD-3-Clause
//
// The pages in the page cache after a file was read or written.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/sink.h"
#include "test_files.h"
#include "test_sources.h"

namespace etstream::page_cache_test {
namespace {

const std::size_t kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
constexpr std::size_t kMiB = std::size_t{1} << 20;
/// Shares of a range's pages. The kernel moves pages, and takes some back, whenever it likes.
constexpr double kNearlyAll = 0.75;
constexpr double kNearlyNone = 0.0625;

/// A file on the disk that tells which of its pages are in the page cache.
class CachedFile {
 public:
  CachedFile(const std::string& path, const std::string& content) {
    put_file(path, content);
    open(path);
  }
  explicit CachedFile(const std::string& path) { open(path); }
  CachedFile(const CachedFile&) = delete;
  CachedFile& operator=(const CachedFile&) = delete;
  ~CachedFile() { ::close(fd_); }

  /// Returns the share of the pages in [begin, end) that the cache holds. preadv2 with RWF_NOWAIT would fetch
  /// some.
  [[nodiscard]] double cached(std::size_t begin, std::size_t end) const {
    std::vector<unsigned char> held((end - begin + kPage - 1) / kPage);
    void* const mapped = ::mmap(nullptr, end, PROT_READ, MAP_SHARED, fd_, 0);
    REQUIRE(mapped != MAP_FAILED);
    const int failed = ::mincore(static_cast<char*>(mapped) + begin, end - begin, held.data());
    ::munmap(mapped, end);
    REQUIRE(failed == 0);
    const auto count = std::count_if(held.begin(), held.end(), [](auto page) { return page & 1; });
    return static_cast<double>(count) / static_cast<double>(held.size());
  }
  /// Drops the file from the page cache. Returns false, with a warning, if the file system does not allow
  /// that.
  [[nodiscard]] bool drop() const {
    if (::fsync(fd_) == 0 && ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED) == 0 && cached(0, kPage) == 0)
      return true;
    WARN_MESSAGE(false,
                 "NOT TESTED: the temporary folder is on a file system that nothing drops from the cache");
    return false;
  }
  /// Makes the cache hold the first `size` bytes, and nothing ahead of them.
  void load(std::size_t size) const {
    std::vector<char> bytes(size);
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_RANDOM);
    REQUIRE(::pread(fd_, bytes.data(), size, 0) == static_cast<ssize_t>(size));
  }

 private:
  void open(const std::string& path) {
    fd_ = ::open(path.c_str(), O_RDONLY);
    REQUIRE(fd_ >= 0);
  }

  int fd_ = -1;
};

bool can_drop(const TemporaryFolder& folder) {
  return CachedFile(folder / "can it be dropped", patterned(kPage)).drop();
}

void read_and_forget(const std::string& path) {
  const ByteSource source = ByteSource::file(path).value();
  CHECK(text_of(source).size() == source.size());
  source.drop_pages(0, source.size());
}

TEST_CASE("to forget leaves a file in the page cache only if it lay there before") {
  const TemporaryFolder folder;
  const CachedFile file(folder / "file", patterned(8 * kMiB));
  if (!file.drop()) return;
  read_and_forget(folder / "file");
  CHECK(file.cached(0, 8 * kMiB) < kNearlyNone);
  // Pages that were just written would stay anyway, until they are on the disk.
  file.load(8 * kMiB);
  read_and_forget(folder / "file");
  CHECK(file.cached(0, 8 * kMiB) > kNearlyAll);
}

TEST_CASE("to forget drops a file of which only a part lay in the page cache before") {
  const TemporaryFolder folder;
  const CachedFile file(folder / "file", patterned(8 * kMiB));
  if (!file.drop()) return;
  file.load(7 * kMiB);
  REQUIRE(file.cached(0, 7 * kMiB) > kNearlyAll);
  REQUIRE(file.cached(7 * kMiB, 8 * kMiB) < kNearlyNone);
  read_and_forget(folder / "file");
  CHECK(file.cached(0, 8 * kMiB) < kNearlyNone);
}

TEST_CASE("to forget drops what it names and no more") {
  // The kernel holds a file in pieces of up to 2 MiB, and drops whole ones.
  const TemporaryFolder folder;
  const CachedFile file(folder / "file", patterned(12 * kMiB));
  if (!file.drop()) return;
  const ByteSource source = ByteSource::file(folder / "file").value();
  CHECK(text_of(source).size() == source.size());
  source.slice(2 * kMiB, 8 * kMiB).value().drop_pages(2 * kMiB, 4 * kMiB);
  CHECK(file.cached(0, 4 * kMiB) > kNearlyAll);
  CHECK(file.cached(4 * kMiB, 8 * kMiB) < kNearlyNone);
  CHECK(file.cached(8 * kMiB, 12 * kMiB) > kNearlyAll);
}

TEST_CASE("a file is forgotten in pieces of any size, however the kernel read ahead") {
  const TemporaryFolder folder;
  const CachedFile file(folder / "file", patterned(12 * kMiB));
  if (!file.drop()) return;
  const ByteSource source = ByteSource::file(folder / "file").value();
  CHECK(text_of(source).size() == source.size());
  constexpr std::size_t kPiece = 1'000'000;
  for (std::size_t at = 0; at < source.size(); at += kPiece) {
    source.drop_pages(at, std::min<std::size_t>(kPiece, source.size() - at));
  }
  CHECK(file.cached(0, 12 * kMiB) < kNearlyNone);
}

TEST_CASE("to forget leaves a small file in the page cache") {
  const TemporaryFolder folder;
  const CachedFile file(folder / "file", patterned(200'000));
  if (!file.drop()) return;
  read_and_forget(folder / "file");
  CHECK(file.cached(0, 200'000) > kNearlyAll);
}

TEST_CASE("what was synced leaves the page cache while more is written, and all of a large file in the end") {
  const TemporaryFolder folder;
  if (!can_drop(folder)) return;
  const auto sink = open_file_sink(folder / "out").value();
  REQUIRE(sink->append(source_of(patterned(20 * kMiB))));
  std::string temporary;
  for (const std::string& name : folder.names()) {
    if (name.starts_with(".out.")) temporary = name;
  }
  // The windows of 6 MiB that are on the disk are gone. The last one and the bytes in the buffer are not.
  const CachedFile file(folder / temporary);
  CHECK(file.cached(0, 12 * kMiB) < kNearlyNone);
  CHECK(file.cached(0, 20 * kMiB) > 0);
  REQUIRE(sink->commit());
  CHECK(file.cached(0, 20 * kMiB) < kNearlyNone);
}

TEST_CASE("a file that is small, or not synced, stays in the page cache") {
  const TemporaryFolder folder;
  for (const bool sync : {true, false}) {
    const std::size_t size = (sync ? 11 : 20) * kMiB;
    CAPTURE(size);
    const auto sink = open_file_sink(folder / "out", {.sync = sync}).value();
    REQUIRE(sink->append(source_of(patterned(size))));
    REQUIRE(sink->commit());
    CHECK(CachedFile(folder / "out").cached(0, size) > kNearlyAll);
  }
}

TEST_CASE("a large source is forgotten while it is written, unless the output is not synced") {
  const TemporaryFolder folder;
  for (const bool sync : {true, false}) {
    CAPTURE(sync);
    const CachedFile file(folder / "in", patterned(8 * kMiB));
    if (!file.drop()) return;
    const auto sink = open_file_sink(folder / "out", {.sync = sync}).value();
    REQUIRE(sink->append(ByteSource::file(folder / "in").value()));
    if (sync) {
      CHECK(file.cached(0, 8 * kMiB) < kNearlyNone);
    } else {
      CHECK(file.cached(0, 8 * kMiB) > kNearlyAll);
    }
  }
}

}  // namespace
}  // namespace etstream::page_cache_test
