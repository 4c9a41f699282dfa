// SPDX-License-Identifier: BSD-3-Clause
//
// Zip archives whose members are stored as they are, so that each is a range of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream {

/// The checksum of bytes that are written once, for records behind them in the same file.
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

/// The records of an archive (PKWARE's APPNOTE 6.3), little-endian: a local header before each member's data,
/// and behind all of them the directory, which has a header for each member too, and the end records.
namespace zip {

inline constexpr std::uint32_t kLocalSignature = 0x04034b50;
inline constexpr std::uint32_t kCentralSignature = 0x02014b50;
inline constexpr std::uint32_t kDescriptorSignature = 0x08074b50;  // behind the data of a member
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
/// Flags: encrypted, strongly encrypted, with an encrypted directory.
inline constexpr std::uint16_t kEncrypted = 1U | 1U << 6 | 1U << 13;

/// Flag: the data is a patch for an older file.
inline constexpr std::uint16_t kPatch = 1U << 5;
/// The external attribute of folders, from MS-DOS.
inline constexpr std::uint32_t kFolderAttribute = 1U << 4;

/// The extra field with the 64-bit values of numbers that are all ones in a header.
inline constexpr std::uint16_t kZip64Field = 1;
/// The extra field with a name in Unicode, which some readers use in place of the other.
inline constexpr std::uint16_t kUnicodeNameField = 0x7075;
/// The extra field of Android's zipalign: the alignment in 2 bytes, then zeros.
inline constexpr std::uint16_t kAlignmentField = 0xd935;

/// The most members of an archive.
inline constexpr std::uint64_t kMostMembers = 65536;

/// The date 1980-01-01, the earliest that a header can hold.
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
  /// True if the local header has another time or a later version than the directory, over which libzip
  /// refuses an archive, if it is asked to check it.
  bool header_differs = false;
  std::uint64_t offset = 0;  // where its data begins
};

struct ZipArchive {
  std::vector<ZipMember> members;  // in the order of the directory; no two of one name, none on another
  std::uint64_t directory = 0;     // where it begins; the archive's data lies before it
};

/// Reads the directory and each member's local header. Refuses an archive that readers could read in
/// different ways, with other members, or other bytes of one. Memory: the directory, at most 16 MiB. Time:
/// linear in it, and in the headers. Errors: kCorrupt, naming file, offset, expected and found, also for a
/// second end record, headers that contradict the directory, names that hold a zero byte or come twice, if
/// only in capitals and small letters, folders with data, members that overlap, and bytes that are of no
/// record and no member; kUnsupported for a member that is compressed or encrypted, is a patch, needs a later
/// version or has a second name, and for an archive of several disks; kTooLarge over 65,536 members; kIo.
[[nodiscard]] Result<ZipArchive> read_zip(const ByteSource& file);

/// Reads a source in pieces. Errors: those of reading.
[[nodiscard]] Result<std::uint32_t> crc32_of(const ByteSource& source);

/// Reads the data of a member of `file`, in pieces. Returns a kCorrupt error, naming file, offset, member,
/// expected and found, if its checksum differs from that in `member`; nothing otherwise. Errors: those of
/// reading.
[[nodiscard]] Result<std::optional<Error>> find_damage(const ByteSource& file, const ZipMember& member);

/// Appends stored members to a plan, byte for byte as Python's zipfile writes them to a file, or to a stream.
///
///   ZipWriter writer(plan, 1);
///   ETSTREAM_TRY(writer.begin({.name = "a", .size = data.size(), .crc32 = crc}, true));
///   ETSTREAM_TRY(append(plan, 1, "a", data));
///   ETSTREAM_TRY(writer.finish());
class ZipWriter {
 public:
  /// Members' data begins at multiples of `alignment` of the file, a power of two up to 2^15. The archive
  /// begins the plan, which outlives the writer.
  ZipWriter(FilePlan& plan, std::uint32_t alignment) : plan_(plan), alignment_(alignment) {}

  /// Appends the header of a member, whose data the caller appends next. Its places are set here. `whole`
  /// says that zipfile would be given the data in one piece, which decides the header of one of about 2 GiB.
  [[nodiscard]] Result<void> begin(ZipMember member, bool whole);
  /// Appends a member whose checksum is computed as its data is written, and stands behind it.
  [[nodiscard]] Result<void> append_streamed(std::string name, ByteSource data, std::string_view label);
  /// Appends the directory.
  [[nodiscard]] Result<void> finish();
  /// Returns the bytes of headers and directory so far.
  [[nodiscard]] std::uint64_t metadata_size() const noexcept { return metadata_size_; }

 private:
  struct Written {
    ZipMember member;
    std::uint16_t version = 0;                        // that a reader needs
    std::shared_ptr<const PassingChecksum> checksum;  // in the place of the member's; null for none
  };

  Result<void> append_record(ByteSource bytes, const char* label);
  Result<void> append_header(ZipMember& member, std::uint16_t version, std::uint16_t flags,
                             std::vector<std::byte> extra);

  FilePlan& plan_;
  const std::uint32_t alignment_;
  std::vector<Written> members_;
  std::uint64_t metadata_size_ = 0;
};

}  // namespace etstream
