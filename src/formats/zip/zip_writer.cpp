// SPDX-License-Identifier: BSD-3-Clause
#include "formats/zip/zip.h"

#include <algorithm>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "core/base/checked.h"
#include "core/base/hashes.h"
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
constexpr std::uint32_t kIn64Bits = 0xffffffff;
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
  return is_in_64_bits ? kIn64Bits : static_cast<std::uint32_t>(number);
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
                static_cast<std::uint32_t>(std::min<std::uint64_t>(size, kIn64Bits)),
                static_cast<std::uint32_t>(std::min<std::uint64_t>(begin, kIn64Bits)), std::uint16_t{0});
  return append_record(with_checksums(std::move(directory).take(), std::move(checksums)), "zip directory");
}

}  // namespace etstream
