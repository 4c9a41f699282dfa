// SPDX-License-Identifier: BSD-3-Clause
//
// Sentences on standard error, from code that must not allocate.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace etstream::heap {

/// Returns the message for a value of errno.
[[nodiscard]] const char* reason_of(int code) noexcept;

/// Writes to standard error.
void write_error(std::string_view text) noexcept;

/// A line of words and numbers, cut after 512 bytes.
class Line {
 public:
  void add(std::string_view words) noexcept {
    const std::size_t taken = std::min(words.size(), text_.size() - size_);
    std::memcpy(text_.data() + size_, words.data(), taken);
    size_ += taken;
  }
  void add(std::uint64_t number) noexcept {
    std::array<char, 20> digits{};
    std::size_t first = digits.size();
    do digits[--first] = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    add(std::string_view(digits.data() + first, digits.size() - first));
  }
  [[nodiscard]] std::string_view view() const noexcept { return {text_.data(), size_}; }

 private:
  std::array<char, 512> text_{};
  std::size_t size_ = 0;
};

/// Writes a line of the pieces, after "etstream: heap: ".
template <class... Pieces>
void say(const Pieces&... pieces) noexcept {
  Line line;
  line.add("etstream: heap: ");
  (line.add(pieces), ...);
  line.add("\n");
  write_error(line.view());
}

}  // namespace etstream::heap
