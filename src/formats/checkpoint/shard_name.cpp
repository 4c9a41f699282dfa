// SPDX-License-Identifier: BSD-3-Clause
#include "formats/checkpoint/shard_name.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

namespace etstream {
namespace {

constexpr std::string_view kMiddle = "-of-";
constexpr std::size_t kMostDigits = 9;  // which fit 32 bits

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Returns the number that a text begins with.
std::uint32_t number_at(std::string_view text) {
  std::uint32_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

std::optional<ShardName> parse(const std::string& path) {
  const std::size_t middle = path.rfind(kMiddle);
  const std::size_t name = path.rfind('/') + 1;
  if (middle == std::string::npos) return std::nullopt;
  std::size_t begin = middle;
  while (begin > name && is_digit(path[begin - 1])) --begin;
  const std::size_t count = middle + kMiddle.size();
  std::size_t end = count;
  while (is_digit(path[end])) ++end;
  const auto fits = [](std::size_t digits) { return digits > 0 && digits <= kMostDigits; };
  if (!fits(middle - begin) || !fits(end - count)) return std::nullopt;
  if (begin == name || std::string_view("-_.").find(path[begin - 1]) == std::string_view::npos) {
    return std::nullopt;
  }
  if (path[end] != '.') return std::nullopt;
  ShardName out{path.substr(0, begin), path.substr(middle), middle - begin};
  out.number = number_at(std::string_view(path).substr(begin));
  out.count = number_at(std::string_view(path).substr(count));
  if (out.count < 2 || out.number > out.count) return std::nullopt;
  return out;
}

}  // namespace

std::string ShardName::path_of(std::uint64_t other) const {
  const std::string written = std::to_string(other);
  return begin + std::string(digits - std::min(digits, written.size()), '0') + written + end;
}

std::optional<ShardName> shard_name(const std::string& path) {
  const std::filesystem::path given(path);
  auto found = parse(given.lexically_normal().string());
  std::error_code ignored;
  if (found || !std::filesystem::is_symlink(given, ignored)) return found;
  const auto file = std::filesystem::canonical(given, ignored);
  return ignored ? std::nullopt : parse(file.string());
}

}  // namespace etstream
