// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/base64.h"

#include <array>
#include <cstdint>

namespace etstream {
namespace {

constexpr std::string_view kBase64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoBase64Digit = 64;

constexpr std::array<std::uint8_t, 256> base64_values() {
  std::array<std::uint8_t, 256> out{};
  out.fill(kNoBase64Digit);
  for (std::size_t i = 0; i < kBase64Digits.size(); ++i) {
    out[static_cast<unsigned char>(kBase64Digits[i])] = static_cast<std::uint8_t>(i);
  }
  return out;
}
constexpr auto kBase64Values = base64_values();

}  // namespace

void append_base64(std::span<const std::byte> bytes, std::string& out) {
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t taken = bytes.size() - i < 3 ? bytes.size() - i : 3;
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < taken ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0);
    }
    for (std::size_t k = 0; k < 4; ++k) out += k <= taken ? kBase64Digits[group >> (18 - 6 * k) & 63] : '=';
  }
}

bool decode_base64(std::string_view text, std::vector<std::byte>& out) {
  if (text.size() % 4 != 0) return false;
  const std::size_t before = out.size();
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const bool is_last = i + 4 == text.size();
    const std::size_t padding = !is_last || text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;
    std::uint32_t group = 0;
    bool is_good = true;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::uint8_t digit = k < 4 - padding ? kBase64Values[static_cast<unsigned char>(text[i + k])] : 0;
      is_good = is_good && digit != kNoBase64Digit;
      group = group << 6 | (digit & 63U);
    }
    // The bits that the padding leaves unused must be zero.
    if (!is_good || (group & ((1U << (8 * padding)) - 1)) != 0) {
      out.resize(before);
      return false;
    }
    for (std::size_t k = 0; k < 3 - padding; ++k) {
      out.push_back(static_cast<std::byte>(group >> (16 - 8 * k) & 255));
    }
  }
  return true;
}

}  // namespace etstream
