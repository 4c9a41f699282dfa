// SPDX-License-Identifier: BSD-3-Clause
//
// CountedBytes: a file that counts how often it is read, and how many bytes, and of which one read may fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "etstream/byte_source.h"

namespace etstream {

class CountedBytes final : public ByteStorage {
 public:
  explicit CountedBytes(std::string bytes, int failing_read = -1)
      : bytes_(std::move(bytes)), failing_read_(failing_read) {}

  std::uint64_t size() const noexcept override { return bytes_.size(); }
  std::string name() const override { return "counted"; }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (reads_++ == failing_read_) return Error{ErrorCode::kIo, "the disk is on fire"};
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    bytes_read_ += out.size();
    return {};
  }
  [[nodiscard]] int reads() const { return reads_; }
  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  const std::string bytes_;
  const int failing_read_;
  mutable std::atomic<int> reads_ = 0;
  mutable std::atomic<std::uint64_t> bytes_read_ = 0;
};

}  // namespace etstream
