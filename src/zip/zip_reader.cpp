// SPDX-License-Identifier: BSD-3-Clause
#include "zip/zip.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "base/checked.h"
#include "base/repeated.h"
#include "base/text.h"
#include "base/try.h"

namespace etstream {
namespace {

constexpr std::uint64_t kLargestDirectory = std::uint64_t{16} << 20;
constexpr std::uint32_t kIn64Bits32 = 0xffffffff;

/// Bytes of the file, and where they begin in it.
struct Record {
  std::uint64_t position = 0;
  std::span<const std::byte> bytes;

  template <class Integer>
  [[nodiscard]] Integer at(std::uint64_t offset) const {
    Integer out{};
    std::memcpy(&out, bytes.data() + offset, sizeof(out));
    return out;
  }
  /// A part of it; the range lies in it.
  [[nodiscard]] Record part(std::uint64_t offset, std::uint64_t size) const {
    return {position + offset,
            bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size))};
  }
};

struct CentralDirectory {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t members = 0;
  std::uint64_t end = 0;  // where the records behind it begin
};

class ZipReader {
 public:
  explicit ZipReader(const ByteSource& file) : file_(file) {}

  Result<ZipArchive> run() {
    ETSTREAM_ASSIGN(const CentralDirectory found, find_directory());
    ZipArchive out;
    out.directory = found.offset;
    std::vector<std::byte> bytes(static_cast<std::size_t>(found.size));
    ETSTREAM_TRY(file_.read_at(found.offset, bytes));
    Record rest{found.offset, bytes};
    out.members.reserve(static_cast<std::size_t>(found.members));
    for (std::uint64_t i = 0; i < found.members; ++i) {
      ETSTREAM_ASSIGN(ZipMember member, read_member(rest));
      ETSTREAM_TRY(read_local_header(member, found.offset));
      out.members.push_back(std::move(member));
    }
    if (!rest.bytes.empty()) {
      return corrupt(rest.position, "the end of the directory, found {}", counted(rest.bytes.size(), "byte"));
    }
    if (const auto repeated = first_repeated(out.members, &ZipMember::name)) {
      return error_in(ErrorCode::kCorrupt, file_.name(), "expected each member once, found {} twice",
                      quote(*repeated));
    }
    ETSTREAM_TRY(check_places(out.members));
    return out;
  }

 private:
  template <class... Arguments>
  Error corrupt(std::uint64_t position, Template<Arguments...> words, const Arguments&... arguments) const {
    return unexpected(ErrorCode::kCorrupt, {file_.name(), position}, words, arguments...);
  }
  Error unsupported(std::uint64_t position, std::string_view expected_and_found) const {
    return unexpected(ErrorCode::kUnsupported, {file_.name(), position}, "{}", expected_and_found);
  }

  /// Finds the end record, which lies before a comment at the end of the file.
  Result<CentralDirectory> find_directory() {
    constexpr std::uint64_t kLongestComment = 0xffff;
    const std::uint64_t size = std::min(file_.size(), zip::kEndSize + kLongestComment);
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    ETSTREAM_TRY(file_.read_at(file_.size() - size, bytes));
    const Record tail{file_.size() - size, bytes};
    for (std::uint64_t behind = zip::kEndSize; behind <= size; ++behind) {
      const Record end = tail.part(size - behind, behind);
      constexpr std::uint64_t kCommentSize = 20;
      if (end.at<std::uint32_t>(0) == zip::kEndSignature &&
          end.at<std::uint16_t>(kCommentSize) == behind - zip::kEndSize) {
        return read_end(end);
      }
    }
    return corrupt(file_.size(), "the end record of a zip archive before the file's end, found none");
  }

  Result<CentralDirectory> read_end(const Record& end) {
    if (end.at<std::uint16_t>(4) != 0 || end.at<std::uint16_t>(6) != 0) {
      return unsupported(end.position + 4, "an archive of one file, found one of several disks");
    }
    CentralDirectory out{end.at<std::uint32_t>(16), end.at<std::uint32_t>(12), end.at<std::uint16_t>(10),
                         end.position};
    ETSTREAM_TRY(read_end64(end.position, out.offset == kIn64Bits32 || out.size == kIn64Bits32, out));
    if (out.members > zip::kMostMembers || out.size > kLargestDirectory) {
      return unexpected(ErrorCode::kTooLarge, {file_.name(), end.position},
                        "at most {} members in a directory of {} bytes, found {} in {}", zip::kMostMembers,
                        kLargestDirectory, out.members, out.size);
    }
    if (!range_fits(out.offset, out.size, out.end) || out.offset + out.size != out.end ||
        out.members > out.size / zip::kCentralSize) {
      return corrupt(end.position, "a directory of {} that ends at {}, found {} bytes from {} on",
                     counted(out.members, "member"), out.end, out.size, out.offset);
    }
    return out;
  }

  /// Reads the 64-bit end records, if they lie before the end record at `end`, in place of its numbers.
  Result<void> read_end64(std::uint64_t end, bool required, CentralDirectory& out) {
    std::array<std::byte, zip::kLocator64Size> locator_bytes{};
    const Record locator{end - std::min(end, zip::kLocator64Size), locator_bytes};
    if (end >= zip::kLocator64Size) ETSTREAM_TRY(file_.read_at(locator.position, locator_bytes));
    if (locator.at<std::uint32_t>(0) != zip::kLocator64Signature) {
      if (!required) return {};
      return corrupt(locator.position, "the locator of the 64-bit end record, found none");
    }
    const auto position = locator.at<std::uint64_t>(8);
    std::array<std::byte, zip::kEnd64Size> bytes{};
    if (!range_fits(position, bytes.size(), locator.position)) {
      return corrupt(locator.position + 8, "the place of a record of {} bytes before it, found {}",
                     bytes.size(), position);
    }
    ETSTREAM_TRY(file_.read_at(position, bytes));
    const Record record{position, bytes};
    if (record.at<std::uint32_t>(0) != zip::kEnd64Signature) {
      return corrupt(position, "the 64-bit end record, found another");
    }
    if (record.at<std::uint32_t>(16) != 0 || record.at<std::uint32_t>(20) != 0 ||
        locator.at<std::uint32_t>(4) != 0) {
      return unsupported(position + 16, "an archive of one file, found one of several disks");
    }
    out = {record.at<std::uint64_t>(48), record.at<std::uint64_t>(40), record.at<std::uint64_t>(32),
           position};
    return {};
  }

  /// Takes the next header off `rest`, which is what is left of the directory.
  Result<ZipMember> read_member(Record& rest) {
    if (rest.bytes.size() < zip::kCentralSize || rest.at<std::uint32_t>(0) != zip::kCentralSignature) {
      return corrupt(rest.position, "a member's header in the directory, found none");
    }
    const auto name_size = rest.at<std::uint16_t>(28);
    const auto extra_size = rest.at<std::uint16_t>(30);
    const std::uint64_t size = zip::kCentralSize + name_size + extra_size + rest.at<std::uint16_t>(32);
    if (size > rest.bytes.size()) {
      return corrupt(rest.position, "a header inside the directory's {} bytes that are left, found one of {}",
                     rest.bytes.size(), size);
    }
    const Record header = rest.part(0, size);
    rest = rest.part(size, rest.bytes.size() - size);
    ZipMember member;
    const Record name = header.part(zip::kCentralSize, name_size);
    member.name.assign(reinterpret_cast<const char*>(name.bytes.data()), name.bytes.size());
    ETSTREAM_TRY(check_stored(header.position + 8, header.at<std::uint16_t>(8), header.at<std::uint16_t>(10),
                              member.name));
    member.time = header.at<std::uint16_t>(12);
    member.day = header.at<std::uint16_t>(14);
    member.crc32 = header.at<std::uint32_t>(16);
    std::uint64_t stored = header.at<std::uint32_t>(20);
    member.size = header.at<std::uint32_t>(24);
    member.header = header.at<std::uint32_t>(42);
    ETSTREAM_TRY(read_extra(header.part(zip::kCentralSize + name_size, extra_size),
                            {&member.size, &stored, &member.header}));
    const auto disk = header.at<std::uint16_t>(34);
    if (disk != 0) return unsupported(header.position + 34, text("disk 0, found {}", disk));
    if (stored != member.size) {
      return corrupt(header.position + 20, "{} stored in as many bytes, found {}",
                     counted(member.size, "byte"), stored);
    }
    return member;
  }

  /// `position` is where the flags are, with the method behind them.
  Result<void> check_stored(std::uint64_t position, std::uint16_t flags, std::uint16_t method,
                            std::string_view name) const {
    if ((flags & zip::kEncrypted) != 0) {
      return unsupported(position, text("a member that is not encrypted, found {}", quote(name)));
    }
    if (method == zip::kStored) return {};
    return unsupported(
        position + 2,
        text("a member that is stored as it is, found {} compressed by method {}", quote(name), method));
  }

  /// Sets those of the numbers that are all ones from the field for 64 bits, which has them in this order.
  Result<void> read_extra(Record extra, std::initializer_list<std::uint64_t*> numbers) const {
    constexpr std::uint64_t kHeader = 4;
    while (!extra.bytes.empty()) {
      const std::uint64_t size = extra.bytes.size() < kHeader ? kIn64Bits32 : extra.at<std::uint16_t>(2);
      if (!range_fits(kHeader, size, extra.bytes.size())) {
        return corrupt(extra.position, "an extra field inside {}, found one that goes on",
                       counted(extra.bytes.size(), "byte"));
      }
      const Record field = extra.part(kHeader, size);
      if (extra.at<std::uint16_t>(0) == zip::kZip64Field) return read_zip64(field, numbers);
      extra = extra.part(kHeader + size, extra.bytes.size() - kHeader - size);
    }
    return read_zip64({extra.position, {}}, numbers);
  }

  Result<void> read_zip64(Record field, std::initializer_list<std::uint64_t*> numbers) const {
    for (std::uint64_t* const number : numbers) {
      if (*number != kIn64Bits32) continue;
      if (field.bytes.size() < sizeof(*number)) {
        return corrupt(field.position, "a number of 64 bits in an extra field, found none");
      }
      *number = field.at<std::uint64_t>(0);
      field = field.part(sizeof(*number), field.bytes.size() - sizeof(*number));
    }
    return {};
  }

  /// Finds where the data begins, which is before the directory.
  Result<void> read_local_header(ZipMember& member, std::uint64_t directory) const {
    std::array<std::byte, zip::kLocalSize> bytes{};
    const auto outside = [&] {
      return corrupt(member.header, "member {} of {} before the directory at {}, found it goes on",
                     quote(member.name), counted(member.size, "byte"), directory);
    };
    if (!range_fits(member.header, bytes.size(), directory)) return outside();
    ETSTREAM_TRY(file_.read_at(member.header, bytes));
    const Record header{member.header, bytes};
    if (header.at<std::uint32_t>(0) != zip::kLocalSignature) {
      return corrupt(member.header, "the header of member {}, found another", quote(member.name));
    }
    const auto name_size = header.at<std::uint16_t>(26);
    const auto extra_size = header.at<std::uint16_t>(28);
    member.offset = member.header + bytes.size() + name_size + extra_size;
    if (!range_fits(member.offset, member.size, directory)) return outside();
    const auto flags = header.at<std::uint16_t>(6);
    ETSTREAM_TRY(check_stored(member.header + 6, flags, header.at<std::uint16_t>(8), member.name));
    std::vector<std::byte> rest(std::size_t{name_size} + extra_size);
    ETSTREAM_TRY(file_.read_at(member.header + bytes.size(), rest));
    const Record behind{member.header + bytes.size(), rest};
    if (std::string_view(reinterpret_cast<const char*>(rest.data()), name_size) != member.name) {
      return corrupt(behind.position, "the name {} as in the directory, found another", quote(member.name));
    }
    std::uint64_t stored = header.at<std::uint32_t>(18);
    std::uint64_t size = header.at<std::uint32_t>(22);
    ETSTREAM_TRY(read_extra(behind.part(name_size, extra_size), {&size, &stored}));
    const bool says_it = (flags & zip::kHasDescriptor) == 0;
    const auto crc32 = header.at<std::uint32_t>(14);
    if (says_it && (stored != member.size || size != member.size || crc32 != member.crc32)) {
      return corrupt(member.header + 14, "checksum {} and {} as in the directory, found checksum {} and {}",
                     member.crc32, counted(member.size, "byte"), crc32, counted(size, "byte"));
    }
    return {};
  }

  Result<void> check_places(const std::vector<ZipMember>& members) const {
    std::vector<const ZipMember*> by_place;
    by_place.reserve(members.size());
    for (const ZipMember& member : members) by_place.push_back(&member);
    std::ranges::sort(by_place, {}, &ZipMember::header);
    for (std::size_t i = 1; i < by_place.size(); ++i) {
      const std::uint64_t end = by_place[i - 1]->offset + by_place[i - 1]->size;
      if (by_place[i]->header >= end) continue;
      return corrupt(by_place[i]->header,
                     "member {} behind the one before it, which ends at {}, found it in that",
                     quote(by_place[i]->name), end);
    }
    return {};
  }

  const ByteSource& file_;
};

}  // namespace

Result<ZipArchive> read_zip(const ByteSource& file) { return ZipReader(file).run(); }

}  // namespace etstream
