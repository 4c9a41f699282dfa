// SPDX-License-Identifier: BSD-3-Clause
//
// ByteSource::file and raw_file: regular files as storage.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <mutex>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/descriptor_posix.h"
#include "core/io/file_calls_posix.h"
#include "etstream/byte_source.h"
#include "etstream/packed_file.h"

namespace etstream {
namespace {

/// The identity of a file, and its state at one time.
struct Identity {
  FileIdentity file;
  off_t size;
  FileTimes times;
  nlink_t names;

  explicit Identity(const struct stat& s)
      : file(file_identity(s)), size(s.st_size), times(times_of(s)), names(s.st_nlink) {}

  bool operator==(const Identity& other) const {
    const auto same = [](const timespec& a, const timespec& b) {
      return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
    };
    // A file that gets or loses a name, as one that is replaced does, has another time of change, too.
    return file == other.file && size == other.size && same(times.modified, other.times.modified) &&
           (names != other.names || same(times.changed, other.times.changed));
  }
};

/// The descriptors opened last, kept open. One that a reader still holds outlives its place here.
class OpenDescriptors {
 public:
  static constexpr std::size_t kMost = 64;

  /// Returns what `slot` refers to if that is still open, otherwise what `open()` gives, kept and put in
  /// `slot`.
  template <class Open>
  [[nodiscard]] Result<std::shared_ptr<const Descriptor>> get(std::weak_ptr<const Descriptor>& slot,
                                                              Open&& open) {
    const std::lock_guard lock(mutex_);
    if (auto held = slot.lock()) return held;
    ETSTREAM_ASSIGN(Descriptor opened, open());
    auto held = std::make_shared<const Descriptor>(std::move(opened));
    slot = held;
    held_[next_++ % kMost] = held;
    return held;
  }

  /// Closes what `slot` refers to, unless a reader holds it.
  void release(const std::weak_ptr<const Descriptor>& slot) noexcept {
    const std::lock_guard lock(mutex_);
    const auto held = slot.lock();
    if (!held) return;
    for (auto& kept : held_) {
      if (kept == held) kept.reset();
    }
  }

 private:
  std::mutex mutex_;
  std::array<std::shared_ptr<const Descriptor>, kMost> held_;
  std::size_t next_ = 0;
};

OpenDescriptors& open_descriptors() {
  static OpenDescriptors instance;
  return instance;
}

struct Opened {
  Descriptor descriptor;
  Identity identity;
};

Result<Opened> open_regular(const std::string& path) {
  // O_NONBLOCK: the open of a FIFO without a writer must not hang; it means nothing to a regular file.
  Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!descriptor) return system_error(errno, "cannot open", path);
  struct stat s {};
  if (::fstat(descriptor.get(), &s) != 0) return system_error(errno, "cannot examine", path);
  if (S_ISDIR(s.st_mode)) {
    return with_advice(refusal(ErrorCode::kInvalidArgument, "cannot read", path, "it is a folder"),
                       {AdviceTerm::kGiveFileInFolder});
  }
  if (!S_ISREG(s.st_mode)) {
    return refusal(ErrorCode::kInvalidArgument, "cannot read", path,
                   "it is not a regular file, and an input's size must be known before it is read");
  }
  return Opened{std::move(descriptor), Identity(s)};
}

/// The largest unit in which the page cache holds a file: up to 2 MiB, aligned, by how far ahead is read.
constexpr std::uint64_t kLargestFolio = std::uint64_t{2} << 20;

/// Returns whether a few places of a file lie in the page cache, as then all of it seems to. A small file
/// counts as cached.
bool is_cached(int fd, std::uint64_t size) {
  constexpr std::uint64_t kPlaces = 16;
  constexpr std::uint64_t kSmall = std::uint64_t{1} << 18;
  if (size < kSmall) return true;
  for (std::uint64_t i = 0; i < kPlaces; ++i) {
    if (!is_cached_at(fd, size / kPlaces * i + size / kPlaces / 2)) return false;
  }
  return true;
}

class FileStorage final : public ByteStorage {
 public:
  FileStorage(std::string path, std::string absolute_path, const Identity& identity, bool was_cached)
      : path_(std::move(path)),
        absolute_path_(std::move(absolute_path)),
        identity_(identity),
        was_cached_(was_cached) {}
  FileStorage(const FileStorage&) = delete;
  FileStorage& operator=(const FileStorage&) = delete;
  ~FileStorage() override { open_descriptors().release(descriptor_); }

  /// Keeps what was just opened, so that the first read need not open it again.
  Result<void> adopt(Descriptor descriptor) {
    ETSTREAM_TRY(
        open_descriptors().get(descriptor_, [&]() -> Result<Descriptor> { return std::move(descriptor); }));
    return {};
  }

  std::uint64_t size() const noexcept override { return static_cast<std::uint64_t>(identity_.size); }
  std::string name() const override { return path_; }

  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    ETSTREAM_ASSIGN(const auto descriptor, acquire());
    ETSTREAM_ASSIGN(const std::size_t n, read_all(descriptor->get(), offset, out, path_));
    if (n == out.size()) return {};
    return Error{ErrorCode::kCorrupt,
                 text("{}: has nothing at offset {}, expected {} bytes as when it was opened: it was "
                      "shortened while it was read",
                      path_, offset + n, size()),
                 0, path_, offset + n};
  }

  Result<void> check_unchanged() const override {
    ETSTREAM_TRY(acquire_unchanged());
    return {};
  }

  bool lies_in(const FileIdentity& file) const override { return identity_.file == file; }

  Result<int> open_descriptor() const override {
    ETSTREAM_ASSIGN(const auto descriptor, acquire_unchanged());
    const int duplicate = ::fcntl(descriptor->get(), F_DUPFD_CLOEXEC, 0);
    if (duplicate < 0) return system_error(errno, "cannot open", path_);
    return duplicate;
  }

  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept override {
    if (was_cached_) return;
    const auto descriptor = acquire();
    if (!descriptor) return;
    // The cache drops whole folios only, and a reader that goes in order drops pieces that end inside of a
    // folio. So begin where that folio begins.
    const std::uint64_t begin = offset - offset % kLargestFolio;
    drop_cached((*descriptor)->get(), begin, offset + size - begin);
  }

  std::uint64_t next_data(std::uint64_t offset) const noexcept override {
    const auto descriptor = acquire();
    if (!descriptor) return offset;
    const off_t data = ::lseek((*descriptor)->get(), static_cast<off_t>(offset), SEEK_DATA);
    if (data >= 0) return static_cast<std::uint64_t>(data);
    return errno == ENXIO ? size() : offset;  // nothing but a hole up to the end
  }

  bool clone_range(std::uint64_t offset, std::uint64_t size, int descriptor,
                   std::uint64_t at) const noexcept override {
    const auto source = acquire();
    return source && share_blocks((*source)->get(), offset, size, descriptor, at);
  }

 private:
  Result<std::shared_ptr<const Descriptor>> acquire() const {
    return open_descriptors().get(descriptor_, [&]() -> Result<Descriptor> {
      ETSTREAM_ASSIGN(Opened opened, open_regular(absolute_path_));
      if (opened.identity == identity_) return std::move(opened.descriptor);
      return changed();
    });
  }

  Result<std::shared_ptr<const Descriptor>> acquire_unchanged() const {
    ETSTREAM_ASSIGN(auto descriptor, acquire());
    struct stat s {};
    if (::fstat(descriptor->get(), &s) != 0) return system_error(errno, "cannot examine", path_);
    if (!(Identity(s) == identity_)) return changed();
    return descriptor;
  }

  Error changed() const {
    return with_advice(error_in(ErrorCode::kCorrupt, path_, "was changed or replaced while it was read"),
                       {"run again once it is complete"});
  }

  const std::string path_;           // as it was given, for messages
  const std::string absolute_path_;  // the process may change its folder
  const Identity identity_;
  const bool was_cached_;                               // before we came: others use it
  mutable std::weak_ptr<const Descriptor> descriptor_;  // guarded by OpenDescriptors
};

}  // namespace

Result<ByteSource> ByteSource::raw_file(const std::string& path) {
  return without_exceptions([&]() -> Result<ByteSource> {
    if (path.find('\0') != std::string::npos) {
      return refusal(ErrorCode::kInvalidArgument, "cannot open", path, "it is no path");
    }
    ETSTREAM_ASSIGN(Opened opened, open_regular(path));
    std::error_code error;
    const std::string absolute = std::filesystem::absolute(path, error);
    const bool was_cached =
        is_cached(opened.descriptor.get(), static_cast<std::uint64_t>(opened.identity.size));
    auto storage = std::make_shared<FileStorage>(path, error ? path : absolute, opened.identity, was_cached);
    ETSTREAM_TRY(storage->adopt(std::move(opened.descriptor)));
    ByteSource out(std::move(storage));
    if (InputRecord* const record = InputRecord::current()) {
      record->add(opened.identity.file, path);
      record->add(out);
    }
    return out;
  });
}

Result<ByteSource> ByteSource::file(const std::string& path) { return open_original(path, &raw_file); }

}  // namespace etstream
