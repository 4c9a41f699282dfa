// SPDX-License-Identifier: BSD-3-Clause
#include "formats/checkpoint/rename/rope_rows.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/base/try.h"
#include "core/io/derived_storage.h"

namespace etstream {
namespace {

constexpr std::uint64_t kMostRowBytes = std::uint64_t{256} << 10;  // bytes of rows

class RopeRows final : public DerivedStorage {
 public:
  RopeRows(ByteSource rows, std::uint64_t head_dim, std::uint64_t row_size)
      : rows_(std::move(rows)), head_dim_(head_dim), row_(row_size), head_(head_dim * row_size) {}

  std::uint64_t size() const noexcept override { return rows_.size(); }
  std::string name() const override { return rows_.name(); }
  void for_each_part(const std::function<void(const ByteSource&)>& see) const override { see(rows_); }

  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t together = std::min<std::uint64_t>(out.size() + 2 * row_, kMostRowBytes);
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(together));
    const std::span scratch(buffer.get(), static_cast<std::size_t>(together));
    while (!out.empty()) {
      const std::uint64_t at = offset % head_;
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), head_ - at));
      for (std::uint64_t half = 0; half < 2; ++half) {
        ETSTREAM_TRY(read_half(offset - at, half, at, out.first(n), scratch));
      }
      out = out.subspan(n);
      offset += n;
    }
    return {};
  }

  /// Drops all heads that end in the range, with what an earlier range had of the first one.
  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept override {
    const std::uint64_t begin = offset - offset % head_;
    const std::uint64_t end = offset + size - (offset + size) % head_;
    if (begin < end) rows_.drop_pages(begin, end - begin);
  }

 private:
  /// Reads the rows of one half of the head at `head` to their places in `out`, which begins at `at` in the
  /// result's head.
  Result<void> read_half(std::uint64_t head, std::uint64_t half, std::uint64_t at, std::span<std::byte> out,
                         std::span<std::byte> scratch) const {
    // Row j of the half is row 2 * j + half of the result. Read the rows of which `out` has a part.
    const std::uint64_t first = at / row_;
    const std::uint64_t last = (at + out.size() - 1) / row_;
    const std::uint64_t end = (last + 2 - half) / 2;
    const std::uint64_t most = std::max<std::uint64_t>(scratch.size() / row_, 1);
    for (std::uint64_t j = (first + 1 - half) / 2; j < end;) {
      const std::uint64_t n = std::min(most, end - j);
      const std::uint64_t source = head + (half * (head_dim_ / 2) + j) * row_;
      if (row_ > scratch.size()) {
        const Part part = part_of(2 * j + half, at, out.size());
        ETSTREAM_TRY(rows_.read_at(source + part.in_row, out.subspan(part.in_out, part.size)));
      } else {
        ETSTREAM_TRY(rows_.read_at(source, scratch.first(static_cast<std::size_t>(n * row_))));
        for (std::uint64_t k = 0; k < n; ++k) {
          const Part part = part_of(2 * (j + k) + half, at, out.size());
          std::memcpy(out.data() + part.in_out, scratch.data() + k * row_ + part.in_row, part.size);
        }
      }
      j += n;
    }
    return {};
  }

  struct Part {
    std::uint64_t in_row = 0;  // where it begins
    std::size_t in_out = 0;
    std::size_t size = 0;
  };
  /// Returns the part of a row that lies in `size` bytes from `at` on in a head.
  Part part_of(std::uint64_t row, std::uint64_t at, std::uint64_t size) const {
    const std::uint64_t begin = std::max(row * row_, at);
    const std::uint64_t end = std::min((row + 1) * row_, at + size);
    return {begin - row * row_, static_cast<std::size_t>(begin - at), static_cast<std::size_t>(end - begin)};
  }

  const ByteSource rows_;
  const std::uint64_t head_dim_;
  const std::uint64_t row_;   // in bytes
  const std::uint64_t head_;  // the same
};

}  // namespace

ByteSource interleave_rope(ByteSource rows, std::uint64_t head_dim, std::uint64_t row_size) {
  return ByteSource(std::make_shared<RopeRows>(std::move(rows), head_dim, row_size));
}

}  // namespace etstream
