// SPDX-License-Identifier: BSD-3-Clause
//
// A sentence on standard error, from where nothing may be allocated.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace etstream::heap {

/// What errno's value means.
[[nodiscard]] const char* reason_of(int code) noexcept;

/// Writes "etstream: heap: ", and the line.
void write_line(std::string_view line) noexcept;

/// A line of words and numbers. What is too long is cut off.
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

template <class... Pieces>
void say(const Pieces&... pieces) noexcept {
  Line line;
  (line.add(pieces), ...);
  write_line(line.view());
}

}  // namespace etstream::heap
