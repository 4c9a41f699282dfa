// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_metadata.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "core/base/match.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "formats/pte/program_model.h"
#include "formats/pte/program_views.h"

namespace etstream {
namespace {

ByteSource bytes_of(const void* data, std::size_t size) {
  const auto* const bytes = static_cast<const std::byte*>(data);
  return ByteSource::owned({bytes, bytes + size});
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// Parses an integer; returns nothing for other text.
Result<std::optional<std::int64_t>> integer_in(std::string_view text) {
  std::int64_t out = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  if (read.ec == std::errc::invalid_argument || read.ptr != text.data() + text.size()) {
    return std::optional<std::int64_t>();
  }
  if (read.ec == std::errc()) return std::optional(out);
  return make_error(ErrorCode::kInvalidArgument, "metadata: expected an integer of 64 bits, found {}",
                    quote(text));
}

/// Parses a number; returns nothing for other text, such as nan.
std::optional<double> double_in(std::string_view text) {
  double out = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool is_number = text.find_first_not_of("+-.0123456789eE") == std::string_view::npos;
  return is_number && read.ec == std::errc() && read.ptr == text.data() + text.size() ? std::optional(out)
                                                                                      : std::nullopt;
}

/// Parses a list of integers; returns nothing for other text.
Result<std::optional<std::vector<std::int64_t>>> list_in(std::string_view text) {
  if (!text.starts_with('[') || !text.ends_with(']')) return std::optional<std::vector<std::int64_t>>();
  std::string_view rest = text.substr(1, text.size() - 2);
  std::vector<std::int64_t> out;
  while (!trimmed(rest).empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view element = trimmed(rest.substr(0, comma));
    ETSTREAM_ASSIGN(const auto integer, integer_in(element));
    if (!integer) return std::optional<std::vector<std::int64_t>>();
    out.push_back(*integer);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return std::optional(std::move(out));
}

}  // namespace

ByteSource encode(const MetadataValue& value) {
  return match(
      value, [](const std::string& string) { return bytes_of(string.data(), string.size()); },
      [](const std::vector<std::int64_t>& list) {
        return bytes_of(list.data(), list.size() * sizeof(std::int64_t));
      },
      [](const auto& number) { return bytes_of(&number, sizeof(number)); });
}

Result<MetadataValue> parse_metadata_value(std::string_view text) {
  return without_exceptions([&]() -> Result<MetadataValue> {
    ETSTREAM_ASSIGN(const auto integer, integer_in(text));
    if (integer) return MetadataValue(*integer);
    if (const auto number = double_in(text)) return MetadataValue(*number);
    ETSTREAM_ASSIGN(auto list, list_in(text));
    if (list) return MetadataValue(std::move(*list));
    const bool is_quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
    return MetadataValue(std::string(is_quoted ? text.substr(1, text.size() - 2) : text));
  });
}

Result<std::vector<MetadataEntry>> read_metadata(const ProgramFile& program) {
  return without_exceptions([&]() -> Result<std::vector<MetadataEntry>> {
    std::vector<MetadataEntry> out;
    const pte::Program& model = program.model();
    ETSTREAM_TRY(for_each(model.named_data(), [&](const pte::NamedData& named) -> Result<void> {
      ETSTREAM_ASSIGN(const auto key, named.key());
      if (!key || !key->starts_with(kMetadataPrefix)) return {};
      ETSTREAM_ASSIGN(const std::uint32_t segment, named.segment());
      ETSTREAM_ASSIGN(ByteSource value, model.segment_data(named.position(), segment));
      out.push_back({key->substr(kMetadataPrefix.size()), std::move(value)});
      return {};
    }));
    return out;
  });
}

Result<std::string> describe(const MetadataEntry& entry) {
  return without_exceptions([&]() -> Result<std::string> {
    constexpr std::uint64_t kMost = 200;
    std::string text(static_cast<std::size_t>(std::min(kMost, entry.value.size())), '\0');
    ETSTREAM_TRY(entry.value.read_at(0, std::as_writable_bytes(std::span(text))));
    const bool is_cut = entry.value.size() > kMost;
    // The cut may go through a character.
    for (int i = 0; is_cut && i < 3 && !is_utf8(text); ++i) text.pop_back();
    const bool is_text = is_utf8(text) && std::all_of(text.begin(), text.end(), [](char c) {
                           return c == '\n' || c == '\t' || static_cast<unsigned char>(c) >= ' ';
                         });
    if (is_text) return etstream::text("\"{}\"{}", text, is_cut ? "..." : "");
    if (entry.value.size() != sizeof(std::int64_t)) return counted(entry.value.size(), "byte");
    std::int64_t number = 0;
    std::memcpy(&number, text.data(), sizeof(number));
    return std::to_string(number);
  });
}

}  // namespace etstream
