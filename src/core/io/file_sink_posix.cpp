// SPDX-License-Identifier: BSD-3-Clause
//
// Sinks to files and descriptors.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_calls_posix.h"
#include "core/io/temporary_posix.h"
#include "core/io/transfer.h"
#include "etstream/byte_source.h"
#include "etstream/packed_file.h"
#include "etstream/sink.h"

namespace etstream {
namespace {

/// The most bytes that are written before the bytes before them must be on the disk. Two such windows are in
/// the page cache at a time. From 4 to 16 MiB they take equally long, 0.61 of the time of one fsync at the
/// end.
constexpr std::uint64_t kWriteWindow = std::uint64_t{6} << 20;
constexpr std::uint64_t kMostCached = 2 * kWriteWindow;

/// The most bytes that one call writes if the page cache is to keep them. The cache keeps pieces as large as
/// the write. With memory that the machine has at hand, 64 KiB took 1.4 to 2.5 times as long for 2.9 GiB on
/// ext4, Linux 6.18, and 1 MiB 0.9 to 1.1 times. In a virtual machine whose host takes free memory back,
/// large pieces come from what it took: 1 MiB took 2 to 5 times as long.
constexpr std::size_t kKeptPiece = std::size_t{256} << 10;

/// Sources smaller than this are copied with their neighbours: that takes less time than sharing them.
constexpr std::uint64_t kSmallestShared = std::uint64_t{256} << 10;

/// Closes a copy of the descriptor: without fsync, a network file system reports there what it could not
/// write. The descriptor itself stays open for its lock.
int flush_by_closing(int fd) {
  return retried([&] {
    const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? copy : ::close(copy);
  });
}

/// Files that wait to be committed are closed from this descriptor on. A process may not have thousands of
/// outputs open that are committed together. A closed file is not locked: another process that writes to the
/// same destination meanwhile takes it for a leftover, and this process then says so.
int most_kept_open() noexcept {
  ::rlimit most{};
  if (::getrlimit(RLIMIT_NOFILE, &most) != 0) return std::numeric_limits<int>::max();
  return static_cast<int>(std::min<::rlim_t>(most.rlim_cur / 2, std::numeric_limits<int>::max()));
}

/// Returns the size and the numbers of the file system's blocks; nothing if it does not tell, as many FUSE
/// mounts don't: they say zero.
std::optional<struct statvfs> blocks_of(int descriptor) {
  struct statvfs out {};
  if (::fstatvfs(descriptor, &out) != 0 || out.f_blocks == 0 || out.f_bsize == 0) return std::nullopt;
  return out;
}

/// A file that appears whole or not at all: a temporary one beside its destination, removed unless it is
/// renamed over it.
class FileSink final : public BufferedSink {
 public:
  /// `destination` is a regular file or nothing yet, and no link.
  FileSink(std::string destination, Temporary file, const FileSinkOptions& options)
      : destination_(std::move(destination)), file_(std::move(file)), options_(options) {
    set_forgetful(options_.sync);
    if (!options_.sync) {
      set_piece(kKeptPiece);
    } else {
      expect_one_writing(file_.descriptor());
    }
  }

  std::uint64_t clone_range(const ByteSource& source, std::uint64_t offset) override {
    if (source.size() < kSmallestShared) return 0;
    const auto system = blocks_of(file_.descriptor());
    // Only whole blocks are shared, and they begin where blocks begin.
    const std::uint64_t size = system ? source.size() - source.size() % system->f_bsize : 0;
    if (size == 0 || offset % system->f_bsize != 0) return 0;
    const auto blocks = source.slice(0, size);
    if (!blocks || !blocks->clone_range(file_.descriptor(), offset)) return 0;
    shared_.push_back({offset, size});
    return size;
  }

  Result<void> take_back() override {
    return without_exceptions([&]() -> Result<void> {
      switch (std::exchange(published_, Published::kNot)) {
        case Published::kNot:
          return {};
        case Published::kNew:
          if (retried([&] { return ::unlink(destination_.c_str()); }) == 0) return {};
          break;
        case Published::kExchanged:
          if (file_.exchange_with(destination_)) return {};
          break;
        case Published::kReplaced:
          errno = EOPNOTSUPP;
          break;
      }
      return failed("cannot put back what was at");
    });
  }

  Result<void> make_durable() override {
    return without_exceptions([&]() -> Result<void> {
      if (std::exchange(is_durable_, true)) return {};
      if (options_.sync && can_sync_) {
        ETSTREAM_TRY(sync_folder_of(
            destination_, is_one_of_several() ? kCannotSyncFolder : kCompleteButNotSynced, options_.warn));
      }
      // A small file stays in the cache, for its next reader.
      if (options_.sync && written_ > kMostCached && file_.descriptor() >= 0) {
        drop_cached(file_.descriptor(), 0, written_);
      }
      return {};
    });
  }

  Result<void> reserve(std::uint64_t size) override {
    if (size > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) {
      return refusal(ErrorCode::kTooLarge, "cannot write", destination_,
                     text("{} bytes are more than a file can have", size));
    }
    std::uint64_t begin = 0;
    for (const Range& range : shared_) {
      ETSTREAM_TRY(reserve(begin, range.offset));
      begin = range.offset + range.size;
    }
    return reserve(begin, size);
  }

  Result<void> skip(std::uint64_t size) override {
    return without_exceptions([&]() -> Result<void> {
      ETSTREAM_TRY(flush());
      if (::lseek(file_.descriptor(), static_cast<off_t>(size), SEEK_CUR) < 0) {
        return failed("cannot write");
      }
      written_ += size;
      window_ = written_;
      return {};
    });
  }

 private:
  struct Range {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };

  Result<void> reserve(std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return {};
    if (retried([&] { return reserve_space(file_.descriptor(), begin, end - begin); }) == 0) return {};
    int reason = errno;
    const auto system = blocks_of(file_.descriptor());
    const std::uint64_t free = system ? std::uint64_t{system->f_bavail} * system->f_frsize : 0;
    if (mount_lacks(MountCall::kReserve, reason)) {
      // A file system that can't reserve space is written to all the same, if it says that there is room.
      if (!system || free >= end - begin) return {};
      reason = ENOSPC;
    }
    Error error = system_error(reason, "cannot reserve space for", destination_);
    error.message += text(" ({}", readable_size(end - begin));
    if (system && reason == ENOSPC) error.message += text("; {} are free", readable_size(free));
    error.message += ')';
    return error;
  }

  Result<void> take(std::span<const std::byte> bytes) override {
    ETSTREAM_TRY(write_all(file_.descriptor(), bytes, destination_));
    written_ += bytes.size();
    if (!options_.sync || written_ - window_ < kWriteWindow) return {};
    // Have the disk start on this window, wait for the one before, and drop that from the cache.
    ETSTREAM_TRY(push_out_window(window_, false));
    if (window_ >= kWriteWindow) {
      ETSTREAM_TRY(push_out_window(window_ - kWriteWindow, true));
      drop_cached(file_.descriptor(), window_ - kWriteWindow, kWriteWindow);
    }
    window_ += kWriteWindow;
    return {};
  }

  Result<void> settle() override {
    const int fd = file_.descriptor();
    if (options_.sync) {
      if (retried([&] { return sync_file(fd); }) == 0) return {};
      if (!mount_lacks(MountCall::kSync, errno)) return failed("cannot sync");
      warn_of_no_sync(destination_, errno, options_.warn);
      can_sync_ = false;
    }
    return flush_by_closing(fd) == 0 ? Result<void>() : failed("cannot write");
  }

  /// Makes the temporary name survive a loss of power. While this file is not committed and another is, the
  /// name tells that they don't belong together. Closes the file if the process may not keep it open.
  Result<void> wait_for_others() override {
    if (options_.sync && can_sync_) {
      ETSTREAM_TRY(sync_folder_of(destination_, kCannotSyncFolder, {}));
    }
    if (file_.descriptor() < most_kept_open()) return {};
    if (options_.sync && written_ > kMostCached) drop_cached(file_.descriptor(), 0, written_);
    file_.close();
    return {};
  }

  Result<void> finish() override {
    // If several sinks are committed together, the replaced file is kept for take_back().
    if (is_one_of_several() && file_.exchange_with(destination_)) {
      published_ = Published::kExchanged;
    } else {
      struct stat before {};
      const bool is_new = ::lstat(destination_.c_str(), &before) != 0;
      if (!file_.rename_to(destination_)) return replacing_error(errno, destination_);
      published_ = is_new ? Published::kNew : Published::kReplaced;
    }
    return {};
  }

  Result<void> push_out_window(std::uint64_t window, bool wait) {
    if (retried([&] { return push_out(file_.descriptor(), window, kWriteWindow, wait); }) == 0) return {};
    // If the file system can't do this, fsync does it later. Any other error is a failed write-back. It is
    // reported once, here or by fsync, and must not be lost; on a network it may be any error.
    if (mount_lacks(MountCall::kPushOut, errno)) return {};
    return failed("cannot write");
  }

  [[nodiscard]] Error failed(std::string_view doing) const {
    return system_error(errno, doing, destination_);
  }

  const std::string destination_;
  Temporary file_;
  const FileSinkOptions options_;
  enum class Published { kNot, kNew, kExchanged, kReplaced } published_ = Published::kNot;
  std::vector<Range> shared_;  // by offset
  bool can_sync_ = true;
  bool is_durable_ = false;
  std::uint64_t written_ = 0;
  std::uint64_t window_ = 0;  // where the window begins that is being filled
};

class DescriptorSink final : public BufferedSink {
 public:
  DescriptorSink(Descriptor owned, int descriptor, std::string name)
      : owned_(std::move(owned)), descriptor_(descriptor), name_(std::move(name)) {}

  std::optional<FileIdentity> changed_in_place() const override { return identity_of_file(descriptor_); }

 private:
  Result<void> take(std::span<const std::byte> bytes) override {
    return write_all(descriptor_, bytes, name_);
  }

  const Descriptor owned_;  // what descriptor_ refers to, where it is the sink's
  const int descriptor_;
  const std::string name_;
};

/// Opens a path that exists and can't be replaced by a file: a terminal, a FIFO, /dev/null. An open
/// descriptor is written at its position, so that >> appends.
Result<std::unique_ptr<Sink>> open_special(const std::string& path) {
  const auto named = descriptor_named(path);
  Descriptor opened(retried([&] {
    return named ? ::fcntl(*named, F_DUPFD_CLOEXEC, 0)
                 : ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  }));
  if (!opened) return system_error(errno, "cannot open", path);
  const int descriptor = opened.get();
  return std::unique_ptr<Sink>(std::make_unique<DescriptorSink>(std::move(opened), descriptor, path));
}

/// Returns the path of the file that replaces what is at `path`: the end of its links. Returns nothing for
/// what is written in its place.
Result<std::optional<std::string>> destination_of(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return refusal(ErrorCode::kInvalidArgument, "cannot write", path, "it is no path");
  }
  struct stat existing {};
  if (::stat(path.c_str(), &existing) == 0) {
    if (S_ISDIR(existing.st_mode)) {
      return refusal(ErrorCode::kInvalidArgument, "cannot write", path, "it is a folder");
    }
    if (!S_ISREG(existing.st_mode) || descriptor_named(path)) return std::optional<std::string>();
  }
  ETSTREAM_ASSIGN(std::string destination, follow_links(path));
  return std::optional(std::move(destination));
}

}  // namespace

Result<void> check_file_sink(const std::string& path) {
  return without_exceptions([&]() -> Result<void> {
    ETSTREAM_ASSIGN(const auto destination, destination_of(path));
    if (destination) return check_room_beside(*destination);
    return ::access(path.c_str(), W_OK) == 0 ? Result<void>() : system_error(errno, "cannot open", path);
  });
}

Result<std::unique_ptr<Sink>> open_file_sink(const std::string& path, const FileSinkOptions& options) {
  return without_exceptions([&]() -> Result<std::unique_ptr<Sink>> {
    ETSTREAM_ASSIGN(auto destination, destination_of(path));
    const bool packs =
        options.packing == FileSinkOptions::Packing::kByName && destination && path.ends_with(kPackedSuffix);
    std::unique_ptr<Sink> out;
    if (destination) {
      ETSTREAM_ASSIGN(Temporary file, create_temporary_file(*destination));
      ETSTREAM_TRY(keep_owner_and_permissions(file.descriptor(), *destination, options.warn));
      out = std::make_unique<FileSink>(*std::move(destination), std::move(file), options);
    } else {
      ETSTREAM_ASSIGN(out, open_special(path));
    }
    return packs ? open_packing_sink(std::move(out), {.threads = options.threads}) : std::move(out);
  });
}

std::unique_ptr<Sink> open_descriptor_sink(int descriptor, std::string name) {
  return std::make_unique<DescriptorSink>(Descriptor(), descriptor, std::move(name));
}

}  // namespace etstream
