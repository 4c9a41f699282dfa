// SPDX-License-Identifier: BSD-3-Clause
//
// Sink: the destination of a file, written front to back. Bytes are appended and never taken back; a file's
// destination shows nothing until commit().
//
//   const auto plan = etstream::plan_copy(etstream::ByteSource::file("model.pte").value(), "program");
//   const auto sink = etstream::open_file_sink("copy.pte");
//   if (!sink) return sink.error();
//   if (const auto written = etstream::write(plan, **sink); !written) return written.error();
//
// A sink belongs to one thread at a time. Destroying one without commit() abandons it: the destination is as
// before and no temporary file is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/findings.h"
#include "etstream/result.h"

namespace etstream {

/// Something new, a file or a folder, that nobody sees before commit(). Destroying it without that abandons
/// it.
class ETSTREAM_EXPORT PendingOutput {
 public:
  PendingOutput() = default;
  PendingOutput(const PendingOutput&) = delete;
  PendingOutput& operator=(const PendingOutput&) = delete;
  virtual ~PendingOutput() = default;

  /// Does everything in commit() that is likely to fail: all bytes reach their destination or the disk, and
  /// little memory is held. Only commit() and then make_durable() may follow, or another prepare(), which
  /// does nothing.
  [[nodiscard]] virtual Result<void> prepare() { return {}; }
  /// Makes what was written the destination's content; durably, unless prepare() was called before. Must be
  /// called once. Fails if an input of InputRecord::current() (input_record.h) has changed.
  [[nodiscard]] virtual Result<void> commit() = 0;
  /// Makes the new content survive a loss of power, unless commit() has done so already. To be called after
  /// commit().
  [[nodiscard]] virtual Result<void> make_durable() { return {}; }
  /// Restores the destination as it was before commit(), if that replaced it. What went to a pipe or a
  /// device, or was written in place, stays.
  [[nodiscard]] virtual Result<void> take_back() { return {}; }
};

/// The destination of one file. Derive from it to add another kind of destination. Offsets and sizes are in
/// bytes.
class ETSTREAM_EXPORT Sink : public PendingOutput {
 public:
  /// Makes the file system share bytes of `source` at `offset` without copying them, if it can. To be called
  /// before reserve() and everything else. Returns how many bytes it shared, from the start of `source` on;
  /// skip() these, and append the rest.
  [[nodiscard]] virtual std::uint64_t clone_range(const ByteSource& /*source*/, std::uint64_t /*offset*/) {
    return 0;
  }
  /// Announces the size of the file in bytes, before the first is appended. A file sink reserves space for
  /// what is not shared, so that a full disk shows before any work. Errors: kIo (no space), kTooLarge (over
  /// the file system's limit).
  [[nodiscard]] virtual Result<void> reserve(std::uint64_t size) = 0;
  /// Appends all of `source`, or fails; after a failure the sink can only be destroyed.
  [[nodiscard]] virtual Result<void> append(const ByteSource& source) = 0;
  /// Skips `size` bytes that clone_range() put at the current position. Error: kInvalidArgument in a sink
  /// that can't share.
  [[nodiscard]] virtual Result<void> skip(std::uint64_t size);
  /// Returns the regular file that append() changes in place, in which no source may be. Returns nothing for
  /// a sink that leaves its destination unchanged until commit(), or that does not write to a file.
  [[nodiscard]] virtual std::optional<FileIdentity> changed_in_place() const { return std::nullopt; }
};

/// Commits all outputs in this order, or none: all are prepared before the first is committed, nothing is
/// done between one commit and the next, and if one can't be committed or made durable, all are taken back.
/// Error: that of the first that failed.
///
/// A process that is killed between two commits leaves those before it new and those after it old; a loss of
/// power before the end may leave any of them new. A temporary file is then beside one of them, of which
/// verify() of verify.h warns.
[[nodiscard]] ETSTREAM_EXPORT Result<void> commit_together(
    std::span<const std::unique_ptr<PendingOutput>> outputs);

/// Options of open_file_sink() and of all functions that write a file by it.
struct FileSinkOptions {
  /// Writes the file and its folder to the disk before commit() returns, and limits the page cache that
  /// writing uses to a few MiB. Without it the file is complete, but a power failure may undo it, as after
  /// `cp`.
  bool sync = true;
  /// A function that is told, in a sentence that names the file, what its file system can't do: syncing, or
  /// keeping the permissions of the file that is replaced. Writing goes on without it. The sink's thread
  /// calls it, from the opening until the end of commit().
  Warn warn = {};
  /// Says whether the bytes are packed as they are written (packed_file.h): by default if the path ends in
  /// ".etz" and is not written in place.
  enum class Packing { kByName, kNever } packing = Packing::kByName;
  /// The threads that pack, as PackOptions::threads.
  unsigned threads = 0;
};

/// Opens a file at `path`, which commit() replaces atomically: it is written under a temporary name
/// ".NAME.etstream-*.tmp" in the same folder, and renamed. A process that is killed leaves at most that file;
/// the next sink to the same destination removes it. Links are followed and keep pointing at the file; an
/// existing file's permissions are kept, and its owner and group if that is allowed; a new file's permissions
/// follow the umask. What is written to a path that ends in ".etz" is packed. Large sources in files of the
/// same file system share their blocks with this file, if the file system can (xfs, btrfs) and both begin at
/// multiples of a block. A path that is not a regular file (a FIFO, /dev/stdout) is written directly.
///
/// A file system that can't change permissions is written to all the same if nobody but the owner may do more
/// with the new file than with the old one. So is a file system that can't sync. `options.warn` is told. On a
/// file system that can't rename, commit() fails and leaves the destination as it was.
///
/// Errors: kNotFound (the folder is missing), kIo, kInvalidArgument (a folder).
[[nodiscard]] ETSTREAM_EXPORT Result<std::unique_ptr<Sink>> open_file_sink(
    const std::string& path, const FileSinkOptions& options = {});

/// Makes a folder at `path`, unless there is one, for files that are written into it: with options.sync it
/// survives a loss of power as they do. Returns whether it was made. Errors: kIo, kNotFound.
[[nodiscard]] ETSTREAM_EXPORT Result<bool> make_folder(const std::string& path,
                                                       const FileSinkOptions& options = {});

/// Returns the error that open_file_sink() would give as files are now, and makes nothing. It does not notice
/// a file system that refuses only when a file is made.
[[nodiscard]] ETSTREAM_EXPORT Result<void> check_file_sink(const std::string& path);

/// Opens a sink to a descriptor (a pipe, standard output), written from its current position on. The caller
/// keeps owning it, and it is not closed. `name` stands for it in messages. Writing to a pipe without a
/// reader is a kIo error if the process ignores SIGPIPE.
[[nodiscard]] ETSTREAM_EXPORT std::unique_ptr<Sink> open_descriptor_sink(int descriptor, std::string name);

/// Appends to `out`, which must outlive the sink and shows what was appended so far.
[[nodiscard]] ETSTREAM_EXPORT std::unique_ptr<Sink> open_memory_sink(std::vector<std::byte>& out);

/// Passes the bytes to `take`, in order, in pieces of at most 1 MiB that are only valid during the call. An
/// error from `take` ends the writing and is returned.
[[nodiscard]] ETSTREAM_EXPORT std::unique_ptr<Sink> open_callback_sink(
    std::function<Result<void>(std::span<const std::byte>)> take);

}  // namespace etstream
