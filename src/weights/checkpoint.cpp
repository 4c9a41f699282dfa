// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/checkpoint.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/repeated.h"
#include "base/text.h"
#include "base/try.h"
#include "container/findings.h"
#include "container/json_object.h"
#include "etstream/file_kind.h"
#include "etstream/native_package_file.h"
#include "etstream/program.h"
#include "etstream/tensor_data_file.h"
#include "etstream/tensor_data_shards.h"
#include "flatbuffer/json_reader.h"
#include "pte/rewrite/editable_program.h"
#include "pte/rewrite/external_data.h"
#include "weights/gguf.h"
#include "weights/safetensors.h"

namespace etstream {
namespace {

using Kind = JsonReader::Kind;

/// The names of tensors by the file they are in, from the index of a checkpoint in several safetensors files
/// (huggingface_hub's model.safetensors.index.json): {"metadata": {...}, "weight_map": {"NAME": "FILE",
/// ...}}.
using Shards = std::map<std::string, std::vector<std::string>, std::less<>>;

/// Refuses the name of a shard that is not beside the index: an index must not choose files elsewhere to
/// read.
Result<void> check_file(std::string_view file) {
  if (!file.empty() && file != "." && file != ".." &&
      file.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos) {
    return {};
  }
  return make_error(ErrorCode::kCorrupt, "expected the name of a file beside it in weight_map, found {}",
                    quote(file));
}

Result<void> read_map(JsonReader& json, Shards& shards) {
  const JsonTape::Value map = json.next();
  if (map.kind != Kind::kObject) return json.unexpected(json.take(), "an object as weight_map");
  return json.members([&](std::string_view tensor) -> Result<void> {
    const JsonTape::Value file = json.take();
    if (file.kind != Kind::kString) return json.unexpected(file, "the name of a file in weight_map");
    ETSTREAM_TRY(check_file(file.string));
    auto shard = shards.find(file.string);
    if (shard == shards.end()) shard = shards.try_emplace(std::string(file.string)).first;
    shard->second.emplace_back(tensor);
    return {};
  });
}

/// Returns none for an index without a weight_map.
Result<std::optional<Shards>> read_index(const ByteSource& index) {
  std::optional<Shards> shards;
  ETSTREAM_TRY(read_json(index, ErrorCode::kCorrupt, [&](JsonReader& json) {
    return json.members([&](std::string_view key) -> Result<void> {
      if (key == "weight_map" && shards) return json.error("expected weight_map once, found a key");
      if (key == "weight_map") return read_map(json, shards.emplace());
      json.take();
      return {};
    });
  }));
  return shards;
}

using Tensors = std::vector<CheckpointTensor>;

/// Tensors of `entries`, which have a key and a layout each; `data_of` gives the bytes of one.
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

template <class File>
Result<void> require_sound(const File& file) {
  Findings findings;
  ETSTREAM_TRY(file.verify(findings));
  if (findings.ok()) return {};
  return first_error(ErrorCode::kCorrupt, file.file().name(), findings);
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
    // A sound file may have more, which ExecuTorch does not read.
    ETSTREAM_ASSIGN(const std::uint64_t size, byte_size(entry.layout->scalar_type, entry.layout->sizes));
    ETSTREAM_ASSIGN(entry.data, entry.data.slice(0, size));
  }
  return tensors_of(std::move(entries), [](const NamedTensorData& entry) { return entry.data; });
}

/// The paths of the files that follow `path`, the first of `count`, as gguf-split of llama.cpp names them;
/// none if it has another name.
std::vector<std::string> further_splits(const std::string& path, std::uint32_t count) {
  const auto ending = [&](std::uint32_t i) { return text("-{:05}-of-{:05}.gguf", i, count); };
  std::vector<std::string> out;
  if (count < 2 || !path.ends_with(ending(1))) return out;
  const std::string stem = path.substr(0, path.size() - ending(1).size());
  for (std::uint32_t i = 2; i <= count; ++i) out.push_back(stem + ending(i));
  return out;
}

class CheckpointOpener {
 public:
  explicit CheckpointOpener(const OpenFile& open_file) : open_file_(open_file) {}

  Result<Checkpoint> run(const std::string& path) {
    ETSTREAM_ASSIGN(const ByteSource file, open(path));
    ETSTREAM_ASSIGN(const bool is_index, begins_json_object(file));
    ETSTREAM_TRY(is_index ? add_shards(file, path) : add_any(file, path));
    return std::move(out_);
  }

 private:
  Result<ByteSource> open(const std::string& path) {
    ETSTREAM_ASSIGN(ByteSource file, open_file_(path));
    out_.files.push_back(path);
    return file;
  }

  Result<void> add(Result<Tensors> tensors) {
    if (!tensors) return std::move(tensors).error();
    std::ranges::move(*tensors, std::back_inserter(out_.tensors));
    return {};
  }

  template <class Read>
  Result<void> add_files(std::span<const std::string> paths, Read read) {
    for (const std::string& path : paths) {
      ETSTREAM_ASSIGN(const ByteSource file, open(path));
      ETSTREAM_TRY(add(read(file)));
    }
    return {};
  }

  Result<void> add_any(const ByteSource& file, const std::string& path) {
    const auto other = [&] {
      return error_in(ErrorCode::kUnsupported, file.name(),
                      "expected weights: safetensors, or the index of several such (.index.json), GGUF, "
                      "a program (.pte), tensor data (.ptd) or a package (.ptn)");
    };
    const auto kind = file_kind(file);
    if (!kind) return kind.error().code == ErrorCode::kUnsupported ? other() : kind.error();
    switch (*kind) {
      case FileKind::kSafetensors: {
        ETSTREAM_ASSIGN(SafetensorsFile opened, open_safetensors(file));
        return add(std::move(opened.tensors));
      }
      case FileKind::kGguf: {
        ETSTREAM_ASSIGN(GgufFile first, open_gguf(file));
        const auto further = further_splits(path, first.split_count);
        ETSTREAM_TRY(add(checkpoint_tensors(std::move(first), file)));
        return add_files(further, [](const ByteSource& split) -> Result<Tensors> {
          ETSTREAM_ASSIGN(GgufFile opened, open_gguf(split));
          return checkpoint_tensors(std::move(opened), split);
        });
      }
      case FileKind::kProgram:
        return add(program_tensors(file));
      case FileKind::kTensorData: {
        ETSTREAM_TRY(add(tensor_data_tensors(file)));
        const auto shards = with_all_shards({path});
        return add_files(std::span(shards).subspan(1), &tensor_data_tensors);
      }
      case FileKind::kNativePackage: {
        ETSTREAM_ASSIGN(const NativePackageFile package, NativePackageFile::open(file));
        return add(package.tensors());
      }
      case FileKind::kBundledProgram:
      case FileKind::kSegmentedBundle:
      case FileKind::kFatContainer:
        return other();
    }
    std::abort();
  }

  /// Adds the tensors that `index` lists, from the files beside it that it names, file by file by their
  /// names. Tensors of a file that the index does not list for it are left out, as in loaders of such
  /// checkpoints.
  Result<void> add_shards(const ByteSource& index, const std::string& path) {
    ETSTREAM_ASSIGN(const auto shards, read_index(index));
    if (!shards) {
      return error_in(ErrorCode::kCorrupt, index.name(),
                      "expected the index of a safetensors checkpoint, an object with weight_map");
    }
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    for (const auto& [file, names] : *shards) ETSTREAM_TRY(add_shard(index, folder + file, names));
    return {};
  }

  /// Adds those of a shard's tensors that the index says are in it, which are all there.
  Result<void> add_shard(const ByteSource& index, const std::string& path,
                         const std::vector<std::string>& names) {
    if (const auto repeated = first_repeated(names)) {
      return error_in(ErrorCode::kCorrupt, index.name(), "tensor {} comes twice", quote(*repeated));
    }
    ETSTREAM_ASSIGN(const ByteSource file, open(path));
    ETSTREAM_ASSIGN(SafetensorsFile shard, open_safetensors(file));
    std::set<std::string_view> missing(names.begin(), names.end());
    for (CheckpointTensor& tensor : shard.tensors) {
      if (missing.erase(tensor.name) != 0) out_.tensors.push_back(std::move(tensor));
    }
    if (missing.empty()) return {};
    return error_in(ErrorCode::kCorrupt, index.name(),
                    "expected tensor {} in {}, which has none of that name", quote(*missing.begin()), path);
  }

  const OpenFile& open_file_;
  Checkpoint out_;
};

}  // namespace

Result<Checkpoint> open_checkpoint(const std::string& path, const OpenFile& open_file) {
  return without_exceptions([&] { return CheckpointOpener(open_file).run(path); });
}

}  // namespace etstream
