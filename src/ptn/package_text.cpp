// SPDX-License-Identifier: BSD-3-Clause
#include "ptn/package_text.h"

#include <algorithm>
#include <span>

#include "base/checked.h"
#include "base/text.h"
#include "tensor/dimensions.h"
#include "weights/safetensors.h"

namespace etstream {
namespace {

/// The character that begins at `at` in UTF-8, and steps over it.
std::uint32_t next_character(std::string_view utf8, std::size_t& at) {
  const auto first = static_cast<unsigned char>(utf8[at++]);
  if (first < 0x80) return first;
  const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
  std::uint32_t out = first & (0x3fU >> more);
  for (int i = 0; i < more; ++i) out = out << 6 | (static_cast<unsigned char>(utf8[at++]) & 0x3fU);
  return out;
}

/// In ASCII: what is behind it is in units of UTF-16.
std::string python_string(std::string_view utf8) {
  constexpr std::string_view kShort = "\"\\\n\r\t\f\b";
  constexpr std::string_view kLetters = "\"\\nrtfb";
  std::string out = "\"";
  for (std::size_t at = 0; at < utf8.size();) {
    const std::uint32_t c = next_character(utf8, at);
    const auto known = c < 0x80 ? kShort.find(static_cast<char>(c)) : std::string_view::npos;
    if (known != std::string_view::npos) {
      out += '\\';
      out += kLetters[known];
    } else if (c >= ' ' && c <= '~') {
      out += static_cast<char>(c);
    } else if (c < 0x10000) {
      out += text("\\u{:04x}", c);
    } else {
      out += text("\\u{:04x}\\u{:04x}", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + (c & 0x3ff));
    }
  }
  return out + '"';
}

}  // namespace

Result<std::vector<std::byte>> constants_header(const std::vector<StoredTensor>& tensors,
                                                std::uint32_t alignment) {
  std::string json = "{";
  std::uint64_t begin = 0;
  for (const auto& [tensor, dtype] : tensors) {
    const auto end = checked_add(begin, tensor->data.size());
    if (!end) return make_error(ErrorCode::kTooLarge, "the constants would be over 2^64 - 1 bytes");
    json += text(R"({}{}:{{"dtype":"{}","shape":[)", json.size() == 1 ? "" : ",", python_string(tensor->name),
                 dtype);
    const std::size_t before = json.size();
    for (const std::int32_t size : tensor->layout->sizes) {
      json += text("{}{}", json.size() == before ? "" : ",", size);
    }
    json += text(R"(],"data_offsets":[{},{}]}})", begin, *end);
    begin = *end;
  }
  json += '}';
  const std::uint64_t unit = std::max<std::uint64_t>(8, alignment);
  json.append(static_cast<std::size_t>(padding_to(json.size() + kSafetensorsLengthSize, unit)), ' ');
  if (json.size() > kLongestSafetensorsHeader) {
    return make_error(ErrorCode::kTooLarge,
                      "the header of the constants would be {} bytes; expected at most {}", json.size(),
                      kLongestSafetensorsHeader);
  }
  std::vector<std::byte> out(kSafetensorsLengthSize + json.size());
  const auto length = static_cast<std::uint64_t>(json.size());
  std::ranges::copy(std::as_bytes(std::span(&length, 1)), out.begin());
  std::ranges::copy(std::as_bytes(std::span(json)), out.begin() + kSafetensorsLengthSize);
  return out;
}

std::string aliases_text(const std::vector<Alias>& aliases) {
  std::string out;
  for (const auto& [key, owner] : aliases) {
    out += text("{}\n  {}: {}", out.empty() ? "{" : ",", python_string(key), python_string(owner));
  }
  return out + "\n}";
}

}  // namespace etstream
