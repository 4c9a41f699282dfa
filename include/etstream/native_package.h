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
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint_tensor.h"
#include "etstream/export.h"
#include "etstream/file_plan.h"
#include "etstream/result.h"

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

}  // namespace etstream
