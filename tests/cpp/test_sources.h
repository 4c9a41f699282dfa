// SPDX-License-Identifier: BSD-3-Clause
//
// Sources with known bytes, and storages that fail or that record their calls.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "etstream/byte_source.h"

namespace etstream {

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline ByteSource source_of(std::string_view text) { return ByteSource::owned(bytes_of(text)); }

/// Returns all bytes of `source`.
inline std::string text_of(const ByteSource& source) {
  std::string out(source.size(), '\0');
  const auto read = source.read_at(0, std::as_writable_bytes(std::span(out)));
  REQUIRE_MESSAGE(read, read.error().message);
  return out;
}

/// Returns `size` bytes in which windows of a few bytes seem all different.
inline std::string patterned(std::size_t size) {
  std::string out(size, '\0');
  std::uint32_t state = 1;
  for (char& c : out) {
    state = state * 1664525U + 1013904223U;
    c = static_cast<char>(state >> 24);
  }
  return out;
}

/// A source of any number of `fill` bytes, in no memory. A read that touches a byte from `failing_from` on
/// fails.
class FillStorage final : public ByteStorage {
 public:
  FillStorage(char fill, std::uint64_t size, std::uint64_t failing_from = UINT64_MAX)
      : fill_(fill), size_(size), failing_from_(failing_from) {}

  std::uint64_t size() const noexcept override { return size_; }
  std::string name() const override { return "fill"; }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset + out.size() > failing_from_) return Error{ErrorCode::kIo, "the disk is on fire"};
    std::memset(out.data(), fill_, out.size());
    return {};
  }

 private:
  char fill_;
  std::uint64_t size_;
  std::uint64_t failing_from_;
};

inline ByteSource repeated(char fill, std::uint64_t size) {
  return ByteSource(std::make_shared<FillStorage>(fill, size));
}
/// Makes a storage whose reads fail with kIo from `failing_from` on.
inline ByteSource failing(std::uint64_t size, std::uint64_t failing_from) {
  return ByteSource(std::make_shared<FillStorage>(' ', size, failing_from));
}

/// A storage of given bytes, or of zeros, that records which ranges were read and forgotten.
class RecordingStorage final : public ByteStorage {
 public:
  using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // offset and size

  explicit RecordingStorage(ByteSource bytes) : bytes_(std::move(bytes)) {}
  explicit RecordingStorage(std::uint64_t size) : RecordingStorage(repeated('\0', size)) {}

  std::uint64_t size() const noexcept override { return bytes_.size(); }
  std::string name() const override { return "recording"; }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    read_.emplace_back(offset, out.size());
    return bytes_.read_at(offset, out);
  }
  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept override {
    forgotten_.emplace_back(offset, size);
  }

  [[nodiscard]] const Ranges& read() const { return read_; }
  [[nodiscard]] const Ranges& forgotten() const { return forgotten_; }

 private:
  const ByteSource bytes_;
  mutable Ranges read_;
  mutable Ranges forgotten_;
};

}  // namespace etstream
