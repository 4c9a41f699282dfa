// SPDX-License-Identifier: BSD-3-Clause
//
// Checksums of bytes that are written once, for records behind them in the same file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

class PassingChecksum;

/// A source, and its CRC-32.
struct ChecksummedSource {
  ByteSource source;
  std::shared_ptr<const PassingChecksum> checksum;
};

/// Returns a source of the same bytes. Its checksum is computed while they are read from the first to the
/// last. Bytes that have not passed by then are read once more when the checksum is asked for.
[[nodiscard]] ChecksummedSource with_checksum(ByteSource source);

struct ChecksumPlace {
  std::size_t offset = 0;  // of 4 bytes, little-endian
  std::shared_ptr<const PassingChecksum> checksum;
};

/// Returns a source of `bytes` with checksums at `places`, which lie in it, by offset and apart. The
/// checksums are computed when they are read.
[[nodiscard]] ByteSource with_checksums(std::vector<std::byte> bytes, std::vector<ChecksumPlace> places);

}  // namespace etstream
