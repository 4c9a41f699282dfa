// SPDX-License-Identifier: BSD-3-Clause
#include "formats/checkpoint/weight_sets.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/checkpoint/model_config.h"
#include "formats/checkpoint/set_flaws.h"
#include "formats/checkpoint/set_place.h"

namespace etstream {
namespace {

/// The most problems that are reported about one set: more would say nothing new.
constexpr std::size_t kMostProblems = 100;

void add_advice(Error& error, const Advice& more) {
  if (!error.advice.empty()) error.advice.emplace_back("; ");
  error.advice.insert(error.advice.end(), more.begin(), more.end());
}

/// Returns whether two names differ only in one run of digits, at the same place: "part1.gguf" and
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
      return explain(source, expected_weights(),
                     error_in(ErrorCode::kCorrupt, source.name(),
                              "expected the index of a checkpoint, an object with weight_map"));
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
    error.message = text("{}: names {}, of which one is missing: {}", path,
                         counted(index.files.size(), "file"), error.message);
    add_advice(error, {"fetch it, or take what is there with ", AdviceTerm::kPartial});
    return error;
  }

  /// Keeps only the tensors that the index says are in the files. They must be there.
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
        if (file.kind == FileKind::kTorch) {
          if (auto error = flaw_of_parallel_part(file.path)) out_.problems.push_back(std::move(*error));
        }
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

  /// Returns whether one of the given indexes names the file.
  bool is_indexed(const std::string& path) const {
    return std::ranges::any_of(out_.given, [&](const GivenWeights& given) {
      return !given.index.empty() && std::ranges::any_of(given.files, [&](const WeightFile& file) {
        return normal_path(file.path) == normal_path(path);
      });
    });
  }

  const WeightFile& file_of(const Group::Member& member) const {
    return out_.given[member.given].files[member.file];
  }

  /// Opens the files that follow the first file, unless they are given too.
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

  /// Looks beside a GGUF file without a number in its name for those of the same set. Their names differ from
  /// its own in one number alone, and each is there only once.
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

  /// Records the problem of a set that can't be read whole. Errors: those that are not about a file.
  Result<void> report(Group& group, Error error) {
    if (!is_about_file(error)) return error;
    group.members.clear();
    add_advice(error, advice_on_set(group.place, group.kind));
    out_.problems.push_back(std::move(error));
    return {};
  }

  void check(Group& group) {
    if (group.members.empty()) return;  // one can't be read
    std::vector<SetMember> members;
    for (const Group::Member& member : group.members) members.push_back({member.number, &file_of(member)});
    std::ranges::stable_sort(members, {}, &SetMember::number);
    if (auto error = flaw_of_set(group.place, group.kind, members))
      out_.problems.push_back(std::move(*error));
  }

  const std::vector<std::string>& paths_;
  const CheckpointOptions& options_;
  const OtherFiles others_;
  SetFinder finder_;
  OpenedWeights out_;
  std::map<std::string, Group> groups_;
};

}  // namespace

Result<OpenedWeights> open_weights(const std::vector<std::string>& paths, const CheckpointOptions& options,
                                   OtherFiles others) {
  return SetOpener(paths, options, others).run();
}

}  // namespace etstream
