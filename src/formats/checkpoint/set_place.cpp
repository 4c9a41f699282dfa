// SPDX-License-Identifier: BSD-3-Clause
#include "formats/checkpoint/set_place.h"

#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/checkpoint/model_config.h"

namespace etstream {

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
