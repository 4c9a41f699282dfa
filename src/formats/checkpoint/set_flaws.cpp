// SPDX-License-Identifier: BSD-3-Clause
#include "formats/checkpoint/set_flaws.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/repeated.h"
#include "core/base/text.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/checkpoint/model_config.h"

namespace etstream {
namespace {

/// Returns the error about a GGUF file that has another place in the set than its name says, or about two
/// files with one place.
std::optional<Error> misplaced(const SetPlace& place, FileKind kind, const std::vector<SetMember>& members) {
  const SetMember* before = nullptr;
  for (const SetMember& member : members) {
    const WeightFile& file = *member.file;
    if (kind != file.kind || (kind == FileKind::kGguf && !file.split)) {
      return error_in(ErrorCode::kCorrupt, file.path, "expected {}, found {}",
                      text("file {} of {} of a set of {}", member.number, place.count, describe(kind)),
                      kind == file.kind ? "a file that says nothing of a set" : describe(file.kind));
    }
    if (file.split && (file.split->number + 1 != member.number || file.split->count != place.count)) {
      return error_in(
          ErrorCode::kCorrupt, file.path,
          "expected file {} of {} of a set, found split.no {} and split.count {}: it is a copy of "
          "another file, or has the name of one",
          member.number, place.count, file.split->number, file.split->count);
    }
    if (before && before->number == member.number && before->file->path != file.path) {
      return with_advice(
          error_in(ErrorCode::kInvalidArgument, file.path, "is file {} of {} of a set, as {} is",
                   member.number, place.count, before->file->path),
          {"give one of both"});
    }
    before = &member;
  }
  return std::nullopt;
}

/// Returns the error about files that can't belong to one set, although none is missing.
std::optional<Error> contradiction(const SetPlace& place, const std::vector<SetMember>& members) {
  std::vector<std::pair<std::string_view, const std::string*>> names;  // of tensors, with their file
  const WeightFile* first = nullptr;
  for (const SetMember& member : members) {
    const WeightFile& file = *member.file;
    if (first && first->path == file.path) continue;
    if (!first) first = &file;
    if (file.kind == FileKind::kTensorData && file.tensors.empty()) {
      return error_in(ErrorCode::kCorrupt, file.path, "is {} and has no data, expected some",
                      text("file {} of {} of a set", member.number, place.count));
    }
    if (file.split && file.split->tensors != first->split->tensors) {
      return error_in(ErrorCode::kCorrupt, file.path,
                      "expected the split.tensors.count of {}, {}, found {}: it is of another set",
                      first->path, first->split->tensors.value_or(0), file.split->tensors.value_or(0));
    }
    for (const CheckpointTensor& tensor : file.tensors) names.emplace_back(tensor.name, &file.path);
  }
  const auto repeated = first_repeated(names, [](const auto& one) { return one.first; });
  // An index may have files with a tensor in common, and list the tensor in one of them.
  if (repeated && place.members.empty()) {
    std::vector<const std::string*> files;
    for (const auto& [name, file] : names) {
      if (name == *repeated) files.push_back(file);
    }
    if (*files[0] != *files[1]) {
      return error_in(ErrorCode::kCorrupt, *files[1],
                      "has tensor {}, as {} of the same set has: one may be a copy of the other",
                      quote(*repeated), *files[0]);
    }
  }
  if (first->split && first->split->tensors && *first->split->tensors != names.size()) {
    return error_in(ErrorCode::kCorrupt, first->path,
                    "expected {}, as its split.tensors.count says, found {} in the {} files of the set",
                    counted(*first->split->tensors, "tensor"), names.size(), place.count);
  }
  return std::nullopt;
}

}  // namespace

bool first_stands_for_all(FileKind kind) noexcept {
  return kind == FileKind::kGguf || kind == FileKind::kTensorData;
}

Advice advice_on_set(const SetPlace& place, FileKind kind) {
  std::string whole = text("give all {}", place.count);
  if (!place.index.empty()) {
    whole = text("give {}, or all {}", place.index, place.count);
  } else if (first_stands_for_all(kind)) {
    const bool is_first = place.number == 1;
    const std::string first =
        place.name ? text("the first, {}", place.path_of(1)) : std::string("the first, whose split.no is 0");
    whole =
        is_first ? text("have all {} beside it", place.count) : text("give {}, which stands for all", first);
  }
  return {whole + ", or take what is given alone with ", AdviceTerm::kPartial};
}

std::optional<Error> flaw_of_set(const SetPlace& place, FileKind kind,
                                 const std::vector<SetMember>& members) {
  if (auto error = misplaced(place, kind, members)) return error;
  std::uint64_t next = 1;
  for (const SetMember& member : members) {
    if (member.number == next) ++next;
  }
  if (next <= place.count) {
    const SetMember& named = *std::ranges::find(members, place.number, &SetMember::number);
    return with_advice(error_in(ErrorCode::kInvalidArgument, named.file->path, "is {}, and {} is not given",
                                describe(place), place.path_of(next)),
                       advice_on_set(place, kind));
  }
  return contradiction(place, members);
}

std::optional<Error> flaw_of_parallel_part(const std::string& path) {
  constexpr std::string_view kBegin = "consolidated.";
  constexpr std::string_view kEnd = ".pth";
  const std::string folder = folder_of(path);
  std::string_view number = std::string_view(path).substr(folder.size());
  if (!number.starts_with(kBegin) || !number.ends_with(kEnd)) return std::nullopt;
  number = number.substr(kBegin.size(), number.size() - kBegin.size() - kEnd.size());
  if (number.empty() || number.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  const bool is_first = number.find_first_not_of('0') == std::string_view::npos;
  const std::string second = text("{}{}{}1{}", folder, kBegin, std::string(number.size() - 1, '0'), kEnd);
  if (is_first && !is_file(second)) return std::nullopt;
  return with_advice(
      error_in(ErrorCode::kInvalidArgument, path,
               "is one of several parts for model parallelism{}, which have slices of the same tensors",
               is_first ? text(", as {} is", second) : ""),
      {"merge them first, or take what is given alone with ", AdviceTerm::kPartial});
}

}  // namespace etstream
