// SPDX-License-Identifier: BSD-3-Clause
//
// A segment of a program or of a tensor data file: bytes after the flatbuffer, to which it refers.
//
//   auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   if (!program) return program.error();
//   for (const etstream::SegmentInfo& segment : program->segments().value()) std::puts(segment.use.c_str());
#pragma once

#include <cstdint>
#include <string>

namespace etstream {

/// The place and the use of a segment.
struct SegmentInfo {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  /// The use of the segment. In a program: "constants", "mutable data", "delegate XnnpackBackend" or "named
  /// data". In tensor data: see TensorDataFile::segments(). "" if nothing uses it.
  std::string use;
};

}  // namespace etstream
