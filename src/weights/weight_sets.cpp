// SPDX-License-Identifier: BSD-3-Clause
#include "weights/weight_sets.h"
#include "etstream/file_kind.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "base/repeated.h"
#include "base/text.h"
#include "base/try.h"
#include "weights/checkpoint_folder.h"
#include "weights/model_config.h"

namespace etstream {
namespace {

std::string normal(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
}

/// Of one set; more would say nothing new.
constexpr std::size_t kMostProblems = 100;

/// Whether the first file of a set stands for all.
bool first_stands_for_all(FileKind kind) { return kind == FileKind::kGguf || kind == FileKind::kTensorData; }

std::string joined(const Error& error, std::string_view advice) {
  return text("{}; {}", error.message, advice);
}

/// The names with one run of digits in each, at the same place, taken away are equal: "part1.gguf" and
/// "part2.gguf".
bool differ_in_one_number(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t begin = 0;
  while (begin < a.size() && begin < b.size() && a[begin] == b[begin]) ++begin;
  while (begin > 0 && is_digit(a[begin - 1])) --begin;
  const auto rest = [&](std::string_view name) {
    std::size_t end = begin;
    while (end < name.size() && is_digit(name[end])) ++end;
    return name.substr(end);
  };
  return a != b && rest(a).size() < a.size() - begin && rest(b).size() < b.size() - begin &&
         rest(a) == rest(b);
}

/// The files of one set, among those that are open.
struct Group {
  struct Member {
    std::size_t given;  // its index in OpenedWeights::given
    std::size_t file;   // its index there
    std::uint64_t number;
  };
  SetPlace place;  // of the first that was given
  FileKind kind = FileKind::kSafetensors;
  std::vector<Member> members;
};

class SetOpener {
 public:
  SetOpener(const std::vector<std::string>& paths, const CheckpointOptions& options, OtherFiles others)
      : paths_(paths), options_(options), others_(others), finder_(options.open_file) {}

  Result<OpenedWeights> run() {
    for (const std::string& path : paths_) ETSTREAM_TRY(open_given(path));
    if (options_.partial) return std::move(out_);
    ETSTREAM_TRY(find_groups());
    for (auto& [set, group] : groups_) {
      if (first_stands_for_all(group.kind)) ETSTREAM_TRY(complete(group));
      check(group);
    }
    return std::move(out_);
  }

 private:
  Result<void> open_given(const std::string& path) {
    GivenWeights& given = out_.given.emplace_back();
    given.path = path;
    std::vector<std::string> files = {path};
    if (is_folder(path)) {
      ETSTREAM_ASSIGN(files, files_of_folder(path, options_.open_file));
    }
    for (const std::string& file : files) {
      ETSTREAM_ASSIGN(const ByteSource source, options_.open_file(file));
      ETSTREAM_ASSIGN(const bool is_index, begins_json_object(source));
      if (is_index) {
        ETSTREAM_TRY(open_indexed(file, source, given));
      } else {
        ETSTREAM_ASSIGN(given.files.emplace_back(), open_file(file, source));
      }
    }
    return {};
  }

  Result<WeightFile> open_file(const std::string& path, const ByteSource& source) {
    if (others_ == OtherFiles::kRefused) return open_weight_file(path, source);
    const auto kind = file_kind(source);
    const WeightFile left{path, source, FileKind::kProgram, {}, {}};
    if (!kind || !has_sets(*kind)) return left;
    auto opened = open_weight_file(path, source);
    return opened || opened.error().code != ErrorCode::kCorrupt ? std::move(opened) : left;
  }

  // The files of an index.

  Result<void> open_indexed(const std::string& path, const ByteSource& source, GivenWeights& given) {
    ETSTREAM_ASSIGN(const auto index, read_checkpoint_index(source));
    if (!index) {
      return error_in(ErrorCode::kCorrupt, source.name(),
                      "expected the index of a checkpoint, an object with weight_map");
    }
    given.index = path;
    const std::size_t problems = out_.problems.size();
    for (const auto& [name, tensors] : index->files) {
      if (out_.problems.size() - problems == kMostProblems) break;
      const std::string file = folder_of(path) + name;
      auto opened = open_one(file, [&](const ByteSource& one) { return open_indexed_file(file, one); });
      if (opened) {
        given.files.push_back(std::move(*opened));
      } else if (!is_about_file(opened.error())) {
        return std::move(opened).error();
      } else if (opened.error().code != ErrorCode::kNotFound) {
        out_.problems.push_back(std::move(opened).error());
      } else if (!options_.partial) {
        out_.problems.push_back(missing_of_index(path, *index, std::move(opened).error()));
      }
    }
    check_indexed(*index, given, problems == out_.problems.size());
    return {};
  }

  static Error missing_of_index(const std::string& path, const CheckpointIndex& index, Error error) {
    error.message =
        text("{}: names {}, of which one is missing: {}", path, counted(index.files.size(), "file"),
             joined(error, "fetch it, or take what is there with partial"));
    return error;
  }

  /// Leaves those of the files' tensors that the index says are in them, which have to be there.
  void check_indexed(const CheckpointIndex& index, GivenWeights& given, bool has_all) {
    std::unordered_map<std::string_view, std::string_view> file_of;  // by tensor, as the index has it
    for (const auto& [file, tensors] : index.files) {
      for (const std::string& tensor : tensors) file_of.emplace(tensor, file);
    }
    std::unordered_map<std::string, std::string> elsewhere;  // tensors by name: the file that has them
    std::uint64_t total = 0;
    std::uint64_t found = 0;
    for (WeightFile& file : given.files) {
      const std::string name = file.path.substr(folder_of(file.path).size());
      std::erase_if(file.tensors, [&](const CheckpointTensor& tensor) {
        const auto listed = file_of.find(tensor.name);
        if (listed != file_of.end() && listed->second == name) {
          total += tensor.data.size();
          ++found;
          return false;
        }
        if (listed == file_of.end()) {
          out_.warnings.push_back(error_in(ErrorCode::kCorrupt, given.index,
                                           "does not list tensor {} of {}, which loaders leave out",
                                           quote(tensor.name), name));
        } else {
          elsewhere.emplace(tensor.name, name);
        }
        return true;
      });
    }
    if (found < file_of.size()) {
      has_all = check_listed(index, given, elsewhere) && has_all;
    }
    if (has_all && index.total_size && *index.total_size != total && !options_.partial) {
      out_.flaws.push_back(error_in(
          ErrorCode::kCorrupt, given.index, "expected {} of tensors, as its total_size says, found {} in {}",
          counted(*index.total_size, "byte"), total, counted(given.files.size(), "file")));
    }
  }

  /// Adds the tensors that are not in their files, and returns whether there are none.
  bool check_listed(const CheckpointIndex& index, const GivenWeights& given,
                    const std::unordered_map<std::string, std::string>& elsewhere) {
    const std::size_t before = out_.problems.size();
    for (const WeightFile& file : given.files) {
      const std::string name = file.path.substr(folder_of(file.path).size());
      std::vector<std::string_view> there;
      there.reserve(file.tensors.size());
      for (const CheckpointTensor& tensor : file.tensors) there.push_back(tensor.name);
      std::ranges::sort(there);
      for (const std::string& tensor : index.files.find(name)->second) {
        if (std::ranges::binary_search(there, std::string_view(tensor))) continue;
        if (out_.problems.size() - before == kMostProblems) return false;
        const auto other = elsewhere.find(tensor);
        out_.problems.push_back(error_in(
            ErrorCode::kCorrupt, given.index, "expected tensor {} in {}, which has none of that name{}",
            quote(tensor), file.path,
            other == elsewhere.end() ? "" : text("; {} has one, and may be a copy of it", other->second)));
      }
    }
    return out_.problems.size() == before;
  }

  // The files of numbered sets, and those that an index beside them names.

  Result<void> find_groups() {
    for (std::size_t i = 0; i < out_.given.size(); ++i) {
      if (!out_.given[i].index.empty()) continue;  // all that it names is there
      for (std::size_t j = 0; j < out_.given[i].files.size(); ++j) {
        const WeightFile& file = out_.given[i].files[j];
        if (!has_sets(file.kind) || is_indexed(file.path)) continue;
        ETSTREAM_ASSIGN(auto place, finder_.place_of(file.path, file.kind, file.split));
        if (!place) continue;
        auto [group, is_new] = groups_.try_emplace(place->set);
        const Group::Member member{i, j, place->number};
        if (is_new) group->second = {std::move(*place), file.kind, {}};
        group->second.members.push_back(member);
      }
    }
    return {};
  }

  /// Whether an index that is given names the file.
  bool is_indexed(const std::string& path) const {
    return std::ranges::any_of(out_.given, [&](const GivenWeights& given) {
      return !given.index.empty() && std::ranges::any_of(given.files, [&](const WeightFile& file) {
        return normal(file.path) == normal(path);
      });
    });
  }

  const WeightFile& file_of(const Group::Member& member) const {
    return out_.given[member.given].files[member.file];
  }

  /// Opens what follows the first file, unless it is given too.
  Result<void> complete(Group& group) {
    const auto first = std::ranges::find(group.members, std::uint64_t{1}, &Group::Member::number);
    if (first == group.members.end()) return {};
    const Group::Member beginning = *first;
    std::vector<std::uint64_t> given;
    for (const Group::Member& member : group.members) given.push_back(member.number);
    std::ranges::sort(given);
    const bool has_names = group.place.name.has_value();
    if (!has_names) return find_renamed(group, beginning);
    for (std::uint64_t i = 2; i <= group.place.count; ++i) {
      if (std::ranges::binary_search(given, i)) continue;
      const std::string path = group.place.path_of(i);
      auto opened = open_one(path, [&](const ByteSource& one) { return open_weight_file(path, one); });
      if (!opened) {
        Error error = std::move(opened).error();
        error.message = text("{}: is {}, and another can't be read: {}", file_of(beginning).path,
                             describe(group.place), error.message);
        return report(group, std::move(error));
      }
      add(group, beginning.given, i, std::move(*opened));
    }
    return {};
  }

  void add(Group& group, std::size_t given, std::uint64_t number, WeightFile file) {
    auto& files = out_.given[given].files;
    group.members.push_back({given, files.size(), number});
    files.push_back(std::move(file));
  }

  /// Looks beside a GGUF file without a number in its name for those of the same set. They go by names that
  /// differ from it in one number alone, and none of them is there twice.
  Result<void> find_renamed(Group& group, const Group::Member& first) {
    const std::string path = file_of(first).path;
    const std::string folder = folder_of(path);
    const auto paths = files_in(folder, ".gguf");
    if (!paths) return report(group, paths.error());
    std::map<std::uint64_t, WeightFile> found;
    for (const std::string& other : *paths) {
      if (!differ_in_one_number(std::string_view(path).substr(folder.size()),
                                std::string_view(other).substr(folder.size()))) {
        continue;
      }
      auto opened = open_one(other, [&](const ByteSource& one) { return open_weight_file(other, one); });
      if (!opened && !is_about_file(opened.error())) return std::move(opened).error();
      if (!opened) continue;
      ETSTREAM_ASSIGN(const auto place, finder_.place_of(other, opened->kind, opened->split));
      if (!place || place->set != group.place.set) continue;
      const std::uint64_t number = place->number;
      if (std::ranges::find(group.members, number, &Group::Member::number) != group.members.end()) continue;
      const auto [before, is_new] = found.try_emplace(number, std::move(*opened));
      if (is_new) continue;
      return report(group,
                    error_in(ErrorCode::kInvalidArgument, path, "is {}, and {} and {} may both be file {}",
                             describe(group.place), before->second.path, other, number));
    }
    for (auto& [number, file] : found) add(group, first.given, number, std::move(file));
    return {};
  }

  template <class Open>
  Result<WeightFile> open_one(const std::string& path, Open open) {
    ETSTREAM_ASSIGN(const ByteSource source, options_.open_file(path));
    return open(source);
  }

  /// Takes down what is wrong with a set that can't be read whole. Errors: those that are not about a file.
  Result<void> report(Group& group, Error error) {
    if (!is_about_file(error)) return error;
    group.members.clear();
    error.message = joined(error, advice(group));
    out_.problems.push_back(std::move(error));
    return {};
  }

  /// What to give in the place of a part.
  static std::string advice(const Group& group) {
    const SetPlace& place = group.place;
    std::string whole = text("give all {}", place.count);
    if (!place.index.empty()) {
      whole = text("give {}, or all {}", place.index, place.count);
    } else if (first_stands_for_all(group.kind)) {
      const bool is_first = place.number == 1;
      const std::string first = place.name ? text("the first, {}", place.path_of(1))
                                           : std::string("the first, whose split.no is 0");
      whole = is_first ? text("have all {} beside it", place.count)
                       : text("give {}, which stands for all", first);
    }
    return whole + ", or take what is given alone with partial";
  }

  // What is decided of a set.

  void check(Group& group) {
    if (group.members.empty()) return;  // one can't be read
    const auto number = [](const Group::Member& member) { return member.number; };
    std::ranges::stable_sort(group.members, {}, number);
    if (auto error = first_flaw(group)) out_.problems.push_back(std::move(*error));
  }

  std::optional<Error> first_flaw(const Group& group) const {
    const SetPlace& place = group.place;
    const std::string& named =
        file_of(*std::ranges::find(group.members, place.number, &Group::Member::number)).path;
    if (auto error = misplaced(group)) return error;
    std::uint64_t next = 1;
    for (const Group::Member& member : group.members) {
      if (member.number > next) break;
      if (member.number == next) ++next;
    }
    if (next <= place.count) {
      return error_in(ErrorCode::kInvalidArgument, named, "is {}, and {} is not given; {}", describe(place),
                      place.path_of(next), advice(group));
    }
    return contradiction(group);
  }

  /// Returns the error of a GGUF file that is another one of the set than its name says, or of two that are
  /// the same one.
  std::optional<Error> misplaced(const Group& group) const {
    const Group::Member* before = nullptr;
    for (const Group::Member& member : group.members) {
      const WeightFile& file = file_of(member);
      if (group.kind != file.kind || (group.kind == FileKind::kGguf && !file.split)) {
        return error_in(
            ErrorCode::kCorrupt, file.path, "expected {}, found {}",
            text("file {} of {} of a set of {}", member.number, group.place.count, describe(group.kind)),
            group.kind == file.kind ? "a file that says nothing of a set" : describe(file.kind));
      }
      if (file.split && (file.split->number + 1 != member.number || file.split->count != group.place.count)) {
        return error_in(
            ErrorCode::kCorrupt, file.path,
            "expected file {} of {} of a set, found split.no {} and split.count {}: it is a copy of "
            "another file, or has the name of one",
            member.number, group.place.count, file.split->number, file.split->count);
      }
      if (before && before->number == member.number && file_of(*before).path != file.path) {
        return error_in(ErrorCode::kInvalidArgument, file.path,
                        "is file {} of {} of a set, as {} is; give one of both", member.number,
                        group.place.count, file_of(*before).path);
      }
      before = &member;
    }
    return std::nullopt;
  }

  /// Returns the error of files that can't be of one set, although none is missing.
  std::optional<Error> contradiction(const Group& group) const {
    std::vector<std::pair<std::string_view, const std::string*>> names;  // of tensors, with their file
    const WeightFile* first = nullptr;
    for (const Group::Member& member : group.members) {
      const WeightFile& file = file_of(member);
      if (first && first->path == file.path) continue;
      if (!first) first = &file;
      if (file.kind == FileKind::kTensorData && file.tensors.empty()) {
        return error_in(ErrorCode::kCorrupt, file.path, "is {} and has no data, expected some",
                        text("file {} of {} of a set", member.number, group.place.count));
      }
      if (file.split && file.split->tensors != first->split->tensors) {
        return error_in(ErrorCode::kCorrupt, file.path,
                        "expected the split.tensors.count of {}, {}, found {}: it is of another set",
                        first->path, first->split->tensors.value_or(0), file.split->tensors.value_or(0));
      }
      for (const CheckpointTensor& tensor : file.tensors) names.emplace_back(tensor.name, &file.path);
    }
    const auto repeated = first_repeated(names, [](const auto& one) { return one.first; });
    // An index may have files with a tensor in common, of which it lists one.
    if (repeated && group.place.members.empty()) {
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
                      counted(*first->split->tensors, "tensor"), names.size(), group.place.count);
    }
    return std::nullopt;
  }

  const std::vector<std::string>& paths_;
  const CheckpointOptions& options_;
  const OtherFiles others_;
  SetFinder finder_;
  OpenedWeights out_;
  std::map<std::string, Group> groups_;
};

}  // namespace

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

namespace {

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

}  // namespace

Result<std::optional<SetPlace>> SetFinder::place_of(const std::string& path, FileKind kind,
                                                    const std::optional<GgufSplit>& split) {
  if (kind != FileKind::kGguf && has_sets(kind)) return place_by_name(normal(path), kind);
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

Result<OpenedWeights> open_weights(const std::vector<std::string>& paths, const CheckpointOptions& options,
                                   OtherFiles others) {
  return SetOpener(paths, options, others).run();
}

}  // namespace etstream
