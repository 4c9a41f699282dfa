// SPDX-License-Identifier: BSD-3-Clause
//
// The members of a zip archive, read from its directory where it lies. Only archives are taken whose members
// are stored as they are, so that each is a range of the file.
#pragma once

#include <cstdint>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "zip/zip_records.h"

namespace etstream {

struct ZipArchive {
  std::vector<ZipMember> members;  // in the order of the directory; no two of one name, none on another
  std::uint64_t directory = 0;     // where it begins; the archive's data lies before it
};

/// Reads the directory and each member's local header. Memory: the directory, at most 16 MiB. Errors:
/// kCorrupt, naming file, offset, expected and found, also for headers that contradict the directory, names
/// that come twice and members that overlap; kUnsupported for a member that is compressed or encrypted, and
/// for an archive of several disks; kTooLarge over 65,536 members; kIo.
[[nodiscard]] Result<ZipArchive> read_zip(const ByteSource& file);

}  // namespace etstream
