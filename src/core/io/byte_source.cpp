// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/byte_source.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/derived_storage.h"

namespace etstream {
namespace {

class Bytes final : public ByteStorage {
 public:
  explicit Bytes(std::span<const std::byte> borrowed) : bytes_(borrowed) {}
  explicit Bytes(std::vector<std::byte> owned) : owned_(std::move(owned)), bytes_(owned_) {}

  std::uint64_t size() const noexcept override { return bytes_.size(); }
  std::string name() const override { return "memory"; }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }

 private:
  const std::vector<std::byte> owned_;
  const std::span<const std::byte> bytes_;
};

class Zeros final : public ByteStorage {
 public:
  std::uint64_t size() const noexcept override { return std::numeric_limits<std::uint64_t>::max(); }
  std::string name() const override { return "zeros"; }
  Result<void> read_at(std::uint64_t /*offset*/, std::span<std::byte> out) const override {
    std::memset(out.data(), 0, out.size());
    return {};
  }
};

/// The most levels of concatenations in concatenations. Each reads through those in it.
constexpr int kDeepestConcatenation = 256;

class Concatenation final : public DerivedStorage {
 public:
  /// `ends[i]` is the end of `parts[i]` in the whole.
  Concatenation(std::vector<ByteSource> parts, std::vector<std::uint64_t> ends)
      : parts_(std::move(parts)), ends_(std::move(ends)) {
    for (const ByteSource& part : parts_) {
      const auto* const nested = dynamic_cast<const Concatenation*>(part.place().storage);
      if (nested != nullptr) depth_ = std::max(depth_, nested->depth_ + 1);
    }
  }

  [[nodiscard]] int depth() const noexcept { return depth_; }

  std::uint64_t size() const noexcept override { return ends_.empty() ? 0 : ends_.back(); }
  std::string name() const override {
    return parts_.empty() ? "nothing" : text("concatenation from {}", parts_.front().name());
  }

  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    return visit(offset, out.size(), [&](const ByteSource& part, std::uint64_t start, std::uint64_t size) {
      const auto piece = out.first(static_cast<std::size_t>(size));
      out = out.subspan(piece.size());
      return part.read_at(start, piece);
    });
  }

  void for_each_part(const std::function<void(const ByteSource&)>& see) const override {
    std::for_each(parts_.begin(), parts_.end(), see);
  }

  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept override {
    static_cast<void>(visit(offset, size, [](const ByteSource& part, std::uint64_t start, std::uint64_t n) {
      part.drop_pages(start, n);
      return Result<void>();
    }));
  }

 private:
  /// Calls `see(part, offset in it, size)` for each part of a range, in order, up to the first error.
  template <class See>
  Result<void> visit(std::uint64_t offset, std::uint64_t size, See see) const {
    auto i = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), offset) - ends_.begin());
    for (; size > 0; ++i) {
      const std::uint64_t start = offset - (i == 0 ? 0 : ends_[i - 1]);
      const std::uint64_t n = std::min(size, parts_[i].size() - start);
      ETSTREAM_TRY(see(parts_[i], start, n));
      offset += n;
      size -= n;
    }
    return {};
  }

  std::vector<ByteSource> parts_;
  std::vector<std::uint64_t> ends_;
  int depth_ = 1;
};

}  // namespace

Result<int> ByteStorage::open_descriptor() const {
  return error_in(ErrorCode::kUnsupported, name(), "is not a regular file");
}

ByteSource::ByteSource(std::shared_ptr<const ByteStorage> storage)
    : storage_(std::move(storage)), size_(storage_->size()) {}

ByteSource::ByteSource(std::shared_ptr<const ByteStorage> storage, std::uint64_t offset, std::uint64_t size)
    : storage_(std::move(storage)), offset_(offset), size_(size) {}

ByteSource ByteSource::memory(std::span<const std::byte> bytes) {
  return ByteSource(std::make_shared<Bytes>(bytes));
}

ByteSource ByteSource::owned(std::vector<std::byte> bytes) {
  return ByteSource(std::make_shared<Bytes>(std::move(bytes)));
}

ByteSource ByteSource::zeros(std::uint64_t size) {
  static const std::shared_ptr<const ByteStorage> kZeros = std::make_shared<Zeros>();
  return ByteSource(kZeros, 0, size);
}

Result<ByteSource> ByteSource::concatenation(std::vector<ByteSource> parts) {
  return without_exceptions([&]() -> Result<ByteSource> {
    std::erase_if(parts, [](const ByteSource& part) { return part.size() == 0; });
    std::vector<std::uint64_t> ends;
    ends.reserve(parts.size());
    std::uint64_t end = 0;
    for (const auto& part : parts) {
      const auto next = checked_add(end, part.size());
      if (!next) {
        return make_error(ErrorCode::kTooLarge, "a concatenation of {} sources is longer than 2^64 - 1 bytes",
                          parts.size());
      }
      ends.push_back(end = *next);
    }
    auto joined = std::make_shared<Concatenation>(std::move(parts), std::move(ends));
    if (joined->depth() > kDeepestConcatenation) {
      return make_error(ErrorCode::kTooLarge, "a concatenation is nested more than {} deep",
                        kDeepestConcatenation);
    }
    return ByteSource(std::move(joined));
  });
}

Result<ByteSource> ByteSource::slice(std::uint64_t offset, std::uint64_t size) const {
  if (!range_fits(offset, size, size_)) {
    return error_in(ErrorCode::kInvalidArgument, name(), "bytes {} to {} + {} are not inside its {} bytes",
                    offset, offset, size, size_);
  }
  return ByteSource(storage_, offset_ + offset, size);
}

Result<void> ByteSource::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  return without_exceptions([&]() -> Result<void> {
    if (!range_fits(offset, out.size(), size_)) {
      return error_in(ErrorCode::kInvalidArgument, name(),
                      "a read of {} bytes at {} is not inside its {} bytes", out.size(), offset, size_);
    }
    if (out.empty()) return {};
    return storage_->read_at(offset_ + offset, out);
  });
}

std::optional<std::uint64_t> ByteSource::offset_in(const ByteSource& whole) const noexcept {
  if (storage_ != whole.storage_ || offset_ < whole.offset_ ||
      !range_fits(offset_ - whole.offset_, size_, whole.size_)) {
    return std::nullopt;
  }
  return offset_ - whole.offset_;
}

Result<FileRange> ByteSource::open_range() const {
  return without_exceptions([&]() -> Result<FileRange> {
    if (!storage_) return make_error(ErrorCode::kUnsupported, "nothing is not in a file");
    ETSTREAM_ASSIGN(const int descriptor, storage_->open_descriptor());
    return FileRange{descriptor, offset_, size_};
  });
}

std::string ByteSource::name() const { return storage_ ? storage_->name() : "nothing"; }

Result<void> ByteSource::check_unchanged() const {
  return without_exceptions(
      [&]() -> Result<void> { return storage_ ? storage_->check_unchanged() : Result<void>(); });
}

std::uint64_t ByteSource::next_data(std::uint64_t offset) const noexcept {
  if (offset >= size_) return offset;  // as in nothing, which has no storage
  return std::min(storage_->next_data(offset_ + offset) - offset_, size_);
}

void ByteSource::drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept {
  if (storage_ && range_fits(offset, size, size_)) storage_->drop_pages(offset_ + offset, size);
}

bool ByteSource::clone_range(int descriptor, std::uint64_t at) const noexcept {
  return storage_ && storage_->clone_range(offset_, size_, descriptor, at);
}

}  // namespace etstream
