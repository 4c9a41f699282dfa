// SPDX-License-Identifier: BSD-3-Clause
//
// A package of ExecuTorch's native backend (.ptn): a graph, and the constants that it asks for, in a zip
// archive. Described to be written:
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
#include "etstream/checkpoint.h"
#include "etstream/export.h"
#include "etstream/file_plan.h"
#include "etstream/result.h"

namespace etstream {

/// As a zip archive tells time: from 1980 to 2107, in steps of 2 seconds, of no time zone.
struct ArchiveTime {
  int year = 1980;
  int month = 1;  // from 1 on
  int day = 1;    // from 1 on
  int hour = 0;
  int minute = 0;
  int second = 0;
};

/// What archives are stamped with by default: SOURCE_DATE_EPOCH of the environment, in UTC, or else the local
/// time. Not to be called while another thread changes the environment. Error: kInvalidArgument for a
/// SOURCE_DATE_EPOCH that is no number of seconds.
[[nodiscard]] ETSTREAM_EXPORT Result<ArchiveTime> current_archive_time();

struct NativePackage {
  /// A flatbuffer with the identifier NPTG, which says what constants it asks for, and which it changes.
  ByteSource graph;
  /// At least those that the graph asks for, contiguous, in any order.
  std::vector<CheckpointTensor> constants;
  /// Names of constants that are state beside those that the graph changes: each has bytes of its own.
  std::vector<std::string> mutable_keys;
  /// Of members and constants in the file, a power of two up to 2^15. With 1 they lie as ExecuTorch writes
  /// them. With more, each member and the first constant begin at a multiple of it, and so do all constants
  /// whose size is one: those come first. Others begin at a multiple of the type that they consist of.
  std::uint32_t alignment = 1;
  /// What the graph and the aliases are stamped with; the constants have 1980-01-01 as in ExecuTorch's files.
  ArchiveTime modified;
};

/// What a graph says of the data that is shipped beside it.
struct NativeGraph {
  std::set<std::string> data_keys;     // of constants, and of the scales and zero points of quantised values
  std::set<std::string> mutable_keys;  // of constants that a method changes
};

/// Checks all of a graph, and reads what it asks for. Errors: kCorrupt, naming offset, expected and found;
/// those of reading.
[[nodiscard]] ETSTREAM_EXPORT Result<NativeGraph> read_native_graph(const ByteSource& graph);

/// The plan of the file. Reads the graph, and all bytes of the constants: their checksum stands before them.
/// With an alignment of 1 and the time of its writing the bytes are those of ExecuTorch 1.5.1 (write_ptn in
/// exir/_serialize/_ptn.py), which can't write constants over 2 GiB; those are in a zip64 archive. Constants
/// of one type, shape and content are stored once, but for those that are state. Errors: kInvalidArgument for
/// a graph that is none, constants that it asks for and that are not there, a name that comes twice, state
/// that is not there or has bytes in common with another constant, an alignment or a time that is none;
/// kUnsupported for a constant of a type that safetensors or the format has none for; kTooLarge; those of
/// reading.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan(const NativePackage& package);

}  // namespace etstream
