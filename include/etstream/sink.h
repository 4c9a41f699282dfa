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
//
// WriterVersion: the releases whose output a file reproduces. The same content has different bytes in each:
// ExecuTorch moved from flatc to FlatBuffers' Python builder, which then changed how it shares vtables.
// Readers see no difference.
//
//   etstream::BundledProgramOptions options;
//   options.writer.release = etstream::executorch_release("1.3.1").value();
//   options.writer.vtables = etstream::vtable_sharing("25.2.10").value();
//
// FilePlan: a plan of a file, byte for byte. It contains the bytes of the metadata; for payloads, it knows
// where they go and where they come from. Planning is a pure function from a description to a FilePlan.
//
//   const auto plan = etstream::plan_copy(etstream::ByteSource::file("model.pte").value(), "program");
//   for (const etstream::Extent& extent : plan.extents) std::puts(plan.label(extent).c_str());
//   std::printf("%.1f MiB\n", static_cast<double>(plan.size) / (1 << 20));
//
// A limit on how much of the disk writing takes. Names in a file may share their bytes, and an output that
// has them once for each name may be any number of times larger than the file.
//
//   const auto weights = etstream::open_checkpoint("model.ptd");
//   if (!weights) return weights.error();
//   const auto plan = etstream::plan_safetensors(*weights);
//   if (!plan) return plan.error();
//   const etstream::FilePlan* const plans[] = {&*plan};
//   const auto small_enough = etstream::check_disk(plans);
//   if (!small_enough) return small_enough.error();
//
// OutputPlaces: the places of a command's outputs, so that no two of them become one file.
//
//   etstream::OutputPlaces places;
//   if (const auto added = places.add("model.pte"); !added) return added.error();
//   if (const auto added = places.add("./model.pte"); !added) return added.error();  // an error
//
// The write step: writes a plan to a sink, front to back.
//
//   const auto plan = etstream::plan_copy(etstream::ByteSource::file("model.pte").value(), "program");
//   std::vector<std::byte> bytes;
//   const auto sink = etstream::open_memory_sink(bytes);
//   const auto written = etstream::write(plan, *sink);
//   if (!written) return written.error();
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "etstream/byte_source.h"
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
  /// called once. Fails if an input of InputRecord::current() (byte_source.h) has changed.
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

/// The releases of ExecuTorch whose output can be reproduced. Patch releases write the same bytes.
enum class ExecutorchRelease : std::uint8_t { k1_0, k1_1, k1_2, k1_3, k1_4, k1_5 };
/// The last of these.
inline constexpr ExecutorchRelease kLatestRelease = ExecutorchRelease::k1_5;

/// The tables with the same field offsets that share a vtable in the output of FlatBuffers' Python builder.
/// flatc always requires equal table sizes as well.
enum class VtableSharing : std::uint8_t {
  kOfEqualSize,  // only tables of equal size: from flatbuffers 25.12.19 on
  kOfAnySize,    // all, so that a vtable may give another size than the table has: all earlier versions
};

/// All of a writer's version that its bytes depend on.
struct WriterVersion {
  ExecutorchRelease release = kLatestRelease;
  VtableSharing vtables = VtableSharing::kOfEqualSize;

  bool operator==(const WriterVersion&) const = default;
};

/// Returns the release that a version such as "1.3", "1.3.1" or "1.5.0rc1" belongs to. Error:
/// kInvalidArgument for anything but a version from 1.0 to 1.5.
[[nodiscard]] ETSTREAM_EXPORT Result<ExecutorchRelease> executorch_release(std::string_view version);
/// Returns the release's number: "1.3"
[[nodiscard]] ETSTREAM_EXPORT std::string name_of(ExecutorchRelease release);

/// Returns how this version of the Python package flatbuffers, such as "25.2.10", shares vtables. Error:
/// kInvalidArgument for anything but a version.
[[nodiscard]] ETSTREAM_EXPORT Result<VtableSharing> vtable_sharing(std::string_view flatbuffers_version);

/// A contiguous part of the file that comes from one source.
struct Extent {
  std::uint64_t offset = 0;     // from the start of the file, in bytes
  std::uint32_t alignment = 1;  // of `offset`, as the format requires; a power of two
  std::uint32_t label = 0;      // an index in FilePlan::labels
  ByteSource source;

  /// Returns the size in bytes.
  [[nodiscard]] std::uint64_t size() const noexcept { return source.size(); }
};

/// The end of a file that is known only after the bytes before it are written: a directory of their hashes.
struct Trailer {
  /// A range of the file to be hashed, in bytes.
  struct Range {
    std::uint64_t offset = 0;  // in the file
    std::uint64_t size = 0;
  };
  std::vector<Range> hashed;  // by offset; they may be nested, and end before the trailer
  /// Returns the bytes of the last extent, as many as its size, given the hash of each range.
  std::function<std::vector<std::byte>(std::span<const ContentHash>)> bytes;
};

/// Extents in file order, without gaps or overlaps: padding is in extents too. A value; const use from
/// several threads is safe.
struct FilePlan {
  std::deque<Extent> extents;
  std::optional<Trailer> trailer;   // replaces the last extent's bytes when they are written
  std::vector<std::string> labels;  // what extents hold: "metadata", or the field that holds the payload
  std::uint64_t size = 0;           // of the file, in bytes
  std::uint64_t metadata_size = 0;  // the bytes that the plan itself holds in memory
  std::uint64_t payload_size = 0;   // the bytes that are read only when they are written

  /// Returns the label of `extent`, one of this plan's.
  [[nodiscard]] const std::string& label(const Extent& extent) const { return labels[extent.label]; }

  /// Returns the memory that writing uses, in bytes: the plan itself and the transfer buffer.
  [[nodiscard]] ETSTREAM_EXPORT std::uint64_t memory() const noexcept;
};

/// Returns the same for several plans that are written one after the other.
[[nodiscard]] ETSTREAM_EXPORT std::uint64_t memory_to_write(std::span<const FilePlan* const> plans) noexcept;

/// Returns the file that writing `plan` gives, to read it before or instead of writing it. Errors:
/// kUnsupported for a plan with a trailer, whose bytes are known only after writing; kTooLarge over 2^64 - 1
/// bytes.
[[nodiscard]] ETSTREAM_EXPORT Result<ByteSource> source_of(const FilePlan& plan);

/// Plans a copy of `source`.
[[nodiscard]] ETSTREAM_EXPORT FilePlan plan_copy(ByteSource source, std::string label);

/// Checks that the files of `plans` take no more of the disk together than they may: `max_disk` bytes or,
/// without it, 1 MiB more than 4 times the size of their sources. Counts each file and each piece of memory
/// among the sources once, and no zeros. Reads nothing. Error: kTooLarge, with the size of the files.
[[nodiscard]] ETSTREAM_EXPORT Result<void> check_disk(std::span<const FilePlan* const> plans,
                                                      std::optional<std::uint64_t> max_disk = {});

/// Compares what the outputs will be, whether or not anything is there yet: a path by the identity of its
/// folder and the name in it, with links followed; a file that is written in place by its own identity. Names
/// that differ in ASCII's capital letters alone count as one on any file system, as some ignore the case. Not
/// for several threads at once.
class ETSTREAM_EXPORT OutputPlaces {
 public:
  /// Adds an output that will replace what is at `path`, which may name an open descriptor (/dev/stdout).
  /// Errors: kInvalidArgument where an earlier output goes there; kIo for a loop of links.
  [[nodiscard]] Result<void> add(const std::string& path);
  /// Adds an output that is written in place, to the file `file`. `name` stands for it in messages. Error:
  /// kInvalidArgument where an earlier output is that file.
  [[nodiscard]] Result<void> add(const FileIdentity& file, const std::string& name);

 private:
  using FileKey = std::pair<std::uint64_t, std::uint64_t>;  // device and inode

  /// The name and the path of each, by its folder and the name in small letters.
  std::map<std::pair<FileKey, std::string>, std::pair<std::string, std::string>> names_;
  std::map<FileKey, std::string> replaced_;  // files that are at these names now
  std::map<FileKey, std::string> in_place_;
};

/// A function that is called with the number of bytes written to a file so far and its total size, at least
/// every 16 MiB, in the thread that writes. It returns whether to go on: false ends the writing with
/// kInterrupted.
using Progress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

/// Checks that no source of `plan` lies in `file`, which is written in place. Error: kInvalidArgument if one
/// does.
[[nodiscard]] ETSTREAM_EXPORT Result<void> check_apart(const FilePlan& plan, const FileIdentity& file);

/// Writes `plan` to `sink` and commits it. Errors: those of the sink and the sources; kInterrupted;
/// kInvalidArgument as in check_apart(), before the first byte. After an error nothing is committed, and
/// destroying the sink leaves its destination as it was.
[[nodiscard]] ETSTREAM_EXPORT Result<void> write(const FilePlan& plan, Sink& sink,
                                                 const Progress& progress = {});

/// Does the same as write() without the commit, for several files that should appear together.
[[nodiscard]] ETSTREAM_EXPORT Result<void> write_uncommitted(const FilePlan& plan, Sink& sink,
                                                             const Progress& progress = {});

}  // namespace etstream
