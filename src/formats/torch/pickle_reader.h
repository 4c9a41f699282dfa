// SPDX-License-Identifier: BSD-3-Clause
//
// PickleReader: the bytes of a pickle, read from front to back, and errors with their place in the file.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/result.h"

namespace etstream {

class PickleReader {
 public:
  /// `offset` is the offset of the pickle in the file.
  PickleReader(std::string file, std::uint64_t offset, std::vector<std::byte> bytes)
      : file_(std::move(file)), offset_(offset), bytes_(std::move(bytes)) {}

  /// Begins an instruction. Errors give its place until the next one begins.
  template <class Opcode>
  Result<Opcode> begin_instruction() {
    at_ = next_;
    ETSTREAM_ASSIGN(const auto opcode, take<std::uint8_t>());
    return static_cast<Opcode>(opcode);
  }

  template <class... Arguments>
  [[nodiscard]] Error corrupt(Template<Arguments...> words, const Arguments&... arguments) const {
    return unexpected(ErrorCode::kCorrupt, {file_, offset_ + at_, "pickle"}, words, arguments...);
  }
  template <class... Arguments>
  [[nodiscard]] Error unsupported(Template<Arguments...> words, const Arguments&... arguments) const {
    return error_at(ErrorCode::kUnsupported, {file_, offset_ + at_, "pickle"}, words, arguments...);
  }

  Result<std::string_view> take_bytes(std::uint64_t size) {
    const std::string_view rest = this->rest();
    if (size > rest.size()) {
      return corrupt("{} before its end at {}, found {}", counted(size, "byte"), offset_ + bytes_.size(),
                     rest.size());
    }
    next_ += static_cast<std::size_t>(size);
    return rest.substr(0, static_cast<std::size_t>(size));
  }

  template <class Integer>
  Result<Integer> take() {
    ETSTREAM_ASSIGN(const std::string_view bytes, take_bytes(sizeof(Integer)));
    Integer out{};
    std::memcpy(&out, bytes.data(), sizeof(out));
    return out;
  }

  template <class Size>
  Result<std::string_view> take_sized() {
    ETSTREAM_ASSIGN(const Size size, take<Size>());
    return take_bytes(size);
  }

  /// Returns a line without its end.
  Result<std::string_view> take_line() {
    const std::string_view rest = this->rest();
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return corrupt("the end of a line, found that of the pickle");
    next_ += end + 1;
    return rest.substr(0, end);
  }

  Result<std::int64_t> take_decimal() {
    ETSTREAM_ASSIGN(std::string_view line, take_line());
    if (line.ends_with('L')) line.remove_suffix(1);
    std::int64_t out = 0;
    const auto [end, failed] = std::from_chars(line.data(), line.data() + line.size(), out);
    if (failed != std::errc() || end != line.data() + line.size()) {
      return corrupt("an integer of 64 bits, found {}", quote(line));
    }
    return out;
  }

  /// Returns how many bytes were taken.
  [[nodiscard]] std::size_t taken() const noexcept { return next_; }
  /// Gives the bytes away, which hold the texts that were taken.
  std::vector<std::byte> release() && { return std::move(bytes_); }

 private:
  /// Returns the bytes that were not taken yet.
  [[nodiscard]] std::string_view rest() const {
    return std::string_view(reinterpret_cast<const char*>(bytes_.data()), bytes_.size()).substr(next_);
  }

  const std::string file_;
  const std::uint64_t offset_;
  std::vector<std::byte> bytes_;
  std::size_t next_ = 0;
  std::size_t at_ = 0;  // where the instruction begins
};

}  // namespace etstream
