// SPDX-License-Identifier: BSD-3-Clause
//
// The layout of torch.export.save in torch 2.13: data/weights/MODEL_weights_config.json and
// data/constants/MODEL_constants_config.json describe the tensors of each model
// (torch/_export/serde/schema.py), whose bytes are the members beside them.
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "flatbuffer/json/json_reader.h"
#include "formats/torch/torch_file.h"

namespace etstream {
namespace {

using Kind = JsonReader::Kind;

/// The names of the schema's ScalarType, by number.
constexpr std::array<std::string_view, 36> kExportedTypes = {"",
                                                             "uint8",
                                                             "int8",
                                                             "int16",
                                                             "int32",
                                                             "int64",
                                                             "float16",
                                                             "float32",
                                                             "float64",
                                                             "complex32",
                                                             "complex64",
                                                             "complex128",
                                                             "bool",
                                                             "bfloat16",
                                                             "",
                                                             "",
                                                             "",
                                                             "",
                                                             "",
                                                             "",
                                                             "",
                                                             "",
                                                             "",
                                                             "",
                                                             "",
                                                             "",
                                                             "",
                                                             "",
                                                             "uint16",
                                                             "float8_e4m3fn",
                                                             "float8_e5m2",
                                                             "float8_e4m3fnuz",
                                                             "float8_e5m2fnuz",
                                                             "float8_e8m0fnu",
                                                             "uint32",
                                                             "uint64"};
constexpr std::int64_t kStrided = 7;  // the schema's Layout

struct ExportedTensor {
  std::string name;
  std::string member;  // its name in the folder of the description
  bool is_pickled = false;
  bool is_described = false;
  TorchElements elements;
};

/// Returns the number in {"as_int": 2}
Result<std::uint64_t> read_size(JsonReader& json) {
  std::optional<std::int64_t> out;
  ETSTREAM_TRY(json.members([&](std::string_view key) -> Result<void> {
    const JsonTape::Value value = json.take();
    if (key == "as_int" && value.kind == Kind::kInteger) out = value.integer;
    return {};
  }));
  if (out && *out >= 0) return static_cast<std::uint64_t>(*out);
  return json.error("expected an integer that is not negative as as_int");
}

Result<std::vector<std::uint64_t>> read_sizes(JsonReader& json) {
  constexpr std::size_t kMost = 64;
  std::vector<std::uint64_t> out;
  ETSTREAM_TRY(json.elements([&]() -> Result<void> {
    if (out.size() == kMost) return json.error(text("expected at most {} dimensions", kMost));
    ETSTREAM_ASSIGN(out.emplace_back(), read_size(json));
    return {};
  }));
  return out;
}

Result<void> read_meta(JsonReader& json, ExportedTensor& out) {
  if (json.next().kind != Kind::kObject) {
    json.take();
    return {};
  }
  return json.members([&](std::string_view key) -> Result<void> {
    if (key == "sizes" || key == "strides") {
      ETSTREAM_ASSIGN(auto sizes, read_sizes(json));
      (key == "sizes" ? out.elements.sizes : out.elements.strides) = std::move(sizes);
      return {};
    }
    if (key == "storage_offset") {
      ETSTREAM_ASSIGN(out.elements.offset, read_size(json));
      return {};
    }
    const JsonTape::Value value = json.take();
    if (key == "layout" && (value.kind != Kind::kInteger || value.integer != kStrided)) {
      return json.error("expected a strided layout, 7");
    }
    if (key != "dtype") return {};
    const bool is_number = value.kind == Kind::kInteger && value.integer > 0 &&
                           value.integer < static_cast<std::int64_t>(kExportedTypes.size());
    if (is_number) {
      out.elements.type = torch_type_of_dtype(kExportedTypes.at(static_cast<std::size_t>(value.integer)));
    }
    if (out.elements.type == nullptr) return json.error("expected the number of a type that torch 2.13 has");
    out.is_described = true;
    return {};
  });
}

Result<ExportedTensor> read_entry(JsonReader& json, std::string_view name) {
  ExportedTensor out;
  out.name = name;
  ETSTREAM_TRY(json.members([&](std::string_view key) -> Result<void> {
    if (key == "tensor_meta") return read_meta(json, out);
    const JsonTape::Value value = json.take();
    if (key == "path_name" && value.kind == Kind::kString) out.member = value.string;
    if (key == "use_pickle" && value.kind == Kind::kBool) out.is_pickled = value.boolean;
    return {};
  }));
  return out;
}

Result<std::vector<ExportedTensor>> read_config(const ByteSource& config) {
  std::vector<ExportedTensor> out;
  ETSTREAM_TRY(read_json(config, ErrorCode::kCorrupt, [&](JsonReader& json) {
    return json.members([&](std::string_view key) -> Result<void> {
      if (key != "config") {
        json.take();
        return {};
      }
      return json.members([&](std::string_view name) -> Result<void> {
        ETSTREAM_ASSIGN(out.emplace_back(), read_entry(json, name));
        return {};
      });
    });
  }));
  return out;
}

/// Reads the tensor of one description. A pickled tensor, such as one of a custom class, is a file of
/// torch.save.
Result<CheckpointTensor> tensor_of(const ExportedTensor& exported, std::string_view folder,
                                   const TorchArchive& archive, std::string name, FileBudget& budget) {
  ETSTREAM_TRY(budget.spend(name.size()));
  const std::string path = std::string(folder) + exported.member;
  const ByteSource* const bytes = archive.find(path);
  if (bytes == nullptr) {
    return error_in(ErrorCode::kCorrupt, archive.file.name(), "expected member {} for tensor {}, found none",
                    quote(path), quote(name));
  }
  if (exported.is_pickled) {
    ETSTREAM_TRY(budget.spend(bytes->size()));
    ETSTREAM_ASSIGN(const TorchArchive inner, open_torch_archive(*bytes));
    const ByteSource* const pickle = inner.find(kTorchPickle);
    auto tensors = std::vector<CheckpointTensor>();
    if (pickle != nullptr) {
      ETSTREAM_ASSIGN(tensors, saved_tensors(inner, *pickle));
    }
    if (tensors.size() == 1) {
      tensors.front().name = std::move(name);
      return std::move(tensors.front());
    }
  }
  if (exported.is_pickled || !exported.is_described) {
    return error_in(ErrorCode::kUnsupported, archive.file.name(), "{} is not a tensor, expected one in {}",
                    quote(name), quote(path));
  }
  return tensor_in(*bytes, std::move(name), exported.elements);
}

struct TensorFolder {
  std::string_view path;
  std::string_view config_ending;
};
constexpr std::array<TensorFolder, 2> kTensorFolders = {
    {{"data/weights/", "_weights_config.json"}, {"data/constants/", "_constants_config.json"}}};
constexpr std::string_view kCustomObject = "custom_obj_";  // a constant that is no tensor

}  // namespace

Result<std::vector<CheckpointTensor>> exported_tensors(const TorchArchive& archive) {
  struct Found {
    const TensorFolder* folder;
    std::string model;
    const ByteSource* file;
  };
  std::vector<Found> found;
  std::set<std::string> models;
  for (const TensorFolder& folder : kTensorFolders) {
    for (const auto& [name, file] : archive.members) {
      if (!name.starts_with(folder.path) || !name.ends_with(folder.config_ending)) continue;
      const std::size_t size = name.size() - folder.path.size() - folder.config_ending.size();
      found.push_back({&folder, name.substr(folder.path.size(), size), &file});
      models.insert(found.back().model);
    }
  }
  std::vector<CheckpointTensor> out;
  FileBudget budget(archive.file);
  for (const Found& one : found) {
    ETSTREAM_ASSIGN(const auto entries, read_config(*one.file));
    for (const ExportedTensor& entry : entries) {
      if (entry.member.starts_with(kCustomObject)) continue;
      std::string name = models.size() > 1 ? one.model + "." + entry.name : entry.name;
      ETSTREAM_ASSIGN(out.emplace_back(),
                      tensor_of(entry, one.folder->path, archive, std::move(name), budget));
    }
  }
  if (const auto repeated = first_repeated(out, &CheckpointTensor::name)) {
    return error_in(ErrorCode::kCorrupt, archive.file.name(), "tensor {} comes twice", quote(*repeated));
  }
  return out;
}

}  // namespace etstream
