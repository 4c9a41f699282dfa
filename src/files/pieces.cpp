// SPDX-License-Identifier: BSD-3-Clause
#include "files/pieces.h"

#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "core/io/packed_file.h"
#include "etstream/file_kind.h"
#include "etstream/inspect.h"
#include "etstream/packed_file.h"
#include "etstream/program.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/checkpoint/weight_sets.h"
#include "formats/gguf/gguf.h"
#include "formats/pte/program_model.h"
#include "formats/tensor/dimensions.h"

namespace etstream {
namespace {

template <class File>
Result<AnyFile> as_any(Result<File> opened) {
  if (!opened) return std::move(opened).error();
  return AnyFile(std::move(opened).value());
}

}  // namespace

std::string type_text(const CheckpointTensor& tensor) {
  if (tensor.layout) return describe(*tensor.layout);
  return printable(tensor.type) + (tensor.shape ? " " + list_text(*tensor.shape) : "");
}

Result<AnyFile> open_any(const ByteSource& file) {
  ETSTREAM_ASSIGN(const FileKind kind, file_kind(file));
  return open_any(file, kind);
}

Result<AnyFile> open_any(const ByteSource& file, FileKind kind) {
  switch (kind) {
    case FileKind::kProgram:
      return as_any(ProgramFile::open(file));
    case FileKind::kBundledProgram:
    case FileKind::kSegmentedBundle:
      return as_any(BundledProgramFile::open(file));
    case FileKind::kTensorData:
      return as_any(TensorDataFile::open(file));
    case FileKind::kSafetensors:
    case FileKind::kGguf:
    case FileKind::kTorch:
      return as_any(open_weight_file(file.name(), file, kind));
    case FileKind::kFatContainer:
      return as_any(FatContainerFile::open(file));
    case FileKind::kNativePackage:
      return as_any(NativePackageFile::open(file));
    case FileKind::kUpdate:
      return needs_base(ErrorCode::kUnsupported, file.name());
  }
  std::abort();
}

FileKind kind_of(const AnyFile& file) noexcept {
  return match(
      file, [](const ProgramFile&) { return FileKind::kProgram; },
      [](const BundledProgramFile& bundle) {
        return bundle.format() == BundleFormat::kSegmented ? FileKind::kSegmentedBundle
                                                           : FileKind::kBundledProgram;
      },
      [](const TensorDataFile&) { return FileKind::kTensorData; },
      [](const WeightFile& checkpoint) { return checkpoint.kind; },
      [](const FatContainerFile&) { return FileKind::kFatContainer; },
      [](const NativePackageFile&) { return FileKind::kNativePackage; });
}

const ByteSource& source_of(const AnyFile& file) noexcept {
  return match(
      file, [](const WeightFile& checkpoint) -> const ByteSource& { return checkpoint.file; },
      [](const auto& opened) -> const ByteSource& { return opened.file(); });
}

std::string path_word(std::string_view name, bool is_last) {
  std::string out;
  while (!name.empty()) {
    const auto [size, code] = character_at(name);
    const std::string_view character = name.substr(0, std::max<std::size_t>(size, 1));
    const bool is_mark = character == "%" || character == "#" || (character == "/" && !is_last);
    if (size > 0 && !is_control(code) && !is_mark) {
      out += character;
    } else {
      for (const char c : character) out += text("%{:02X}", static_cast<unsigned char>(c));
    }
    name.remove_prefix(character.size());
  }
  return out;
}

std::string numbered(std::string path, std::uint32_t before) {
  return before == 0 ? std::move(path) : text("{}#{}", path, before + 1);
}

std::string data_path(std::string_view above, TensorStorage storage, std::uint32_t index) {
  if (index == 0) return {};
  if (storage == TensorStorage::kConstant) return text("{}constants/{}", above, index);
  return storage == TensorStorage::kMutable ? text("{}initial/{}", above, index) : "";
}

std::string named_path(std::string_view above, std::string_view key) {
  return text("{}named/{}", above, path_word(key, true));
}

std::vector<std::string> part_paths(std::string_view delegate, const DelegatePayload& payload) {
  const auto before = repeats(payload.parts, &PayloadPart::name);
  std::vector<std::string> out;
  for (const PayloadPart& part : payload.parts) {
    out.push_back(numbered(text("{}/{}", delegate, path_word(part.name, true)), before[out.size()]));
  }
  return out;
}

std::string delegate_path(std::string_view method, std::size_t number) {
  return text("{}/delegate {}", method, number);
}

std::vector<std::string> method_paths(std::string_view above, std::span<const std::string> methods) {
  constexpr std::array kFirstWords = {"flatbuffer", "segments", "constants", "initial", "named"};
  const auto before = repeats(methods);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < methods.size(); ++i) {
    std::string word = path_word(methods[i], false);
    if (std::ranges::find(kFirstWords, word) != kFirstWords.end()) {
      word = text("%{:02X}{}", static_cast<unsigned char>(word.front()), word.substr(1));
    }
    out.push_back(numbered(text("{}{}", above, word), before[i]));
  }
  return out;
}

namespace {

/// Shows the pieces of a file to a visitor. `above` goes before their paths.
class PieceWalk {
 public:
  PieceWalk(const ByteSource& whole, Pieces pieces, const VisitPiece& visit)
      : is_for_all_(pieces == Pieces::kAll), visit_(visit), budget_(whole) {}

  Result<void> walk(const AnyFile& file, std::string_view above) {
    return match(file, [&](const auto& opened) { return add_file(opened, above); });
  }
  Result<void> walk(const BundledProgramFile& bundle, const Result<ProgramFile>& program,
                    std::string_view above) {
    if (is_for_all_ || !program) {
      add({.path = text("{}program", above),
           .kind = ContentKind::kContainer,
           .what = program ? "" : "not one that can be read",
           .data = bundle.program()});
    }
    if (program) ETSTREAM_TRY(add_file(*program, text("{}program/", above)));
    std::map<std::string, std::uint32_t> cases;  // that suites before have, by method
    for (const auto& suite : bundle.suites()) {
      std::uint32_t& number = cases[suite.method_name];
      for (std::uint32_t i = 0; i < suite.test_cases && !is_over_; ++i, ++number) {
        ETSTREAM_ASSIGN(const MethodTestCase test_case, bundle.test_case(suite, i));
        const std::string path = text("{}cases/{}/{}/", above, path_word(suite.method_name, false), number);
        add_values(test_case.inputs, path + "input");
        add_values(test_case.expected_outputs, path + "expected output");
      }
    }
    return {};
  }

 private:
  void add(const Piece& piece) {
    if (!is_over_) is_over_ = !visit_(piece);
  }

  /// Adds the data that `all` have under names.
  template <class Entry, class PieceOf>
  void add_named(std::string_view above, const std::vector<Entry>& all, std::string Entry::*name,
                 PieceOf piece_of) {
    const auto before = repeats(all, name);
    for (std::size_t i = 0; i < all.size() && !is_over_; ++i) {
      Piece piece = piece_of(all[i]);
      piece.path = numbered(named_path(above, all[i].*name), before[i]);
      piece.key = all[i].*name;
      add(piece);
    }
  }

  /// Adds the pieces that programs and tensor data have: a flatbuffer, and segments.
  template <class File>
  Result<void> add_segments(const File& file, std::string_view above, bool with_uses) {
    ETSTREAM_ASSIGN(ByteSource flatbuffer, file.file().slice(0, file.flatbuffer_size()));
    add({.path = text("{}flatbuffer", above), .kind = ContentKind::kTables, .data = std::move(flatbuffer)});
    ETSTREAM_ASSIGN(const auto segments, file.segments());
    for (std::size_t i = 0; i < segments.size() && !is_over_; ++i) {
      ETSTREAM_ASSIGN(ByteSource data, file.file().slice(segments[i].offset, segments[i].size));
      add({.path = text("{}segments/{}", above, i),
           .kind = ContentKind::kContainer,
           .what = with_uses ? segments[i].use : "",
           .data = std::move(data)});
    }
    return {};
  }

  Result<void> add_file(const ProgramFile& program, std::string_view above) {
    ETSTREAM_TRY(add_segments(program, above, true));
    if (!is_for_all_ || is_over_) return {};
    ETSTREAM_TRY(add_methods(program, above));
    if (is_over_) return {};
    ETSTREAM_ASSIGN(const auto named, pte::read_named_data(program.model()));
    add_named(above, named, &pte::NamedPayload::key, [](const pte::NamedPayload& each) {
      return Piece{.path = {}, .kind = ContentKind::kNamedData, .data = each.data};
    });
    return {};
  }

  Result<void> add_methods(const ProgramFile& program, std::string_view above) {
    ETSTREAM_ASSIGN(const auto names, program.model().method_names());
    const std::vector<std::string> methods = method_paths(above, names);
    std::set<std::pair<bool, std::uint32_t>> data;  // of tensors: whether it is initial, and its number
    std::map<SourcePlace, std::string> delegates;   // the first that has the data
    for (std::uint32_t i = 0; i < methods.size() && !is_over_; ++i) {
      ETSTREAM_ASSIGN(const ProgramGraph graph, ProgramGraph::read(program, i));
      for (const GraphValue& value : graph.values) {
        const auto* const tensor = std::get_if<TensorInfo>(&value.info);
        std::string path = tensor ? data_path(above, value.storage, value.data_index) : "";
        const bool is_initial = value.storage == TensorStorage::kMutable;
        if (path.empty() || !data.emplace(is_initial, value.data_index).second) continue;
        const std::string name = value.name.empty() ? "" : text("{}, ", printable(value.name));
        add({std::move(path), is_initial ? ContentKind::kInitial : ContentKind::kTensor, value.name,
             name + describe(*tensor), TensorLayout{tensor->scalar_type, tensor->sizes, tensor->dim_order},
             value.data});
      }
      for (std::size_t j = 0; j < graph.delegates.size(); ++j) {
        const GraphDelegate& delegate = graph.delegates[j];
        std::string path = delegate_path(methods[i], j);
        delegates.try_emplace(delegate.data.place(), path);
        add({.path = std::move(path),
             .kind = ContentKind::kDelegate,
             .what = printable(delegate.backend),
             .data = delegate.data});
      }
    }
    return is_over_ ? Result<void>() : add_parts(program, delegates);
  }

  /// Adds the parts of the data of delegates. `delegates` are the paths of those that have it.
  Result<void> add_parts(const ProgramFile& program, const std::map<SourcePlace, std::string>& delegates) {
    ETSTREAM_ASSIGN(const auto payloads, read_delegate_payloads(program));
    for (const DelegatePayload& payload : payloads) {
      std::vector<std::string> paths = part_paths(delegates.at(payload.data.place()), payload);
      for (std::size_t i = 0; i < paths.size() && !is_over_; ++i) {
        const PayloadPart& part = payload.parts[i];
        ETSTREAM_ASSIGN(ByteSource data, payload.data.slice(part.offset, part.size));
        add({.path = std::move(paths[i]),
             .kind = ContentKind::kDelegate,
             .key = part.name,
             .what = payload.format,
             .data = std::move(data)});
      }
    }
    return {};
  }

  Result<void> add_file(const BundledProgramFile& bundle, std::string_view above) {
    return walk(bundle, bundle.open_program(), above);
  }

  void add_values(const std::vector<Value>& values, const std::string& path) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto* const tensor = std::get_if<Tensor>(&values[i]);
      if (!tensor) continue;
      add({text("{} {}", path, i), ContentKind::kTestData, "",
           describe(TensorInfo{tensor->scalar_type, tensor->sizes, tensor->dim_order}),
           TensorLayout{tensor->scalar_type, tensor->sizes, tensor->dim_order}, tensor->data});
    }
  }

  Result<void> add_file(const TensorDataFile& weights, std::string_view above) {
    ETSTREAM_TRY(add_segments(weights, above, false));
    ETSTREAM_ASSIGN(const auto entries, weights.entries());
    add_named(above, entries, &NamedTensorData::key, [](const NamedTensorData& each) {
      return Piece{.path = {},
                   .kind = each.layout ? ContentKind::kTensor : ContentKind::kNamedData,
                   .what = each.layout ? describe(*each.layout) : "",
                   .layout = each.layout,
                   .data = each.data};
    });
    return {};
  }

  void add_tensors(const std::vector<CheckpointTensor>& tensors, const ByteSource& file,
                   std::string_view above) {
    add_named(above, tensors, &CheckpointTensor::name, [&](const CheckpointTensor& each) {
      // Elements that are scattered, as in torch's files, are no range of the file.
      const std::string_view elsewhere = each.layout || each.shape ? ", strided" : ", in parts";
      const std::string_view how = each.data.offset_in(file) ? "" : elsewhere;
      return Piece{.path = {},
                   .kind = ContentKind::kTensor,
                   .what = text("{}{}", type_text(each), how),
                   .layout = each.layout,
                   .data = each.data};
    });
  }

  Result<void> add_file(const WeightFile& checkpoint, std::string_view above) {
    add_tensors(checkpoint.tensors, checkpoint.file, above);
    return {};
  }

  Result<void> add_file(const NativePackageFile& package, std::string_view above) {
    add({.path = text("{}graph", above), .kind = ContentKind::kTables, .data = package.graph()});
    const auto before = repeats(package.members(), &PackageMember::name);
    for (std::size_t i = 0; is_for_all_ && i < before.size() && !is_over_; ++i) {
      const PackageMember& member = package.members()[i];
      add({numbered(text("{}members/{}", above, path_word(member.name, true)), before[i]),
           ContentKind::kContainer, member.name, "", std::nullopt, member.data});
    }
    add_tensors(package.tensors(), package.file(), above);
    return {};
  }

  Result<void> add_file(const FatContainerFile& container, std::string_view above) {
    const auto before = repeats(container.payloads(), &FatPayload::name);
    std::set<SourcePlace> seen;
    for (std::size_t i = 0; i < container.payloads().size() && !is_over_; ++i) {
      const FatPayload& payload = container.payloads()[i];
      ETSTREAM_ASSIGN(const auto kind, kind_of(payload));
      const std::string path = numbered(text("{}{}", above, path_word(payload.name, false)), before[i]);
      add({path, ContentKind::kContainer, payload.name, std::string(kind ? describe(*kind) : ""),
           std::nullopt, payload.data});
      if (!is_for_all_ || !seen.insert(payload.data.place()).second) continue;
      // Like verify(), this does not enter a container in a container: it has no use, and nests could have no
      // end.
      if (!kind || *kind == FileKind::kFatContainer) continue;
      ETSTREAM_TRY(budget_.spend(payload.data.size()));
      // verify() reports the problems of a payload that can't be opened.
      if (const auto opened = open_any(payload.data)) ETSTREAM_TRY(walk(*opened, path + "/"));
    }
    return {};
  }

  bool is_for_all_;
  bool is_over_ = false;  // the visitor has seen enough
  const VisitPiece& visit_;
  FileBudget budget_;  // of files in the file
};

/// Shows the pieces of an update as it lies.
Result<void> for_each_change(const ByteSource& file, const VisitPiece& visit) {
  ETSTREAM_ASSIGN(const UpdateSummary update, read_update(file));
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < update.piece_list.size(); ++i) {
    const UpdateSummary::Piece& piece = update.piece_list[i];
    const std::uint64_t end = std::min(begin + kPiece, update.original_size);
    ETSTREAM_ASSIGN(ByteSource data, file.slice(piece.offset, piece.size));
    const std::string what = text("bytes {} to {}, of which {} change", begin, end, piece.changed_size);
    if (!visit({.path = text("changes/{}", i), .what = what, .data = std::move(data)})) break;
    begin = end;
  }
  return {};
}

/// Finds a piece by its path, and those with similar paths.
class PieceSearch {
 public:
  explicit PieceSearch(const std::string& path) : path_(path) {}

  Result<void> look_in(const ByteSource& file) {
    const auto visit = [this](const Piece& piece) { return see(piece); };
    ETSTREAM_ASSIGN(const FileKind kind, file_kind(file));
    if (kind == FileKind::kUpdate) return for_each_change(file, visit);
    ETSTREAM_ASSIGN(const AnyFile opened, open_any(file, kind));
    if (const auto* const bundle = std::get_if<BundledProgramFile>(&opened)) {
      ETSTREAM_TRY(bundle->check_hashes());
    }
    return for_each_piece(opened, Pieces::kAll, visit);
  }

  [[nodiscard]] const std::vector<ByteSource>& found() const noexcept { return found_; }
  [[nodiscard]] Error none(std::string_view file) const {
    std::vector<std::string> near;
    for (const auto& each : near_) near.push_back(each.second);
    return error_in(ErrorCode::kNotFound, file, "there is no piece {}; {} {}", quote(path_),
                    !is_near_          ? "there are"
                    : near.size() == 1 ? "near is"
                                       : "near are",
                    names_text(near));
  }

 private:
  bool see(const Piece& piece) {
    if (piece.path == path_) {
      found_.push_back(piece.data);
      return false;
    }
    note(piece.path);
    return true;
  }

  /// Keeps the paths that have the most letters with this one in common, at the beginning and at the end.
  void note(const std::string& path) {
    constexpr std::size_t kMost = 3;
    const std::size_t most = std::min(path.size(), path_.size());
    const auto first =
        std::mismatch(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(most), path_.begin());
    const auto begin = static_cast<std::size_t>(first.first - path.begin());
    const auto last = std::mismatch(path.rbegin(), path.rbegin() + static_cast<std::ptrdiff_t>(most - begin),
                                    path_.rbegin());
    const std::size_t common = begin + static_cast<std::size_t>(last.first - path.rbegin());
    const bool is_near = 2 * common > path_.size();
    if (is_near && !is_near_) near_.clear();
    is_near_ |= is_near;
    if (is_near != is_near_) return;
    const auto place =
        std::ranges::find_if(near_, [&](const auto& each) { return is_near && each.first < common; });
    near_.insert(place, {common, path});
    if (near_.size() > kMost) near_.pop_back();
  }

  const std::string& path_;
  std::vector<ByteSource> found_;
  bool is_near_ = false;
  std::vector<std::pair<std::size_t, std::string>>
      near_;  // with how many letters in common; or the first ones
};

}  // namespace

Result<void> for_each_piece(const AnyFile& file, Pieces pieces, const VisitPiece& visit) {
  return PieceWalk(source_of(file), pieces, visit).walk(file, "");
}

Result<void> for_each_part(const BundledProgramFile& bundle, const Result<ProgramFile>& program,
                           const VisitPiece& visit) {
  return PieceWalk(bundle.file(), Pieces::kOutermost, visit).walk(bundle, program, "");
}

Result<void> for_each_piece(const ByteSource& file, const VisitPiece& visit) {
  return without_exceptions([&]() -> Result<void> {
    ETSTREAM_ASSIGN(const FileKind kind, file_kind(file));
    if (kind == FileKind::kUpdate) return for_each_change(file, visit);
    ETSTREAM_ASSIGN(const AnyFile opened, open_any(file, kind));
    return for_each_piece(opened, Pieces::kAll, visit);
  });
}

Result<ByteSource> find_piece(const ByteSource& file, const std::string& path) {
  return without_exceptions([&]() -> Result<ByteSource> {
    PieceSearch search(path);
    ETSTREAM_TRY(search.look_in(file));
    if (search.found().empty()) return search.none(file.name());
    return search.found().front();
  });
}

Result<ByteSource> find_piece(const std::string& file, const std::string& path, const OpenFile& open_file) {
  return without_exceptions([&]() -> Result<ByteSource> {
    ETSTREAM_ASSIGN(const ReportedPath reported, reported_path(file, open_file));
    if (!reported.has_several) return find_piece(reported.file, path);
    ETSTREAM_ASSIGN(const OpenedWeights opened, open_weights({file}, {.open_file = open_file}));
    PieceSearch search(path);
    for (const GivenWeights& given : opened.given) {
      for (const WeightFile& each : given.files) ETSTREAM_TRY(search.look_in(each.file));
    }
    if (search.found().empty()) return search.none(file);
    if (search.found().size() == 1) return search.found().front();
    return with_advice(error_in(ErrorCode::kInvalidArgument, file, "stands for several files, and {} have {}",
                                search.found().size(), quote(path)),
                       {"give one of them"});
  });
}

Result<ReportedPath> reported_path(const std::string& path, const OpenFile& open_file) {
  ReportedPath out{path, {}, false};
  if (is_folder(path)) {
    ETSTREAM_ASSIGN(const auto files, files_of_folder(path, open_file));
    out.has_several = files.size() > 1;
    if (out.has_several) return out;
    out.path = files.front();
  }
  auto file = open_file(out.path);
  if (!file && file.error().code == ErrorCode::kUnsupported) {
    // An update has no bytes to read it by without its base, and is reported on as it lies.
    const auto raw = ByteSource::raw_file(out.path);
    const auto kind = raw ? file_kind(*raw) : raw.error();
    if (kind && *kind == FileKind::kUpdate) file = raw;
  }
  ETSTREAM_ASSIGN(out.file, std::move(file));
  ETSTREAM_ASSIGN(const bool is_json, begins_json_object(out.file));
  if (!is_json) return out;
  ETSTREAM_ASSIGN(const auto index, read_checkpoint_index(out.file));
  out.has_several = index.has_value();
  return out;
}

Result<std::optional<SetPlace>> place_in_set(const ReportedPath& path, const OpenFile& open_file) {
  const auto kind = file_kind(path.file);
  if (!kind || !has_sets(*kind)) return std::optional<SetPlace>();
  std::optional<GgufSplit> split;
  if (*kind == FileKind::kGguf) {
    ETSTREAM_ASSIGN(const GgufFile opened, open_gguf(path.file));
    split = opened.split;
  }
  return place_of_file(path.path, *kind, split, open_file);
}

}  // namespace etstream
