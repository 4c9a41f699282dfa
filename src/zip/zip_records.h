// SPDX-License-Identifier: BSD-3-Clause
//
// The records of a zip archive (PKWARE's APPNOTE 6.3), little-endian: a local header before each member's
// data, and behind all of them the directory, which has a header for each member too, and the end records.
#pragma once

#include <cstdint>
#include <string>

namespace etstream {
namespace zip {

inline constexpr std::uint32_t kLocalSignature = 0x04034b50;
inline constexpr std::uint32_t kCentralSignature = 0x02014b50;
inline constexpr std::uint32_t kEndSignature = 0x06054b50;
inline constexpr std::uint32_t kEnd64Signature = 0x06064b50;
inline constexpr std::uint32_t kLocator64Signature = 0x07064b50;

inline constexpr std::uint64_t kLocalSize = 30;
inline constexpr std::uint64_t kCentralSize = 46;
inline constexpr std::uint64_t kEndSize = 22;
inline constexpr std::uint64_t kEnd64Size = 56;
inline constexpr std::uint64_t kLocator64Size = 20;

inline constexpr std::uint16_t kStored = 0;               // as the method
inline constexpr std::uint16_t kHasDescriptor = 1U << 3;  // the local header has no checksum and no sizes
/// Encrypted, strongly encrypted, with an encrypted directory.
inline constexpr std::uint16_t kEncrypted = 1U | 1U << 6 | 1U << 13;

/// The extra field with the 64 bits of numbers that are all ones in a header.
inline constexpr std::uint16_t kZip64Field = 1;
/// That of Android's zipalign: the alignment in 2 bytes, then zeros.
inline constexpr std::uint16_t kAlignmentField = 0xd935;

/// 1980-01-01, the first day that a header can tell.
inline constexpr std::uint16_t kFirstDay = 1 << 5 | 1;

}  // namespace zip

/// A member that is stored as it is.
struct ZipMember {
  std::string name;
  std::uint64_t size = 0;
  std::uint32_t crc32 = 0;
  std::uint16_t day = zip::kFirstDay;  // as MS-DOS has it: years since 1980 in 7 bits, month in 4, day in 5
  std::uint16_t time = 0;              // hours in 5 bits, minutes in 6, seconds halved in 5
  std::uint64_t header = 0;            // where its local header is in the file
  std::uint64_t offset = 0;            // where its data begins
};

}  // namespace etstream
