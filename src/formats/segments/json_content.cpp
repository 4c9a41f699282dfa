// SPDX-License-Identifier: BSD-3-Clause
#include "formats/segments/json_content.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace etstream {
namespace {

/// Returns whether a JSON object or array begins so, rather than a length at the start of a binary format.
bool begins_json(std::string_view text) {
  if (text.empty() || (text.front() != '{' && text.front() != '[')) return false;
  const std::string_view next = trimmed(text.substr(1));
  if (next.empty()) return false;
  if (next.front() == '"' || next.front() == (text.front() == '{' ? '}' : ']')) return true;
  return text.front() == '[' &&
         std::string_view("[{-0123456789tfn").find(next.front()) != std::string_view::npos;
}

/// Returns the keys of a JSON object that `text` begins with, as they are spelled there.
std::vector<std::string_view> json_keys(std::string_view text) {
  std::vector<std::string_view> out;
  if (!text.starts_with('{')) return out;
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '{' || text[at] == '[') ++depth;
    if (text[at] == '}' || text[at] == ']') --depth;
    if (text[at] != '"') continue;
    const std::size_t begin = ++at;
    while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2U : 1U;
    if (at >= text.size()) break;
    const std::string_view word = text.substr(begin, at - begin);
    if (depth == 1 && trimmed(text.substr(at + 1)).starts_with(':')) out.push_back(word);
  }
  return out;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

std::optional<JsonContent> json_content(std::string_view text) {
  const std::string_view words = trimmed(text);
  if (!begins_json(words)) return std::nullopt;
  const auto keys = json_keys(words);
  const auto mentions = [&](std::string_view key) { return std::ranges::find(keys, key) != keys.end(); };
  if (mentions("weight_map")) return JsonContent::kCheckpointIndex;
  if (mentions("execution_plan")) return JsonContent::kProgram;
  if (mentions("model_type") || mentions("architectures")) return JsonContent::kModelConfig;
  if (words.find("\"inputs\"") != std::string_view::npos) return JsonContent::kTestCases;
  return JsonContent::kOther;
}

std::optional<JsonContent> json_content(const ByteSource& file) {
  std::array<char, 1024> bytes{};
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), file.size()));
  if (!file.read_at(0, std::as_writable_bytes(std::span(bytes).first(size)))) return std::nullopt;
  return json_content(std::string_view(bytes.data(), size));
}

}  // namespace etstream
