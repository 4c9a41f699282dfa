// SPDX-License-Identifier: BSD-3-Clause
//
// PayloadHeader: the bytes that a delegate's data begins with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

class PayloadHeader {
 public:
  /// Reads `size` bytes, or all if there are fewer. `name` is what messages call the payload. Error: kIo.
  [[nodiscard]] static Result<PayloadHeader> read(const ByteSource& payload, std::size_t size,
                                                  const std::string& name) {
    std::string bytes(static_cast<std::size_t>(std::min<std::uint64_t>(size, payload.size())), '\0');
    ETSTREAM_TRY(payload.read_at(0, std::as_writable_bytes(std::span(bytes))));
    return PayloadHeader(std::move(bytes), size, payload.size(), name);
  }

  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool has(std::size_t position, std::string_view magic) const {
    return bytes_.size() >= position && std::string_view(bytes_).substr(position).starts_with(magic);
  }
  /// Refuses a payload that is shorter than its header.
  [[nodiscard]] Result<void> check_size() const {
    if (bytes_.size() == size_) return {};
    return unexpected(ErrorCode::kCorrupt, {name_, 0}, "a header of {} bytes, found {}", size_,
                      bytes_.size());
  }
  /// Returns the number at `position`, which is inside the header.
  template <class T>
  [[nodiscard]] T number(std::size_t position) const {
    T out{};
    std::memcpy(&out, bytes_.data() + position, sizeof(T));
    return out;
  }
  /// Refuses a range, which the header has at `position`, unless it is in the payload and begins at `least`
  /// or later. `what` is in it.
  [[nodiscard]] Result<void> check_range(std::size_t position, std::string_view what, std::uint64_t offset,
                                         std::uint64_t size, std::uint64_t least = 0) const {
    if (range_fits(offset, size, payload_size_) && offset >= least) return {};
    return unexpected(ErrorCode::kCorrupt, {name_, position},
                      "{} in bytes {} to {}, found {} bytes from {} on", what, least, payload_size_, size,
                      offset);
  }

 private:
  PayloadHeader(std::string bytes, std::size_t size, std::uint64_t payload_size, std::string name)
      : bytes_(std::move(bytes)), size_(size), payload_size_(payload_size), name_(std::move(name)) {}

  std::string bytes_;
  std::size_t size_;
  std::uint64_t payload_size_;
  std::string name_;
};

}  // namespace etstream
