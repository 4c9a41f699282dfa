// SPDX-License-Identifier: BSD-3-Clause
#include "formats/zip/zip.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/checked.h"
#include "core/base/hashes.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/derived_storage.h"
#include "core/io/read_pieces.h"
#include "core/layout/file_plan.h"

namespace etstream {

/// The CRC-32 of a source whose bytes have passed up to some place. May be used by several threads.
class PassingChecksum {
 public:
  explicit PassingChecksum(ByteSource source) : source_(std::move(source)) {}

  [[nodiscard]] const ByteSource& source() const noexcept { return source_; }

  /// Takes the bytes from `offset` on, if those before them have passed.
  void pass(std::uint64_t offset, std::span<const std::byte> bytes) const {
    const std::scoped_lock lock(mutex_);
    if (offset != passed_) return;
    take(bytes);
  }

  /// Returns the CRC-32. Errors: those of reading the bytes that have not passed.
  [[nodiscard]] Result<std::uint32_t> value() const {
    const std::scoped_lock lock(mutex_);
    ETSTREAM_ASSIGN(const ByteSource rest, source_.slice(passed_, source_.size() - passed_));
    ETSTREAM_TRY(read_pieces(rest, [this](std::span<const std::byte> bytes) { take(bytes); }));
    return crc32_;
  }

 private:
  void take(std::span<const std::byte> bytes) const {
    crc32_ = crc32_of(bytes, crc32_);
    passed_ += bytes.size();
  }

  const ByteSource source_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::uint32_t crc32_ = 0;
  mutable std::uint64_t passed_ = 0;
};

namespace {

constexpr std::uint64_t kLargestDirectory = std::uint64_t{16} << 20;
constexpr std::uint32_t kIn64Bits32 = 0xffffffff;
constexpr std::uint16_t kIn64Bits16 = 0xffff;

/// Bytes of the file, with their offset in it.
struct Record {
  std::uint64_t position = 0;
  std::span<const std::byte> bytes;

  template <class Integer>
  [[nodiscard]] Integer at(std::uint64_t offset) const {
    Integer out{};
    std::memcpy(&out, bytes.data() + offset, sizeof(out));
    return out;
  }
  /// Returns a part of it; the range lies in it.
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

/// A member as the directory has it.
struct ListedMember {
  ZipMember member;
  std::uint16_t version = 0;  // that a reader needs
  std::uint16_t flags = 0;
};

/// Reads an archive that can be read in only one way. If another reader could find other members or other
/// bytes, the archive is corrupt: each byte of the file belongs to one record, or to the data of one member.
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
    std::vector<ListedMember> listed;
    listed.reserve(static_cast<std::size_t>(found.members));
    for (std::uint64_t i = 0; i < found.members; ++i) {
      ETSTREAM_ASSIGN(listed.emplace_back(), read_member(rest));
    }
    if (!rest.bytes.empty()) {
      return corrupt(rest.position, "the end of the directory, found {}", counted(rest.bytes.size(), "byte"));
    }
    ETSTREAM_TRY(read_local_headers(listed, found.offset));
    out.members.reserve(listed.size());
    for (ListedMember& each : listed) out.members.push_back(std::move(each.member));
    // Some readers, as miniz in torch, look members up without regard to the case of letters.
    std::vector<std::string> names;
    names.reserve(out.members.size());
    for (const ZipMember& member : out.members) names.push_back(in_small_letters(member.name));
    if (const auto repeated = first_repeated(names)) {
      return error_in(ErrorCode::kCorrupt, file_.name(),
                      "expected each member once, in whatever letters, found {} twice", quote(*repeated));
    }
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

  /// Finds the end record: the last thing in the file that begins like one, with its comment up to the end.
  Result<CentralDirectory> find_directory() {
    constexpr std::uint64_t kLongestComment = 0xffff;
    const std::uint64_t size = std::min(file_.size(), zip::kEndSize + kLongestComment);
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    ETSTREAM_TRY(file_.read_at(file_.size() - size, bytes));
    const Record tail{file_.size() - size, bytes};
    for (std::uint64_t behind = sizeof(zip::kEndSignature); behind <= size; ++behind) {
      const Record end = tail.part(size - behind, behind);
      constexpr std::uint64_t kCommentSize = 20;
      if (end.at<std::uint32_t>(0) != zip::kEndSignature) continue;
      if (behind >= zip::kEndSize && end.at<std::uint16_t>(kCommentSize) == behind - zip::kEndSize) {
        return read_end(end);
      }
      return corrupt(end.position,
                     "the end record of a zip archive, with a comment up to the file's end, found one that "
                     "ends elsewhere");
    }
    return corrupt(file_.size(), "the end record of a zip archive before the file's end, found none");
  }

  Result<CentralDirectory> read_end(const Record& end) {
    const auto members = end.at<std::uint16_t>(10);
    if (end.at<std::uint16_t>(4) != 0 || end.at<std::uint16_t>(6) != 0 ||
        end.at<std::uint16_t>(8) != members) {
      return unsupported(end.position + 4, "an archive of one file, found one of several disks");
    }
    const CentralDirectory in_32_bits{end.at<std::uint32_t>(16), end.at<std::uint32_t>(12), members,
                                      end.position};
    ETSTREAM_ASSIGN(const CentralDirectory out, read_end64(in_32_bits));
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

  /// Reads the 64-bit end records, if they lie before the end record. `known` is what the end record says,
  /// and its numbers must be the same unless they are all ones.
  Result<CentralDirectory> read_end64(const CentralDirectory& known) {
    std::array<std::byte, zip::kLocator64Size> locator_bytes{};
    const Record locator{known.end - std::min(known.end, zip::kLocator64Size), locator_bytes};
    if (known.end >= zip::kLocator64Size) ETSTREAM_TRY(file_.read_at(locator.position, locator_bytes));
    if (locator.at<std::uint32_t>(0) != zip::kLocator64Signature) {
      if (known.offset != kIn64Bits32 && known.size != kIn64Bits32) return known;
      return corrupt(locator.position, "the locator of the 64-bit end record, found none");
    }
    const auto position = locator.at<std::uint64_t>(8);
    std::array<std::byte, zip::kEnd64Size> bytes{};
    // Some readers use the locator, and some look right before it.
    if (locator.position < bytes.size() || position != locator.position - bytes.size()) {
      return corrupt(locator.position + 8, "the place of a record of {} bytes right before it, found {}",
                     bytes.size(), position);
    }
    ETSTREAM_TRY(file_.read_at(position, bytes));
    const Record record{position, bytes};
    if (record.at<std::uint32_t>(0) != zip::kEnd64Signature) {
      return corrupt(position, "the 64-bit end record, found another");
    }
    const CentralDirectory out{record.at<std::uint64_t>(48), record.at<std::uint64_t>(40),
                               record.at<std::uint64_t>(32), position};
    if (record.at<std::uint32_t>(16) != 0 || record.at<std::uint32_t>(20) != 0 ||
        record.at<std::uint64_t>(24) != out.members || locator.at<std::uint32_t>(4) != 0 ||
        locator.at<std::uint32_t>(16) != 1) {
      return unsupported(position + 16, "an archive of one file, found one of several disks");
    }
    if (const auto size = record.at<std::uint64_t>(4); size < zip::kEnd64Size - 12) {
      return corrupt(position + 4, "a 64-bit end record of at least {} bytes behind its size, found {}",
                     zip::kEnd64Size - 12, size);
    }
    const auto differs = [](std::uint64_t in_short, std::uint64_t ones, std::uint64_t in_long) {
      return in_short != ones && in_short != in_long;
    };
    if (differs(known.offset, kIn64Bits32, out.offset) || differs(known.size, kIn64Bits32, out.size) ||
        differs(known.members, kIn64Bits16, out.members)) {
      return corrupt(known.end, "the numbers of the 64-bit end record, or all ones, found others");
    }
    return out;
  }

  /// Takes the next header off `rest`, the rest of the directory.
  Result<ListedMember> read_member(Record& rest) {
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
    ListedMember listed;
    ZipMember& member = listed.member;
    const Record name = header.part(zip::kCentralSize, name_size);
    member.name.assign(reinterpret_cast<const char*>(name.bytes.data()), name.bytes.size());
    if (member.name.find('\0') != std::string::npos) {
      return corrupt(name.position, "a name without a zero byte, at which some readers end it, found {}",
                     quote(member.name));
    }
    listed.version = header.at<std::uint16_t>(6);
    listed.flags = header.at<std::uint16_t>(8);
    ETSTREAM_TRY(check_version(header.position + 6, listed.version, member.name));
    ETSTREAM_TRY(check_stored(header.position + 8, listed.flags, header.at<std::uint16_t>(10), member.name));
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
    const bool is_folder =
        (header.at<std::uint32_t>(38) & zip::kFolderAttribute) != 0 || member.name.ends_with('/');
    if (is_folder && member.size != 0) {
      return corrupt(header.position + 38,
                     "a folder without data, which some readers leave unread, found {} of {}",
                     counted(member.size, "byte"), quote(member.name));
    }
    if (stored != member.size) {
      return corrupt(header.position + 20, "{} stored in as many bytes, found {}",
                     counted(member.size, "byte"), stored);
    }
    return listed;
  }

  /// Refuses a member that needs a reader of a later version than there is (APPNOTE 6.3).
  Result<void> check_version(std::uint64_t position, std::uint16_t version, std::string_view name) const {
    constexpr unsigned kLatest = 63;
    const unsigned needed = version & 0xffU;  // the other byte says for which system
    if (needed <= kLatest) return {};
    return unsupported(position, text("a member for a reader of version {} at most, found {} for {}", kLatest,
                                      quote(name), needed));
  }

  /// Refuses encrypted and compressed members and patches. `position` is that of the flags, with the method
  /// behind them.
  Result<void> check_stored(std::uint64_t position, std::uint16_t flags, std::uint16_t method,
                            std::string_view name) const {
    if ((flags & zip::kEncrypted) != 0) {
      return unsupported(position, text("a member that is not encrypted, found {}", quote(name)));
    }
    if ((flags & zip::kPatch) != 0) {
      return unsupported(position, text("a member that is whole, found a patch for {}", quote(name)));
    }
    if (method == zip::kStored) return {};
    return unsupported(
        position + 2,
        text("a member that is stored as it is, found {} compressed by method {}", quote(name), method));
  }

  /// Sets those of the numbers that are all ones from the field for 64 bits, which has them in this order.
  /// Refuses fields that give a reader another number or another name.
  Result<void> read_extra(Record extra, std::initializer_list<std::uint64_t*> numbers) const {
    constexpr std::uint64_t kHeader = 4;
    std::optional<Record> zip64;
    while (!extra.bytes.empty()) {
      // Android's zipalign may pad the fields with up to three zeros.
      if (extra.bytes.size() < kHeader &&
          std::ranges::all_of(extra.bytes, [](std::byte each) { return each == std::byte{0}; })) {
        break;
      }
      const std::uint64_t size = extra.bytes.size() < kHeader ? kIn64Bits32 : extra.at<std::uint16_t>(2);
      if (!range_fits(kHeader, size, extra.bytes.size())) {
        return corrupt(extra.position, "an extra field inside {}, found one that goes on",
                       counted(extra.bytes.size(), "byte"));
      }
      const auto kind = extra.at<std::uint16_t>(0);
      if (kind == zip::kZip64Field) {
        if (zip64) return corrupt(extra.position, "one extra field of 64-bit numbers, found another");
        zip64 = extra.part(kHeader, size);
      }
      if (kind == zip::kUnicodeNameField) {
        return unsupported(extra.position, "a member of one name, found another name in an extra field");
      }
      extra = extra.part(kHeader + size, extra.bytes.size() - kHeader - size);
    }
    return read_zip64(zip64.value_or(Record{extra.position, {}}), numbers);
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

  /// Reads the members' own headers in the order in which they lie, without gaps, up to the directory.
  Result<void> read_local_headers(std::vector<ListedMember>& listed, std::uint64_t directory) const {
    std::vector<ListedMember*> by_place;
    by_place.reserve(listed.size());
    for (ListedMember& each : listed) by_place.push_back(&each);
    std::ranges::stable_sort(by_place, {}, [](const ListedMember* each) { return each->member.header; });
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < by_place.size(); ++i) {
      ListedMember& each = *by_place[i];
      if (each.member.header < end) {
        return corrupt(each.member.header,
                       "member {} behind the one before it, which ends at {}, found it in that",
                       quote(each.member.name), end);
      }
      ETSTREAM_TRY(check_no_gap(end, each.member.header));
      ETSTREAM_TRY(read_local_header(each, directory));
      end = each.member.offset + each.member.size;
      const std::uint64_t next = i + 1 < by_place.size() ? by_place[i + 1]->member.header : directory;
      if ((each.flags & zip::kHasDescriptor) != 0 && next > end) {
        ETSTREAM_TRY(read_descriptor(each.member, std::min(next, directory)));
        end = next;
      }
    }
    return check_no_gap(end, directory);
  }

  Result<void> check_no_gap(std::uint64_t begin, std::uint64_t end) const {
    if (begin >= end) return {};
    return corrupt(begin, "a member's header or the directory right behind what is before it, found {}",
                   counted(end - begin, "byte") + " of neither");
  }

  /// Checks what lies between the data and `end`: the checksum and the sizes, of 32 or of 64 bits, behind a
  /// signature or not.
  Result<void> read_descriptor(const ZipMember& member, std::uint64_t end) const {
    constexpr std::uint64_t kLargest = 24;
    const std::uint64_t begin = member.offset + member.size;
    std::array<std::byte, kLargest> bytes{};
    const std::uint64_t size = std::min(end - begin, kLargest);
    ETSTREAM_TRY(file_.read_at(begin, std::span(bytes).first(static_cast<std::size_t>(size))));
    const Record descriptor{begin, bytes};
    const bool is_64 = size >= 20;
    const std::uint64_t signature = size % 8 == 0 ? sizeof(zip::kDescriptorSignature) : 0;
    const std::uint64_t sizes = signature + sizeof(member.crc32);
    const auto number = [&](std::uint64_t at) {
      return is_64 ? descriptor.at<std::uint64_t>(at) : descriptor.at<std::uint32_t>(at);
    };
    const bool has_size = size == signature + (is_64 ? 20 : 12) && end - begin <= kLargest;
    if (has_size && (signature == 0 || descriptor.at<std::uint32_t>(0) == zip::kDescriptorSignature) &&
        descriptor.at<std::uint32_t>(signature) == member.crc32 && number(sizes) == member.size &&
        number(sizes + (is_64 ? 8 : 4)) == member.size) {
      return {};
    }
    return corrupt(begin, "checksum and sizes behind the data of member {}, as in the directory, found {}",
                   quote(member.name), counted(end - begin, "byte") + " of others");
  }

  /// Finds the beginning of the data, which is before the directory.
  Result<void> read_local_header(ListedMember& listed, std::uint64_t directory) const {
    ZipMember& member = listed.member;
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
    if (flags != listed.flags) {
      return corrupt(member.header + 6, "the flags {:#06x} as in the directory, found {:#06x}", listed.flags,
                     flags);
    }
    member.header_differs = header.at<std::uint16_t>(4) > listed.version ||
                            header.at<std::uint16_t>(10) != member.time ||
                            header.at<std::uint16_t>(12) != member.day;
    std::vector<std::byte> rest(std::size_t{name_size} + extra_size);
    ETSTREAM_TRY(file_.read_at(member.header + bytes.size(), rest));
    const Record behind{member.header + bytes.size(), rest};
    if (std::string_view(reinterpret_cast<const char*>(rest.data()), name_size) != member.name) {
      return corrupt(behind.position, "the name {} as in the directory, found another", quote(member.name));
    }
    std::uint64_t stored = header.at<std::uint32_t>(18);
    std::uint64_t size = header.at<std::uint32_t>(22);
    ETSTREAM_TRY(read_extra(behind.part(name_size, extra_size), {&size, &stored}));
    const auto crc32 = header.at<std::uint32_t>(14);
    // A header may leave out each of them if they follow the data.
    const bool may_be_zero = (flags & zip::kHasDescriptor) != 0;
    const auto differs = [&](std::uint64_t found, std::uint64_t known) {
      return found != known && !(may_be_zero && found == 0);
    };
    if (differs(stored, member.size) || differs(size, member.size) || differs(crc32, member.crc32)) {
      return corrupt(member.header + 14, "checksum {} and {} as in the directory, found checksum {} and {}",
                     member.crc32, counted(member.size, "byte"), crc32, counted(size, "byte"));
    }
    return {};
  }

  const ByteSource& file_;
};

class ChecksummedStorage final : public DerivedStorage {
 public:
  explicit ChecksummedStorage(std::shared_ptr<const PassingChecksum> checksum)
      : checksum_(std::move(checksum)) {}

  std::uint64_t size() const noexcept override { return checksum_->source().size(); }
  std::string name() const override { return checksum_->source().name(); }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    ETSTREAM_TRY(checksum_->source().read_at(offset, out));
    checksum_->pass(offset, out);
    return {};
  }
  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept override {
    checksum_->source().drop_pages(offset, size);
  }
  void for_each_part(const std::function<void(const ByteSource&)>& see) const override {
    see(checksum_->source());
  }

 private:
  const std::shared_ptr<const PassingChecksum> checksum_;
};

class BytesWithChecksums final : public ByteStorage {
 public:
  BytesWithChecksums(std::vector<std::byte> bytes, std::vector<ChecksumPlace> places)
      : bytes_(std::move(bytes)), places_(std::move(places)) {}

  std::uint64_t size() const noexcept override { return bytes_.size(); }
  std::string name() const override { return "memory"; }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto begin = static_cast<std::size_t>(offset);
    const std::size_t end = begin + out.size();
    std::ranges::copy(std::span(bytes_).subspan(begin, out.size()), out.begin());
    const auto end_of = [](const ChecksumPlace& place) { return place.offset + sizeof(std::uint32_t); };
    for (auto place = std::ranges::upper_bound(places_, begin, {}, end_of);
         place != places_.end() && place->offset < end; ++place) {
      ETSTREAM_ASSIGN(const std::uint32_t value, place->checksum->value());
      const auto checksum = std::as_bytes(std::span(&value, 1));
      for (std::size_t i = 0; i < checksum.size(); ++i) {
        const std::size_t at = place->offset + i;
        if (at >= begin && at < end) out[at - begin] = checksum[i];
      }
    }
    return {};
  }

 private:
  const std::vector<std::byte> bytes_;
  const std::vector<ChecksumPlace> places_;
};

/// zipfile writes larger numbers in 64 bits, as other writers read 32 bits as signed.
constexpr std::uint64_t kMostIn32Bits = 0x7fffffff;
constexpr std::uint16_t kMostMembersIn16Bits = 0xffff;
constexpr std::uint16_t kVersion = 20;
constexpr std::uint16_t kVersion64 = 45;
constexpr std::uint8_t kUnix = 3;
constexpr std::uint32_t kOwnersAttributes = 0600U << 16;
constexpr std::uint64_t kFieldHeader = 4;

/// Bytes of a record that grow by little-endian numbers.
class RecordWriter {
 public:
  template <class... Integers>
  void put(Integers... numbers) {
    (put_bytes(std::as_bytes(std::span(&numbers, 1))), ...);
  }
  void put_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void put_zeros(std::uint64_t n) { bytes_.resize(bytes_.size() + static_cast<std::size_t>(n)); }
  [[nodiscard]] std::uint64_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] std::span<const std::byte> view() const noexcept { return bytes_; }
  [[nodiscard]] std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

std::uint16_t short_size(const auto& bytes) { return static_cast<std::uint16_t>(bytes.size()); }

std::uint32_t low(std::uint64_t number, bool is_in_64_bits) {
  return is_in_64_bits ? kIn64Bits32 : static_cast<std::uint32_t>(number);
}

bool needs_zip64(const ZipMember& member, bool whole) {
  // zipfile leaves room for data that compression makes larger: 5 %.
  const auto with_room = static_cast<double>(member.size) * 1.05;
  return member.size > kMostIn32Bits || (whole && with_room > static_cast<double>(kMostIn32Bits));
}

/// Puts a field that brings the bytes behind it, from `position` on, to a multiple of `alignment`.
void put_alignment(RecordWriter& extra, std::uint64_t position, std::uint32_t alignment) {
  std::uint64_t missing = padding_to(position, alignment);
  if (missing == 0) return;
  constexpr std::uint64_t kLeast = kFieldHeader + sizeof(std::uint16_t);
  while (missing < kLeast) missing += alignment;
  extra.put(zip::kAlignmentField, static_cast<std::uint16_t>(missing - kFieldHeader),
            static_cast<std::uint16_t>(alignment));
  extra.put_zeros(missing - kLeast);
}

}  // namespace

Result<ZipArchive> read_zip(const ByteSource& file) { return ZipReader(file).run(); }

Result<std::uint32_t> crc32_of(const ByteSource& source) {
  std::uint32_t out = 0;
  ETSTREAM_TRY(read_pieces(source, [&](std::span<const std::byte> bytes) { out = crc32_of(bytes, out); }));
  return out;
}

Result<std::optional<Error>> find_damage(const ByteSource& file, const ZipMember& member) {
  ETSTREAM_ASSIGN(const ByteSource data, file.slice(member.offset, member.size));
  ETSTREAM_ASSIGN(const std::uint32_t checksum, crc32_of(data));
  if (checksum == member.crc32) return std::optional<Error>();
  return std::optional(unexpected(ErrorCode::kCorrupt, {file.name(), member.offset},
                                  "member {} with the checksum {:08x}, found {:08x}", quote(member.name),
                                  member.crc32, checksum));
}

ChecksummedSource with_checksum(ByteSource source) {
  auto checksum = std::make_shared<const PassingChecksum>(std::move(source));
  return {ByteSource(std::make_shared<ChecksummedStorage>(checksum)), checksum};
}

ByteSource with_checksums(std::vector<std::byte> bytes, std::vector<ChecksumPlace> places) {
  return ByteSource(std::make_shared<BytesWithChecksums>(std::move(bytes), std::move(places)));
}

Result<void> ZipWriter::append_record(ByteSource bytes, const char* label) {
  metadata_size_ += bytes.size();
  return append(plan_, 1, label, std::move(bytes));
}

/// Appends the local header. Its sizes are all ones for a `version` of 64 bits, and 0 if they follow the
/// data.
Result<void> ZipWriter::append_header(ZipMember& member, std::uint16_t version, std::uint16_t flags,
                                      std::vector<std::byte> fields) {
  RecordWriter extra;
  extra.put_bytes(fields);
  member.header = plan_.size;
  put_alignment(extra, plan_.size + zip::kLocalSize + member.name.size() + extra.size(), alignment_);
  const bool follows = (flags & zip::kHasDescriptor) != 0;
  const std::uint32_t size = low(follows ? 0 : member.size, version == kVersion64);
  RecordWriter header;
  header.put(zip::kLocalSignature, version, flags, zip::kStored, member.time, member.day, member.crc32, size,
             size, short_size(member.name), short_size(extra));
  header.put_bytes(std::as_bytes(std::span(member.name)));
  header.put_bytes(extra.view());
  ETSTREAM_TRY(append_record(ByteSource::owned(std::move(header).take()), "zip header"));
  member.offset = plan_.size;
  return {};
}

Result<void> ZipWriter::begin(ZipMember member, bool whole) {
  const bool zip64 = needs_zip64(member, whole);
  RecordWriter extra;
  if (zip64) extra.put(zip::kZip64Field, std::uint16_t{16}, member.size, member.size);
  const std::uint16_t version = zip64 ? kVersion64 : kVersion;
  ETSTREAM_TRY(append_header(member, version, 0, std::move(extra).take()));
  members_.push_back({std::move(member), version, nullptr});
  return {};
}

Result<void> ZipWriter::append_streamed(std::string name, ByteSource data, std::string_view label) {
  ZipMember member{.name = std::move(name), .size = data.size()};
  const bool zip64 = member.size > kMostIn32Bits;
  RecordWriter extra;
  if (zip64) extra.put(zip::kZip64Field, std::uint16_t{16}, std::uint64_t{0}, std::uint64_t{0});
  const std::uint16_t version = zip64 ? kVersion64 : kVersion;
  ETSTREAM_TRY(append_header(member, version, zip::kHasDescriptor, std::move(extra).take()));
  ChecksummedSource checksummed = with_checksum(std::move(data));
  ETSTREAM_TRY(append(plan_, alignment_, label, std::move(checksummed.source)));
  RecordWriter descriptor;
  descriptor.put(zip::kDescriptorSignature, std::uint32_t{0});
  if (zip64) {
    descriptor.put(member.size, member.size);
  } else {
    descriptor.put(static_cast<std::uint32_t>(member.size), static_cast<std::uint32_t>(member.size));
  }
  constexpr std::size_t kChecksum = 4;  // behind the signature
  ETSTREAM_TRY(append_record(
      with_checksums(std::move(descriptor).take(), {{kChecksum, checksummed.checksum}}), "zip descriptor"));
  members_.push_back({std::move(member), version, std::move(checksummed.checksum)});
  return {};
}

Result<void> ZipWriter::finish() {
  const std::uint64_t begin = plan_.size;
  RecordWriter directory;
  std::vector<ChecksumPlace> checksums;
  for (const auto& [member, local_version, checksum] : members_) {
    const bool large = member.size > kMostIn32Bits;
    const bool far = member.header > kMostIn32Bits;
    RecordWriter extra;
    if (large) extra.put(member.size, member.size);
    if (far) extra.put(member.header);
    const std::uint16_t version = std::max(local_version, large || far ? kVersion64 : kVersion);
    const std::uint32_t size = low(member.size, large);
    const auto extra_size = static_cast<std::uint16_t>(extra.size() == 0 ? 0 : kFieldHeader + extra.size());
    constexpr std::uint64_t kChecksum = 16;  // from the header's begin on
    if (checksum) checksums.push_back({static_cast<std::size_t>(directory.size() + kChecksum), checksum});
    directory.put(zip::kCentralSignature, static_cast<std::uint8_t>(version), kUnix, version,
                  checksum ? zip::kHasDescriptor : std::uint16_t{0}, zip::kStored, member.time, member.day,
                  member.crc32, size, size, short_size(member.name), extra_size);
    directory.put_zeros(6);
    directory.put(kOwnersAttributes, low(member.header, far));
    directory.put_bytes(std::as_bytes(std::span(member.name)));
    if (extra_size == 0) continue;
    directory.put(zip::kZip64Field, short_size(extra));
    directory.put_bytes(extra.view());
  }
  const std::uint64_t size = directory.size();
  const std::uint64_t count = members_.size();
  if (count > kMostMembersIn16Bits || begin > kMostIn32Bits || size > kMostIn32Bits) {
    directory.put(zip::kEnd64Signature, zip::kEnd64Size - 12, kVersion64, kVersion64, std::uint64_t{0}, count,
                  count, size, begin);
    directory.put(zip::kLocator64Signature, std::uint32_t{0}, begin + size, std::uint32_t{1});
  }
  const auto short_count = static_cast<std::uint16_t>(std::min<std::uint64_t>(count, kMostMembersIn16Bits));
  directory.put(zip::kEndSignature, std::uint32_t{0}, short_count, short_count,
                static_cast<std::uint32_t>(std::min<std::uint64_t>(size, kIn64Bits32)),
                static_cast<std::uint32_t>(std::min<std::uint64_t>(begin, kIn64Bits32)), std::uint16_t{0});
  return append_record(with_checksums(std::move(directory).take(), std::move(checksums)), "zip directory");
}

}  // namespace etstream
