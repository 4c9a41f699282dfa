// SPDX-License-Identifier: BSD-3-Clause
//
// ByteSource: where large bytes lie and how many they are. Descriptions and layouts hold sources instead
// of bytes, so that a payload is read once, when it is written, through a small buffer.
//
//   auto weights = etstream::ByteSource::file("model.pte");
//   if (!weights) return weights.error();
//   auto header = weights->slice(0, 64);
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// A range of a regular file, for callers that do more than read it, such as mapping it.
struct FileRange {
  int descriptor = -1;  // open for reading; the caller closes it
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// Which file it is, by whatever name: the system's numbers of its device and of it there.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// What a ByteSource reads from. Derive from it to bring a kind of your own (an object store, an
/// archive member). Implementations are immutable after construction; every function may be called from
/// several threads at once.
class ETSTREAM_EXPORT ByteStorage {
 public:
  ByteStorage() = default;
  ByteStorage(const ByteStorage&) = delete;
  ByteStorage& operator=(const ByteStorage&) = delete;
  virtual ~ByteStorage() = default;

  /// In bytes, the same at every call.
  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;
  /// Fills all of `out` with the bytes from `offset` on; the range was checked to be inside size().
  [[nodiscard]] virtual Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;
  /// What messages call it: a path for a file.
  [[nodiscard]] virtual std::string name() const = 0;
  /// A descriptor of the regular file that the bytes are, open for reading, which the caller closes. Errors:
  /// kUnsupported if they are none; kCorrupt if they may no longer be those that were there.
  [[nodiscard]] virtual Result<int> open_descriptor() const;
  /// An error if the bytes may no longer be those that were there when the storage was opened.
  [[nodiscard]] virtual Result<void> check_unchanged() const { return {}; }
  /// Whether bytes of it lie in that file, so that who writes to the file in place changes them.
  [[nodiscard]] virtual bool lies_in(const FileIdentity& /*file*/) const { return false; }
  /// A place from `offset` on, or the end, before which all bytes are zero: where a sparse file has bytes
  /// next. `offset` itself where that is not known without reading.
  [[nodiscard]] virtual std::uint64_t next_data(std::uint64_t offset) const noexcept { return offset; }
  /// A hint that a range will not be read again soon, so that caches may drop it; of a file, up to 2 MiB
  /// before it too.
  virtual void drop_pages(std::uint64_t /*offset*/, std::uint64_t /*size*/) const noexcept {}
  /// Has the file that is open at `descriptor` share a range of this one, at `at` in it, so that no byte is
  /// copied and a later write to either leaves the other as it is (a reflink). Whether that was done.
  [[nodiscard]] virtual bool clone_range(std::uint64_t /*offset*/, std::uint64_t /*size*/, int /*descriptor*/,
                                         std::uint64_t /*at*/) const noexcept {
    return false;
  }
};

/// Which bytes of which storage a source is. Two that have bytes in common are of one storage.
struct SourcePlace {
  const ByteStorage* storage = nullptr;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  friend auto operator<=>(const SourcePlace&, const SourcePlace&) = default;  // NOLINT(modernize-use-nullptr)
};

/// A range of a ByteStorage. A value: cheap to copy, shares ownership of the storage, 32 bytes. The
/// empty source (default) has size 0. Every const function may be called from several threads at once.
class ETSTREAM_EXPORT ByteSource {
 public:
  ByteSource() = default;
  /// All of `storage`, which is not null.
  explicit ByteSource(std::shared_ptr<const ByteStorage> storage);

  /// A regular file, whole. Its size, identity and times of change are taken now; a later change or
  /// truncation is an error at the read or at check_unchanged(), and so is another owner or mode, which the
  /// system does not tell from a change of its bytes. The file is not kept open: any number of sources uses
  /// at most 64 descriptors. drop_pages() leaves a file be that lay in the page cache when it was opened.
  /// Errors: kNotFound, kIo, kInvalidArgument (a folder, a FIFO, a device: what has no size known
  /// beforehand).
  [[nodiscard]] static Result<ByteSource> file(const std::string& path);
  /// Bytes that the caller owns and keeps unchanged for as long as a copy of the source is alive.
  [[nodiscard]] static ByteSource memory(std::span<const std::byte> bytes);
  /// Bytes that the source owns.
  [[nodiscard]] static ByteSource owned(std::vector<std::byte> bytes);
  /// `size` zero bytes, which take no memory.
  [[nodiscard]] static ByteSource zeros(std::uint64_t size);
  /// The parts one after another. Error: kTooLarge if their sizes add up to more than 2^64 - 1.
  [[nodiscard]] static Result<ByteSource> concatenation(std::vector<ByteSource> parts);

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// `size` bytes from `offset` on. Error: kInvalidArgument if they are not inside this source.
  [[nodiscard]] Result<ByteSource> slice(std::uint64_t offset, std::uint64_t size) const;
  /// Fills `out` with the bytes from `offset` on. Errors: kInvalidArgument if they are not inside this
  /// source, kIo, kCorrupt if the storage has become shorter.
  [[nodiscard]] Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const;
  /// Where this source begins in `whole`, if it is a range of it.
  [[nodiscard]] std::optional<std::uint64_t> offset_in(const ByteSource& whole) const noexcept;
  /// Where it lies, so as to compare and to sort by.
  [[nodiscard]] SourcePlace place() const noexcept { return {storage_.get(), offset_, offset_ + size_}; }
  /// Where its bytes lie in a regular file. Errors: see ByteStorage::open_descriptor.
  [[nodiscard]] Result<FileRange> open_range() const;
  /// What messages call it.
  [[nodiscard]] std::string name() const;
  /// See ByteStorage::check_unchanged.
  [[nodiscard]] Result<void> check_unchanged() const;
  /// See ByteStorage::lies_in.
  [[nodiscard]] bool lies_in(const FileIdentity& file) const { return storage_ && storage_->lies_in(file); }
  /// See ByteStorage::next_data; `offset` is inside this source.
  [[nodiscard]] std::uint64_t next_data(std::uint64_t offset) const noexcept;
  /// See ByteStorage::drop_pages; the range is relative to this source and inside it.
  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept;
  /// See ByteStorage::clone_range; of all of this source.
  [[nodiscard]] bool clone_range(int descriptor, std::uint64_t at) const noexcept;

 private:
  ByteSource(std::shared_ptr<const ByteStorage> storage, std::uint64_t offset, std::uint64_t size);

  std::shared_ptr<const ByteStorage> storage_;
  std::uint64_t offset_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace etstream
