// SPDX-License-Identifier: BSD-3-Clause
#include "formats/checkpoint/weight_sets.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/findings.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/same_bytes.h"
#include "etstream/native_package.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/tensor_data.h"
#include "flatbuffer/json/json_reader.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/pte/rewrite/editable_program.h"
#include "formats/safetensors/safetensors.h"
#include "formats/torch/torch_file.h"

namespace etstream {
namespace {

using Tensors = std::vector<CheckpointTensor>;

/// Makes tensors of `entries`, which have a key and a layout each; `data_of` gives the bytes of one.
template <class Entry, class DataOf>
Tensors tensors_of(std::vector<Entry> entries, const DataOf& data_of) {
  Tensors out;
  out.reserve(entries.size());
  for (Entry& entry : entries) {
    std::string type(entry.layout ? name_of(entry.layout->scalar_type) : "");
    out.push_back({std::move(entry.key), std::move(type), std::move(entry.layout), data_of(entry)});
  }
  return out;
}

/// Returns the tensors that moving the program's constants out gives.
Result<Tensors> program_tensors(const ByteSource& file) {
  ETSTREAM_ASSIGN(const ProgramFile program, ProgramFile::open(file));
  ETSTREAM_TRY(require_sound(program));
  ETSTREAM_ASSIGN(EditableProgram editable, read_editable_program(program));
  ETSTREAM_ASSIGN(TensorData weights, move_constants_out(editable, {}));
  return tensors_of(std::move(weights.entries),
                    [&](const TensorData::Entry& entry) { return weights.buffers[entry.buffer].data; });
}

Result<Tensors> tensor_data_tensors(const ByteSource& file) {
  ETSTREAM_ASSIGN(const TensorDataFile weights, TensorDataFile::open(file));
  ETSTREAM_TRY(require_sound(weights));
  ETSTREAM_ASSIGN(auto entries, weights.entries());
  for (NamedTensorData& entry : entries) {
    if (!entry.layout) continue;
    // A sound file may have more bytes, which ExecuTorch does not read.
    ETSTREAM_ASSIGN(const std::uint64_t size, byte_size(entry.layout->scalar_type, entry.layout->sizes));
    ETSTREAM_ASSIGN(entry.data, entry.data.slice(0, size));
  }
  return tensors_of(std::move(entries), [](const NamedTensorData& entry) { return entry.data; });
}

/// Returns the files that open_weight_file() takes, and the index of several.
Expected expected_weights() {
  return {
      "weights: safetensors, or the index of several such (.index.json), GGUF, a file of torch.save (.pth, "
      ".bin), a program (.pte), tensor data (.ptd) or a package (.ptn)",
      {FileKind::kSafetensors, FileKind::kGguf, FileKind::kTorch, FileKind::kProgram, FileKind::kTensorData,
       FileKind::kNativePackage},
      JsonContent::kCheckpointIndex};
}

Error no_weights(const ByteSource& file) {
  return explain(file, expected_weights(),
                 error_in(ErrorCode::kUnsupported, file.name(), "expected {}", expected_weights().what));
}

}  // namespace

Result<WeightFile> open_weight_file(const std::string& path, const ByteSource& file) {
  const auto kind = file_kind(file);
  if (kind) return open_weight_file(path, file, *kind);
  return kind.error().code == ErrorCode::kUnsupported ? no_weights(file) : kind.error();
}

Result<WeightFile> open_weight_file(const std::string& path, const ByteSource& file, FileKind kind) {
  WeightFile out{path, file, kind, {}, {}};
  switch (kind) {
    case FileKind::kSafetensors: {
      ETSTREAM_ASSIGN(SafetensorsFile opened, open_safetensors(file));
      out.tensors = std::move(opened.tensors);
      return out;
    }
    case FileKind::kGguf: {
      ETSTREAM_ASSIGN(GgufFile opened, open_gguf(file));
      out.split = opened.split;
      out.version = opened.version;
      out.metadata = opened.metadata;
      out.tensors = checkpoint_tensors(std::move(opened), file);
      return out;
    }
    case FileKind::kTorch: {
      ETSTREAM_ASSIGN(out.tensors, open_torch_file(file));
      return out;
    }
    case FileKind::kProgram: {
      ETSTREAM_ASSIGN(out.tensors, program_tensors(file));
      return out;
    }
    case FileKind::kTensorData: {
      ETSTREAM_ASSIGN(out.tensors, tensor_data_tensors(file));
      return out;
    }
    case FileKind::kNativePackage: {
      ETSTREAM_ASSIGN(const NativePackageFile package, NativePackageFile::open(file));
      out.tensors = package.tensors();
      return out;
    }
    case FileKind::kBundledProgram:
    case FileKind::kSegmentedBundle:
    case FileKind::kFatContainer:
    case FileKind::kUpdate:
      return no_weights(file);
  }
  std::abort();
}

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

namespace {

/// Finds the places of files. Holds the indexes of the folders that it has looked into.
class SetFinder {
 public:
  explicit SetFinder(const OpenFile& open_file) : open_file_(open_file) {}

  /// Returns nothing for a file that is no part of a set. `split` is what a GGUF file says about itself. An
  /// index beside the file that can't be read is ignored. Errors: kInterrupted, kOutOfMemory.
  Result<std::optional<SetPlace>> place_of(const std::string& path, FileKind kind,
                                           const std::optional<GgufSplit>& split) {
    if (kind != FileKind::kGguf && has_sets(kind)) return place_by_name(normal_path(path), kind);
    return split ? std::optional(place_of_split(path, *split)) : std::nullopt;
  }

 private:
  struct FoundIndex {
    std::string path;
    CheckpointIndex index;
  };

  Result<std::optional<SetPlace>> place_by_name(const std::string& path, FileKind kind) {
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

  Result<void> find_indexes(const std::string& folder, std::vector<FoundIndex>& out) const {
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

  Result<const FoundIndex*> index_of(const std::string& path) {
    const std::string folder = folder_of(path);
    const auto [found, is_new] = indexes_.try_emplace(folder);
    if (is_new) ETSTREAM_TRY(find_indexes(folder, found->second));
    for (const FoundIndex& one : found->second) {
      if (one.index.files.contains(std::string_view(path).substr(folder.size()))) return &one;
    }
    return nullptr;
  }

  const OpenFile& open_file_;
  std::map<std::string, std::vector<FoundIndex>> indexes_;  // by folder
};

/// Opens a file that an index names: safetensors, or a file of torch.save. Errors: those of opening that
/// kind.
Result<WeightFile> open_indexed_file(const std::string& path, const ByteSource& file) {
  const auto kind = file_kind(file);
  if (kind && *kind == FileKind::kTorch) return open_weight_file(path, file);
  ETSTREAM_ASSIGN(SafetensorsFile opened, open_safetensors(file));
  return WeightFile{path, file, FileKind::kSafetensors, std::move(opened.tensors), {}};
}

/// The most problems that are reported about one set: more would say nothing new.
constexpr std::size_t kMostProblems = 100;

void add_advice(Error& error, const Advice& more) {
  if (!error.advice.empty()) error.advice.emplace_back("; ");
  error.advice.insert(error.advice.end(), more.begin(), more.end());
}

/// An open file of a set. Its number comes from its name, its index or the file itself, from 1 on.
struct SetMember {
  std::uint64_t number = 0;
  const WeightFile* file = nullptr;
};

/// Returns whether the first file of a set stands for all, as its name tells those of the others.
bool first_stands_for_all(const SetPlace& place, FileKind kind) {
  return place.name && (kind == FileKind::kGguf || kind == FileKind::kTensorData);
}

/// Says which files to give in place of the part of a set that was given first.
Advice advice_on_set(const SetPlace& place, FileKind kind) {
  std::string whole = text("give all {}", place.count);
  if (!place.index.empty()) {
    whole = text("give {}, or all {}", place.index, place.count);
  } else if (first_stands_for_all(place, kind)) {
    whole = place.number == 1 ? text("have all {} beside it", place.count)
                              : text("give the first, {}, which stands for all", place.path_of(1));
  }
  return {whole + ", or take what is given alone with ", AdviceTerm::kPartial};
}

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
      return error_in(ErrorCode::kCorrupt, *files[1], "has tensor {}, as {} of the same set has",
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

/// Returns the flaw of a set, or nothing: a file of another set or kind, two files for one number, a missing
/// file, a tensor in two files, other sums than the files say. `place` and `kind` are those of the file that
/// was given first; `members` are ordered by number, and include that file.
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
      if (first_stands_for_all(group.place, group.kind)) ETSTREAM_TRY(complete(group));
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
      auto opened = open_one(file, open_indexed_file);
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
    return check_indexed(*index, given, problems);
  }

  static Error missing_of_index(const std::string& path, const CheckpointIndex& index, Error error) {
    error.message = text("{}: names {}, of which one is missing: {}", path,
                         counted(index.files.size(), "file"), error.message);
    add_advice(error, {"fetch it, or take what is there with ", AdviceTerm::kPartial});
    return error;
  }

  /// Keeps one tensor of each name, as transformers does, which reads all files in order and keeps the last
  /// of a name. Where that is not the one that the index names, both must be the same. What the index names
  /// must be there. `problems` is the number of problems before those of this index.
  Result<void> check_indexed(const CheckpointIndex& index, GivenWeights& given, std::size_t problems) {
    struct Listed {
      std::string_view file;
      const CheckpointTensor* tensor = nullptr;
    };
    std::map<std::string_view, Listed> listed;  // by name
    for (const auto& [file, tensors] : index.files) {
      for (const std::string& tensor : tensors) listed.emplace(tensor, Listed{file});
    }
    const auto add_problem = [&](Error problem) {
      if (out_.problems.size() - problems < kMostProblems) out_.problems.push_back(std::move(problem));
    };
    std::uint64_t total = 0;
    std::set<const CheckpointTensor*> others;
    Comparisons comparisons;
    for (const WeightFile& file : given.files) {
      const auto& [name, names] = *index.files.find(file.path.substr(folder_of(file.path).size()));
      for (const CheckpointTensor& tensor : file.tensors) {
        const auto [found, is_not_listed] = listed.try_emplace(tensor.name, Listed{name});
        const CheckpointTensor*& first = found->second.tensor;
        if (is_not_listed) {
          out_.warnings.push_back(error_in(ErrorCode::kCorrupt, given.index,
                                           "does not list tensor {} of {}, which is read all the same",
                                           quote(tensor.name), name));
        }
        if (found->second.file == name) {
          first = &tensor;
          if (!is_not_listed) total += tensor.data.size();
          continue;
        }
        others.insert(&tensor);
        if (first == nullptr) continue;  // the one that the index names comes later
        bool is_same = first->type == tensor.type && first->layout == tensor.layout &&
                       first->shape == tensor.shape && first->data.size() == tensor.data.size();
        if (is_same) {
          ETSTREAM_ASSIGN(const auto difference, comparisons.first_difference(first->data, tensor.data));
          is_same = !difference;
        }
        if (is_same) continue;
        add_problem(with_advice(error_in(ErrorCode::kCorrupt, file.path,
                                         "has another tensor {} than {}, where {} has it: some loaders take "
                                         "the one, some the other",
                                         quote(tensor.name), found->second.file, given.index),
                                {"take it out of one of the files"}));
      }
      for (const std::string& tensor : names) {
        if (listed[tensor].tensor != nullptr) continue;
        add_problem(error_in(ErrorCode::kCorrupt, given.index,
                             "expected tensor {} in {}, which has none of that name", quote(tensor),
                             file.path));
      }
    }
    for (WeightFile& file : given.files) {
      std::erase_if(file.tensors, [&](const CheckpointTensor& tensor) { return others.contains(&tensor); });
    }
    const bool has_all = problems == out_.problems.size();
    if (has_all && index.total_size && *index.total_size != total && !options_.partial) {
      out_.flaws.push_back(error_in(
          ErrorCode::kCorrupt, given.index, "expected {} of tensors, as its total_size says, found {} in {}",
          counted(*index.total_size, "byte"), total, counted(given.files.size(), "file")));
    }
    return {};
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
    for (std::uint64_t i = 2; i <= group.place.count; ++i) {
      if (std::ranges::binary_search(given, i)) continue;
      const std::string path = group.place.path_of(i);
      auto opened = open_one(path, open_weight_file);
      if (!opened) {
        Error error = std::move(opened).error();
        error.message = text("{}: is {}, and another can't be read: {}", file_of(beginning).path,
                             describe(group.place), error.message);
        if (!is_about_file(error)) return error;
        group.members.clear();
        add_advice(error, advice_on_set(group.place, group.kind));
        out_.problems.push_back(std::move(error));
        return {};
      }
      auto& files = out_.given[beginning.given].files;
      group.members.push_back({beginning.given, files.size(), i});
      files.push_back(std::move(*opened));
    }
    return {};
  }

  Result<WeightFile> open_one(const std::string& path,
                              Result<WeightFile> (*open)(const std::string&, const ByteSource&)) {
    ETSTREAM_ASSIGN(const ByteSource source, options_.open_file(path));
    return open(path, source);
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

Result<std::optional<SetPlace>> place_of_file(const std::string& path, FileKind kind,
                                              const std::optional<GgufSplit>& split,
                                              const OpenFile& open_file) {
  return SetFinder(open_file).place_of(path, kind, split);
}

Result<OpenedWeights> open_weights(const std::vector<std::string>& paths, const CheckpointOptions& options,
                                   OtherFiles others) {
  return SetOpener(paths, options, others).run();
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
