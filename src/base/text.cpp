// SPDX-License-Identifier: BSD-3-Clause
#include "base/text.h"

#include <array>
#include <cstdio>

namespace etstream {

std::string quote(std::string_view word) {
  constexpr std::size_t kLongest = 200;
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "'";
  for (const char c : word.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      out += c;
    } else {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  if (word.size() > kLongest) out += "...";
  return out += "'";
}

std::string counted(std::uint64_t n, std::string_view noun) {
  return text(n, " ", noun, n == 1 ? "" : "s");
}

std::string readable_size(std::uint64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return counted(bytes, "byte");
  double amount = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.1f %s", amount, kUnits[unit]);
  return buffer.data();
}

}  // namespace etstream
