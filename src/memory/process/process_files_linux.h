// SPDX-License-Identifier: BSD-3-Clause
//
// Files of /proc and /sys: lines with names and numbers.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "core/io/descriptor_posix.h"

namespace etstream {

/// Reads a file of the kernel, cut after `most` bytes; empty if it can't be read.
inline std::string content_of(const std::string& path, std::size_t most = 4096) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> part;
  std::string content;
  while (content.size() < most) {
    const ssize_t n = ::read(file.get(), part.data(), std::min(part.size(), most - content.size()));
    if (n <= 0) break;
    content.append(part.data(), static_cast<std::size_t>(n));
  }
  return content;
}

template <class Number>
std::optional<Number> number_at(std::string_view text, int base = 10) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  Number number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return parsed.ec == std::errc() ? std::optional(number) : std::nullopt;
}

/// Returns the number behind `name`, such as "VmRSS:", in the line that begins with it.
inline std::optional<std::uint64_t> number_of(std::string_view content, std::string_view name,
                                              int base = 10) {
  while (!content.starts_with(name)) {
    const std::size_t end = content.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    content.remove_prefix(end + 1);
  }
  return number_at<std::uint64_t>(content.substr(name.size()), base);
}

}  // namespace etstream
