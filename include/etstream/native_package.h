// SPDX-License-Identifier: BSD-3-Clause
//
// A package of ExecuTorch's native backend (.ptn): a graph and the constants that it requires, in a zip
// archive. To describe one for writing:
//
//   auto weights = etstream::open_checkpoint("model.safetensors");
//   if (!weights) return weights.error();
//   etstream::NativePackage package;
//   package.graph = etstream::ByteSource::file("program.ptg").value();
//   package.constants = std::move(weights->tensors);
//   const auto plan = etstream::plan(package);
//
// Reads a package of ExecuTorch's native backend (.ptn) in place.
//
//   const auto package = etstream::NativePackageFile::open(etstream::ByteSource::file("model.ptn").value());
//   if (!package) return package.error();
//   for (const etstream::CheckpointTensor& constant : package->constants()) std::puts(constant.name.c_str());
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/sink.h"
#include "etstream/tensor.h"

namespace etstream {

/// A zip archive's time stamp: from 1980 to 2107, in steps of 2 seconds, without a time zone.
struct ArchiveTime {
  int year = 1980;
  int month = 1;  // from 1
  int day = 1;    // from 1
  int hour = 0;
  int minute = 0;
  int second = 0;
};

/// Returns the time stamp that a package gets by default: in UTC the time that the environment variable
/// SOURCE_DATE_EPOCH gives, whose value the caller reads; the local time if that is null. Error:
/// kInvalidArgument if it is not a number of seconds.
[[nodiscard]] ETSTREAM_EXPORT Result<ArchiveTime> current_archive_time(const char* source_date_epoch);

/// A description of a package, for planning.
struct NativePackage {
  /// A flatbuffer with the identifier NPTG, which lists the constants that it requires and those that it
  /// changes.
  ByteSource graph;
  /// The constants: at least those that the graph requires, contiguous, in any order.
  std::vector<CheckpointTensor> constants;
  /// Names of constants that are state, besides those that the graph changes. Each is stored with bytes of
  /// its own.
  std::vector<std::string> mutable_keys;
  /// The alignment of members and constants in the file, a power of two up to 2^15. With 1, they lie as
  /// ExecuTorch writes them. With more, each member and the first constant begin at a multiple of it, and so
  /// does each constant whose size is a multiple of it: these come first. Others begin at a multiple of the
  /// size of their elements.
  std::uint32_t alignment = 1;
  /// The time stamp of the graph and the aliases; that of the constants is 1980-01-01, as in ExecuTorch's
  /// files.
  ArchiveTime modified;
};

/// The data that a graph requires to be shipped with it.
struct NativeGraph {
  std::set<std::string> data_keys;     // of constants, and of the scales and zero points of quantised values
  std::set<std::string> mutable_keys;  // of constants that a method changes
};

/// Checks all of a graph, and reads what data it requires. Errors: kCorrupt, naming offset, expected and
/// found; read errors.
[[nodiscard]] ETSTREAM_EXPORT Result<NativeGraph> read_native_graph(const ByteSource& graph);

/// Plans the file. Reads the graph and all bytes of the constants, whose checksum precedes them. With an
/// alignment of 1 and the same time stamp, the bytes are those of ExecuTorch 1.5.1 (write_ptn in
/// exir/_serialize/_ptn.py), which can't write constants over 2 GiB; here, these are in a zip64 archive.
/// Constants with the same type, shape and content are stored once, unless they are state. Errors:
/// kInvalidArgument for an invalid graph, required constants that are missing, a repeated name, state that is
/// missing or has bytes in common with another constant, an invalid alignment or time; kUnsupported for a
/// constant of a type that safetensors or the format lacks; kTooLarge; read errors.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan(const NativePackage& package);

/// A member of the archive: program.ptg, program.safetensors, aliases.json; readers ignore others.
struct PackageMember {
  std::string name;
  std::uint64_t offset = 0;  // of its data in the file, in bytes
  std::uint32_t crc32 = 0;   // the expected checksum of its data
  ByteSource data;           // it is not copied
};

/// Another name for a constant.
struct ConstantAlias {
  std::string key;
  std::size_t constant = 0;  // its index in constants()
};

/// An open package. Holds the archive's directory, the header of the constants and the aliases in memory. All
/// functions may be called from several threads at once.
class ETSTREAM_EXPORT NativePackageFile {
 public:
  /// Reads and checks the directory, the header of the constants and the aliases. Errors: kCorrupt, naming
  /// file, offset, expected and found; kUnsupported for members that are compressed or encrypted; kTooLarge
  /// over 65,536 members; kIo.
  [[nodiscard]] static Result<NativePackageFile> open(ByteSource file);

  /// Returns the source that was opened.
  [[nodiscard]] const ByteSource& file() const noexcept { return file_; }
  /// Returns the members in the order of the directory.
  [[nodiscard]] const std::vector<PackageMember>& members() const noexcept { return members_; }
  /// Returns the graph, a flatbuffer with the identifier NPTG.
  [[nodiscard]] const ByteSource& graph() const noexcept { return graph_; }
  /// Returns the constants in the order of their bytes. No two share bytes.
  [[nodiscard]] const std::vector<CheckpointTensor>& constants() const noexcept { return constants_; }
  /// Returns the aliases, sorted by key.
  [[nodiscard]] const std::vector<ConstantAlias>& aliases() const noexcept { return aliases_; }
  /// Returns all tensors that a graph may ask for: the constants, then the aliases with the bytes of their
  /// constants.
  [[nodiscard]] std::vector<CheckpointTensor> tensors() const;

  /// Checks what open() does not: each member's checksum, for which all bytes are read; the graph; that the
  /// constants that it requires exist, and that those it changes share no bytes with others; and what
  /// ExecuTorch's runtime would reject. Adds the problems to `findings`. Error: kIo.
  [[nodiscard]] Result<void> verify(Findings& findings) const;

 private:
  NativePackageFile(ByteSource file, std::vector<PackageMember> members)
      : file_(std::move(file)), members_(std::move(members)) {}

  [[nodiscard]] const PackageMember* find(std::string_view name) const noexcept;
  Result<void> open_constants();
  Result<void> open_aliases();
  Result<void> verify_checksums(Findings& findings) const;
  Result<void> verify_graph(Findings& findings) const;
  void verify_types(Findings& findings) const;

  ByteSource file_;
  std::vector<PackageMember> members_;
  ByteSource graph_;
  std::vector<CheckpointTensor> constants_;
  std::vector<ConstantAlias> aliases_;
  bool has_metadata_ = false;  // __metadata__, in the header of the constants
};

}  // namespace etstream
