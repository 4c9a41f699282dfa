// SPDX-License-Identifier: BSD-3-Clause
#include "formats/zip/passing_checksum.h"

#include <algorithm>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "core/base/crc32.h"
#include "core/base/try.h"
#include "core/io/derived_storage.h"
#include "core/io/read_pieces.h"

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

}  // namespace

ChecksummedSource with_checksum(ByteSource source) {
  auto checksum = std::make_shared<const PassingChecksum>(std::move(source));
  return {ByteSource(std::make_shared<ChecksummedStorage>(checksum)), checksum};
}

ByteSource with_checksums(std::vector<std::byte> bytes, std::vector<ChecksumPlace> places) {
  return ByteSource(std::make_shared<BytesWithChecksums>(std::move(bytes), std::move(places)));
}

}  // namespace etstream
