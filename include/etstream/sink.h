// SPDX-License-Identifier: BSD-3-Clause
//
// Sink: where an artifact goes, front to back. Bytes are appended and never taken back; nothing shows at
// the destination of a file until commit().
//
//   const auto plan = etstream::plan_copy(etstream::ByteSource::file("model.pte").value(), "program");
//   const auto sink = etstream::open_file_sink("copy.pte");
//   if (!sink) return sink.error();
//   if (const auto written = etstream::write(plan, **sink); !written) return written.error();
//
// A sink belongs to one thread at a time. Destroying one without commit() abandons it: the destination
// is as it was and no temporary file is left.
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
#include "etstream/result.h"

namespace etstream {

class ETSTREAM_EXPORT Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;

  /// Before reserve() and all else: has the file system put bytes of `source` at `offset` without copying
  /// them, where it can. Returns how many, from the start of `source` on; the rest is appended, these are
  /// skipped.
  [[nodiscard]] virtual std::uint64_t clone_range(const ByteSource& /*source*/, std::uint64_t /*offset*/) {
    return 0;
  }
  /// Tells how many bytes the file will have, before the first is appended; a file sink reserves the space
  /// for what is not shared, so that a full disk shows before any work. Errors: kIo (no space), kTooLarge
  /// (over the file system's limit).
  [[nodiscard]] virtual Result<void> reserve(std::uint64_t size) = 0;
  /// Takes all of `source`, or fails; after a failure the sink only serves to be destroyed.
  [[nodiscard]] virtual Result<void> append(const ByteSource& source) = 0;
  /// Goes on behind `size` bytes that clone_range() put where the next byte would go. Error: kInvalidArgument
  /// in a sink that can't share.
  [[nodiscard]] virtual Result<void> skip(std::uint64_t size);
  /// The regular file that append() changes in place, which no source may lie in. None of a sink that leaves
  /// its destination alone until commit(), and of one to no file.
  [[nodiscard]] virtual std::optional<FileIdentity> changed_in_place() const { return std::nullopt; }
  /// Does all of commit() that is likely to fail: everything has gone where it goes, or is on the disk, and
  /// little memory is held. Only commit() follows, or this again, which does nothing.
  [[nodiscard]] virtual Result<void> prepare() { return {}; }
  /// Makes what was appended the destination's content, durably. To be called once, last.
  [[nodiscard]] virtual Result<void> commit() = 0;
  /// After commit(): has the destination as it was before, where it was replaced. What has gone to a pipe or
  /// a device, or was written in place, stays.
  [[nodiscard]] virtual Result<void> take_back() { return {}; }
};

/// Commits the sinks, in this order, or none of them: all are prepared before the first is committed, and
/// where one can't be, those before it are taken back. Error: that of the first that failed.
[[nodiscard]] ETSTREAM_EXPORT Result<void> commit_together(std::span<const std::unique_ptr<Sink>> sinks);

struct FileSinkOptions {
  /// Have the file and its folder on the disk before commit() returns, and keep the page cache that
  /// writing takes to a few MiB. Without it the file is complete, but a power cut may take it back,
  /// as after `cp`.
  bool sync = true;
};

/// A file at `path`, replaced atomically by commit(): it is written under a temporary name
/// ".NAME.etstream-*.tmp" in the same folder, and renamed. A process that is killed leaves at most that
/// file; the next sink to the same destination removes it. Links are followed and keep pointing
/// at the file; an existing file's permissions are kept, and its owner and group where that is allowed; a new
/// one's come from the umask. Large sources that lie in files of the same file system, at multiples of its
/// blocks like their places in this one, are shared where it can share (xfs, btrfs). A path that is not a
/// regular file (a FIFO, /dev/stdout) is written directly. Errors: kNotFound (the folder is missing), kIo,
/// kInvalidArgument (a folder).
[[nodiscard]] ETSTREAM_EXPORT Result<std::unique_ptr<Sink>> open_file_sink(
    const std::string& path, const FileSinkOptions& options = {});

/// An open descriptor (a pipe, standard output), written from its current position on. It stays the
/// caller's and open. `name` is what messages call it. A pipe whose reader has gone is a kIo error
/// where the process ignores SIGPIPE.
[[nodiscard]] ETSTREAM_EXPORT std::unique_ptr<Sink> open_descriptor_sink(int descriptor, std::string name);

/// Appends to `out`, which outlives the sink and shows what has come so far.
[[nodiscard]] ETSTREAM_EXPORT std::unique_ptr<Sink> open_memory_sink(std::vector<std::byte>& out);

/// Hands on the bytes, in order, in pieces of at most 1 MiB that are only valid during the call. An error
/// from `take` ends the writing and is passed on.
[[nodiscard]] ETSTREAM_EXPORT std::unique_ptr<Sink> open_callback_sink(
    std::function<Result<void>(std::span<const std::byte>)> take);

}  // namespace etstream
