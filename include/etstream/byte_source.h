// SPDX-License-Identifier: BSD-3-Clause
//
// ByteSource: a reference to bytes in a file or in memory. Descriptions and plans hold sources instead of
// bytes, so that a payload is read once, when it is written, through a small buffer.
//
//   auto weights = etstream::ByteSource::file("model.pte");
//   if (!weights) return weights.error();
//   auto header = weights->slice(0, 64);
//
// InputRecord: records which files were opened as inputs, so that no output replaces one of them, and none is
// committed after one of them has changed.
//
//   const etstream::InputRecord inputs;
//   const auto model = etstream::ByteSource::file("model.pte");
//   const auto apart = inputs.check_output("link_to_model.pte");  // an error
//   if (!apart) return apart.error();
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "etstream/result.h"

namespace etstream {

/// A range of a regular file, for callers that do more than read it, such as mapping it.
struct FileRange {
  int descriptor = -1;  // open for reading; the caller closes it
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// Identifies a file whatever its name: its device's number and its inode number on that device.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// The storage that a ByteSource reads from. Derive from it to add another kind of storage (an object store,
/// an archive member). Implementations are immutable after construction; every function may be called from
/// several threads at once.
class ETSTREAM_EXPORT ByteStorage {
 public:
  ByteStorage() = default;
  ByteStorage(const ByteStorage&) = delete;
  ByteStorage& operator=(const ByteStorage&) = delete;
  virtual ~ByteStorage() = default;

  /// Returns the size in bytes, the same at every call.
  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;
  /// Fills all of `out` with the bytes from `offset` on. The caller has checked that the range is inside
  /// size().
  [[nodiscard]] virtual Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;
  /// Returns the name for messages: a path for a file.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Opens the regular file whose bytes these are, for reading, and returns the descriptor, which the caller
  /// closes. Errors: kUnsupported if they are not a file's; kCorrupt if the bytes may have changed since the
  /// storage was opened.
  [[nodiscard]] virtual Result<int> open_descriptor() const;
  /// Fails if the bytes may have changed since the storage was opened.
  [[nodiscard]] virtual Result<void> check_unchanged() const { return {}; }
  /// Returns whether any of the bytes are in that file, so that writing to the file in place changes them.
  [[nodiscard]] virtual bool lies_in(const FileIdentity& /*file*/) const { return false; }
  /// Returns an offset, not below `offset`, up to which all bytes are zero: that of the next data in a sparse
  /// file, or the end. Returns `offset` if this is not known without reading.
  [[nodiscard]] virtual std::uint64_t next_data(std::uint64_t offset) const noexcept { return offset; }
  /// Hints that a range will not be read again soon, so that caches may drop it. For a file, this includes up
  /// to 2 MiB before the range.
  virtual void drop_pages(std::uint64_t /*offset*/, std::uint64_t /*size*/) const noexcept {}
  /// Makes the file that is open at `descriptor` share a range of this storage (a reflink), from offset `at`
  /// in that file on: no byte is copied, and a later write to either does not change the other. Returns
  /// whether that was done.
  [[nodiscard]] virtual bool clone_range(std::uint64_t /*offset*/, std::uint64_t /*size*/, int /*descriptor*/,
                                         std::uint64_t /*at*/) const noexcept {
    return false;
  }
};

/// The storage and the range in it that a source refers to. Sources that have bytes in common have the same
/// storage.
struct SourcePlace {
  const ByteStorage* storage = nullptr;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  friend auto operator<=>(const SourcePlace&, const SourcePlace&) = default;  // NOLINT(modernize-use-nullptr)
};

/// A range of a ByteStorage. A value of 32 bytes that is cheap to copy; copies share ownership of the
/// storage. A default-constructed source is empty: its size is 0. Every const function may be called from
/// several threads at once.
class ETSTREAM_EXPORT ByteSource {
 public:
  ByteSource() = default;
  /// Refers to all of `storage`, which is not null.
  explicit ByteSource(std::shared_ptr<const ByteStorage> storage);

  /// Opens a whole regular file. Its size, identity and times of change are recorded now; a later change or
  /// truncation is an error when the file is read or in check_unchanged(). So is a new owner or mode, which
  /// the system does not distinguish from a change of the bytes. The file is not kept open: all sources
  /// together use at most 64 descriptors. drop_pages() does nothing for a file that was in the page cache
  /// when it was opened. Of a packed file, these are the original bytes: see packed_file.h, also for more
  /// errors. If there is nothing at `path`, but a file at `path` with ".etz", opens that, so that an index of
  /// files or a folder may have packed ones. Errors: kNotFound, kIo, kInvalidArgument (a folder, a FIFO or a
  /// device: its size is not known beforehand).
  [[nodiscard]] static Result<ByteSource> file(const std::string& path);
  /// Does the same, but gives a packed file as it lies.
  [[nodiscard]] static Result<ByteSource> raw_file(const std::string& path);
  /// Returns a source of bytes that the caller owns and keeps unchanged while a copy of the source exists.
  [[nodiscard]] static ByteSource memory(std::span<const std::byte> bytes);
  /// Returns a source that owns its bytes.
  [[nodiscard]] static ByteSource owned(std::vector<std::byte> bytes);
  /// Returns a source of `size` zero bytes, which use no memory.
  [[nodiscard]] static ByteSource zeros(std::uint64_t size);
  /// Returns the parts as one source, in order. Error: kTooLarge if their sizes add up to more than 2^64 - 1,
  /// or if concatenations are parts of one another more than 256 deep.
  [[nodiscard]] static Result<ByteSource> concatenation(std::vector<ByteSource> parts);

  /// Returns the size in bytes.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Returns `size` bytes from `offset` on. Error: kInvalidArgument if they are not inside this source.
  [[nodiscard]] Result<ByteSource> slice(std::uint64_t offset, std::uint64_t size) const;
  /// Fills `out` with the bytes from `offset` on. Errors: kInvalidArgument if they are not inside this
  /// source, kIo, kCorrupt if the storage has become shorter.
  [[nodiscard]] Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const;
  /// Returns the offset of this source in `whole`, if it is a range of it.
  [[nodiscard]] std::optional<std::uint64_t> offset_in(const ByteSource& whole) const noexcept;
  /// Returns the storage and the range, to compare and sort sources by.
  [[nodiscard]] SourcePlace place() const noexcept { return {storage_.get(), offset_, offset_ + size_}; }
  /// Opens the regular file that holds the bytes; see FileRange. Errors: see ByteStorage::open_descriptor.
  [[nodiscard]] Result<FileRange> open_range() const;
  /// Returns the name for messages.
  [[nodiscard]] std::string name() const;
  /// See ByteStorage::check_unchanged.
  [[nodiscard]] Result<void> check_unchanged() const;
  /// See ByteStorage::lies_in.
  [[nodiscard]] bool lies_in(const FileIdentity& file) const { return storage_ && storage_->lies_in(file); }
  /// See ByteStorage::next_data; `offset` is inside this source.
  [[nodiscard]] std::uint64_t next_data(std::uint64_t offset) const noexcept;
  /// See ByteStorage::drop_pages; the range is relative to this source and inside it.
  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept;
  /// See ByteStorage::clone_range; clones all of this source.
  [[nodiscard]] bool clone_range(int descriptor, std::uint64_t at) const noexcept;

 private:
  ByteSource(std::shared_ptr<const ByteStorage> storage, std::uint64_t offset, std::uint64_t size);

  std::shared_ptr<const ByteStorage> storage_;
  std::uint64_t offset_ = 0;
  std::uint64_t size_ = 0;
};

/// While it exists, records each regular file that its thread opens with ByteSource::file() or as a schema,
/// and the files that a schema includes. If there are several, only the newest records; they are destroyed in
/// reverse order. Before an output is committed in its thread (sink.h), all inputs are as they were when they
/// were opened, or that is the commit's error.
class ETSTREAM_EXPORT InputRecord {
 public:
  /// `replaceable` is an input that an output may replace once the output is complete.
  explicit InputRecord(std::optional<FileIdentity> replaceable = {});
  InputRecord(const InputRecord&) = delete;
  InputRecord& operator=(const InputRecord&) = delete;
  ~InputRecord();

  /// Returns the newest record of this thread; null if there is none.
  [[nodiscard]] static InputRecord* current() noexcept;

  /// Records a file that will be opened later, or by others, if it exists. `name` stands for it in messages.
  void add(const std::string& path);
  void add(const FileIdentity& file, const std::string& name);
  /// Records a source that may have been opened before.
  void add(const ByteSource& source);

  /// Checks that the sources in the newest record of this thread, if there is one, have not changed since
  /// they were opened. Error: kCorrupt.
  [[nodiscard]] static Result<void> check_unchanged();

  /// Checks that the output at `path`, with links followed, is none of the recorded files, except the
  /// replaceable one. Error: kInvalidArgument.
  [[nodiscard]] Result<void> check_output(const std::string& path) const;
  /// Checks the same for a file that is written in place, which may not be any of the recorded files.
  [[nodiscard]] Result<void> check_output_in_place(const FileIdentity& file, const std::string& name) const;

 private:
  struct Files;
  std::unique_ptr<Files> files_;
  std::optional<FileIdentity> replaceable_;
  InputRecord* outer_;
};

/// Identifies the file at `path`, with links followed; none if there is none.
[[nodiscard]] ETSTREAM_EXPORT std::optional<FileIdentity> identity_of(const std::string& path);
/// Identifies the file that is open at `descriptor`, if it is a regular file.
[[nodiscard]] ETSTREAM_EXPORT std::optional<FileIdentity> identity_of_file(int descriptor);

}  // namespace etstream
