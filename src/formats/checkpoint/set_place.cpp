// SPDX-License-Identifier: BSD-3-Clause
#include "formats/checkpoint/set_place.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/base/file_name.h"
#include "core/base/repeated.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/json/json_reader.h"
#include "formats/checkpoint/checkpoint_folder.h"

namespace etstream {
namespace {

using Kind = JsonReader::Kind;

/// Refuses the name of a shard that is not beside the index: an index must not make us read files elsewhere.
Result<void> check_file(std::string_view file) {
  if (is_file_name(file)) return {};
  return make_error(ErrorCode::kCorrupt, "expected the name of a file beside it in weight_map, found {}",
                    quote(file));
}

Result<void> read_map(JsonReader& json, CheckpointIndex& out) {
  const JsonTape::Value map = json.next();
  if (map.kind != Kind::kObject) return json.unexpected(json.take(), "an object as weight_map");
  return json.members([&](std::string_view tensor) -> Result<void> {
    const JsonTape::Value file = json.take();
    if (file.kind != Kind::kString) return json.unexpected(file, "the name of a file in weight_map");
    ETSTREAM_TRY(check_file(file.string));
    auto shard = out.files.find(file.string);
    if (shard == out.files.end()) shard = out.files.try_emplace(std::string(file.string)).first;
    shard->second.emplace_back(tensor);
    return {};
  });
}

/// Reads total_size. Some writers give it as a number with a point, and others omit it.
Result<void> read_metadata(JsonReader& json, CheckpointIndex& out) {
  if (json.next().kind != Kind::kObject) {
    json.take();
    return {};
  }
  return json.members([&](std::string_view key) -> Result<void> {
    constexpr double kMost = 9007199254740992;  // up to which a double has all integers
    const JsonTape::Value value = json.take();
    if (key != "total_size") return {};
    if (value.kind == Kind::kInteger && value.integer >= 0) {
      out.total_size = static_cast<std::uint64_t>(value.integer);
    } else if (value.kind == Kind::kDouble && value.number >= 0 && value.number <= kMost) {
      out.total_size = static_cast<std::uint64_t>(value.number);
    }
    return {};
  });
}

/// Refuses a tensor that comes twice, in one file or in two.
Result<void> check_names(const ByteSource& file, const CheckpointIndex& index) {
  std::vector<std::string_view> names;
  for (const auto& [shard, tensors] : index.files) names.insert(names.end(), tensors.begin(), tensors.end());
  const auto repeated = first_repeated(names);
  if (!repeated) return {};
  return error_in(ErrorCode::kCorrupt, file.name(), "tensor {} comes twice", quote(*repeated));
}

constexpr std::string_view kMiddle = "-of-";
constexpr std::size_t kMostDigits = 9;  // which fit 32 bits

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Returns the number that a text begins with.
std::uint32_t number_at(std::string_view text) {
  std::uint32_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

std::optional<ShardName> parse_name(const std::string& path) {
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

Result<std::optional<CheckpointIndex>> read_checkpoint_index(const ByteSource& file) {
  CheckpointIndex out;
  bool has_map = false;
  ETSTREAM_TRY(read_json(file, ErrorCode::kCorrupt, [&](JsonReader& json) {
    return json.members([&](std::string_view key) -> Result<void> {
      if (key == "weight_map") {
        if (std::exchange(has_map, true)) return json.error("expected weight_map once, found a key");
        return read_map(json, out);
      }
      if (key == "metadata") return read_metadata(json, out);
      json.take();
      return {};
    });
  }));
  if (!has_map) return std::optional<CheckpointIndex>();
  ETSTREAM_TRY(check_names(file, out));
  return std::optional(std::move(out));
}

std::string ShardName::path_of(std::uint64_t other) const {
  const std::string written = std::to_string(other);
  return begin + std::string(digits - std::min(digits, written.size()), '0') + written + end;
}

std::optional<ShardName> shard_name(const std::string& path) {
  const std::filesystem::path given(path);
  auto found = parse_name(given.lexically_normal().string());
  std::error_code ignored;
  if (found || !std::filesystem::is_symlink(given, ignored)) return found;
  const auto file = std::filesystem::canonical(given, ignored);
  return ignored ? std::nullopt : parse_name(file.string());
}

bool has_sets(FileKind kind) noexcept {
  return kind == FileKind::kSafetensors || kind == FileKind::kGguf || kind == FileKind::kTensorData ||
         kind == FileKind::kTorch;
}

std::string describe(const SetPlace& place) {
  return text("file {} of {} of a set", place.number, place.count);
}

std::string SetPlace::path_of(std::uint64_t other) const {
  if (name) return name->path_of(is_from_zero ? other - 1 : other);
  if (other <= members.size()) return members[static_cast<std::size_t>(other) - 1];
  return text("file {}", other);
}

SetPlace place_of_split(const std::string& path, const GgufSplit& split) {
  SetPlace out;
  out.count = split.count;
  auto name = shard_name(path);
  if (name && name->count == split.count && name->number > 0) {
    out.set = name->set();
    out.number = name->number;  // as others take it; whether it is that file is checked later
    out.name = std::move(name);
  } else {
    out.set = text("{} files of {} tensors", split.count, split.tensors.value_or(0));
    out.number = std::uint64_t{split.number} + 1;
  }
  return out;
}

Result<std::optional<SetPlace>> SetFinder::place_of(const std::string& path, FileKind kind,
                                                    const std::optional<GgufSplit>& split) {
  if (kind != FileKind::kGguf && has_sets(kind)) return place_by_name(normal_path(path), kind);
  return split ? std::optional(place_of_split(path, *split)) : std::nullopt;
}

Result<std::optional<SetPlace>> SetFinder::place_by_name(const std::string& path, FileKind kind) {
  SetPlace out;
  const FoundIndex* index = nullptr;
  if (kind == FileKind::kSafetensors || kind == FileKind::kTorch) {
    ETSTREAM_ASSIGN(index, index_of(path));
  }
  if (index) out.index = index->path;
  if (auto name = shard_name(path)) {
    out.is_from_zero = name->number == 0 || is_file(name->path_of(0));
    out.set = name->set();
    out.number = std::uint64_t{name->number} + (out.is_from_zero ? 1 : 0);
    out.count = name->count;
    out.name = std::move(name);
    return out.number <= out.count ? std::optional(std::move(out)) : std::nullopt;
  }
  if (!index || index->index.files.size() < 2) return std::optional<SetPlace>();
  out.set = index->path;
  out.count = index->index.files.size();
  for (const auto& [file, tensors] : index->index.files) {
    out.members.push_back(folder_of(path) + file);
    if (out.members.back() == path) out.number = out.members.size();
  }
  return std::optional(std::move(out));
}

Result<void> SetFinder::find_indexes(const std::string& folder, std::vector<FoundIndex>& out) const {
  const auto paths = files_in(folder, ".index.json");
  if (!paths) return {};
  for (const std::string& path : *paths) {
    const auto file = open_file_(path);
    auto index = file ? read_checkpoint_index(*file) : file.error();
    if (!index && !is_about_file(index.error())) return std::move(index).error();
    if (index && *index) out.push_back({path, std::move(**index)});
  }
  return {};
}

Result<const SetFinder::FoundIndex*> SetFinder::index_of(const std::string& path) {
  const std::string folder = folder_of(path);
  const auto [found, is_new] = indexes_.try_emplace(folder);
  if (is_new) ETSTREAM_TRY(find_indexes(folder, found->second));
  for (const FoundIndex& one : found->second) {
    if (one.index.files.contains(std::string_view(path).substr(folder.size()))) return &one;
  }
  return nullptr;
}

}  // namespace etstream
