// SPDX-License-Identifier: BSD-3-Clause
#include "formats/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/packed_file.h"
#include "etstream/tensor.h"
#include "flatbuffer/json/json_reader.h"
#include "formats/checkpoint/weight_sets.h"
#include "formats/gguf/gguf.h"
#include "formats/tensor/converted_floats.h"
#include "formats/tensor/scaled_floats.h"

namespace etstream {
namespace {

namespace fs = std::filesystem;
using Kind = JsonReader::Kind;

/// Takes the value of a member if it says how the weights are quantised.
Result<bool> read_quantisation(JsonReader& json, std::string_view key, ModelConfig& out) {
  const bool is_quantisation = key == "quantization_config" || key == "compression_config";
  if (!is_quantisation || json.next().kind != Kind::kObject) return false;
  ETSTREAM_TRY(json.members([&](std::string_view inner) -> Result<void> {
    if (inner == "weight_block_size" && json.next().kind == Kind::kArray) {
      out.block_size.clear();
      return json.elements([&]() -> Result<void> {
        out.block_size.push_back(json.take().integer);
        return {};
      });
    }
    const JsonTape::Value value = json.take();
    if (inner == "weight_block_size" && value.kind == Kind::kNull) out.block_size.clear();
    if (out.quantised_by.empty()) out.quantised_by = "no quant_method";
    if (inner == "quant_method" && value.kind == Kind::kString) out.quantised_by = value.string;
    return {};
  }));
  return true;
}

Result<void> read_members(JsonReader& json, ModelConfig& out) {
  if (json.next().kind != Kind::kObject) return {};
  std::uint32_t hidden_size = 0;
  std::uint32_t heads = 0;
  ETSTREAM_TRY(json.members([&](std::string_view key) -> Result<void> {
    ETSTREAM_ASSIGN(const bool is_taken, read_quantisation(json, key, out));
    if (is_taken) return {};
    if (key == "text_config" && json.next().kind == Kind::kObject) {
      return json.members([&](std::string_view inner) -> Result<void> {
        ETSTREAM_ASSIGN(const bool is_taken_there, read_quantisation(json, inner, out));
        if (!is_taken_there) json.take();
        return {};
      });
    }
    const JsonTape::Value value = json.take();
    if (value.kind == Kind::kString) {
      if (key == "model_type") out.model_type = value.string;
      if (key == "transformers_weights") out.weights = value.string;
      if (key == "dtype" || (key == "torch_dtype" && out.type.empty())) out.type = value.string;
    }
    if (value.kind != Kind::kInteger || value.integer <= 0 || value.integer > INT32_MAX) return {};
    const auto number = static_cast<std::uint32_t>(value.integer);
    if (key == "head_dim") out.head_dim = number;
    if (key == "hidden_size") hidden_size = number;
    if (key == "num_attention_heads") heads = number;
    return {};
  }));
  if (!out.head_dim && heads != 0 && hidden_size != 0 && hidden_size % heads == 0) {
    out.head_dim = hidden_size / heads;
  }
  return {};
}

/// The names of weights in the order in which transformers looks for them.
constexpr std::string_view kPreferred[] = {"model.safetensors", "model.safetensors.index.json",
                                           "pytorch_model.bin", "pytorch_model.bin.index.json"};
/// Changes to weights that transformers applies to those of a folder with kAdapterConfig.
constexpr std::string_view kAdapters[] = {"adapter_model.safetensors", "adapter_model.bin"};
constexpr std::string_view kAdapterConfig = "adapter_config.json";
/// The endings of other names that weights have. An index stands for the files that it names.
constexpr std::string_view kIndexEndings[] = {".safetensors.index.json", ".bin.index.json"};
constexpr std::string_view kEndings[] = {".safetensors", ".gguf", ".ptd", ".pth", ".bin"};
/// The beginning of names of weights that end in .bin, as optimizers and tokenizers are in such files too.
constexpr std::string_view kBin = "pytorch_model";

/// The files that a folder may stand for, by checkpoint.
using Candidates = std::map<std::string, std::vector<std::string>>;

/// Returns a text that the files of one set have in common. A GGUF file itself says how many there are.
Result<std::string> set_of(const std::string& path, const OpenFile& open_file) {
  if (path.ends_with(".gguf")) {
    const auto file = open_file(path);
    const auto opened = file ? open_gguf(*file) : Result<GgufFile>(file.error());
    if (!opened && !is_about_file(opened.error())) return opened.error();
    if (!opened || !opened->split) return path;
    return place_of_split(path, *opened->split).set;
  }
  const auto name = shard_name(path);
  return name ? name->set() : path;
}

Result<Candidates> candidates_in(const std::string& folder, const OpenFile& open_file) {
  Candidates out;
  std::set<std::string> indexed;
  for (const std::string_view ending : kIndexEndings) {
    ETSTREAM_ASSIGN(const auto indexes, files_in(folder, ending));
    for (const std::string& path : indexes) {
      ETSTREAM_ASSIGN(const ByteSource file, open_file(path));
      ETSTREAM_ASSIGN(const auto index, read_checkpoint_index(file));
      if (!index) continue;
      for (const auto& [name, tensors] : index->files) indexed.insert(folder + name);
      out[path] = {path};
    }
  }
  for (const std::string_view ending : kEndings) {
    ETSTREAM_ASSIGN(const auto paths, files_in(folder, ending));
    for (const std::string& path : paths) {
      const bool is_other = ending == ".bin" && !path.substr(folder.size()).starts_with(kBin);
      if (is_other || indexed.contains(path)) continue;
      ETSTREAM_ASSIGN(const std::string set, set_of(path, open_file));
      out[set].push_back(path);
    }
  }
  return out;
}

/// The ends of the names of quantised numbers and of their scales, behind what both begin with: of FP8, GPTQ,
/// AWQ, bitsandbytes, compressed-tensors, MXFP4, HQQ, quanto and torchao.
struct ScaledNames {
  std::string_view numbers;
  std::string_view scales;
};
constexpr ScaledNames kScaledNames[] = {
    {"", "_scale_inv"},   {"", "_scale"},        {"", "_scales"},        {"", ".absmax"},
    {"weight", "scale"},  {"weight", "scales"},  {"weight", "SCB"},      {"qweight", "scales"},
    {"W_q", "scale"},     {"_packed", "_scale"}, {"_blocks", "_scales"}, {"._data", "._scale"},
    {"_qdata", "_scale"},
};

/// The quant_method whose scales are applied, as Fp8Dequantize of transformers does, and the end of their
/// names.
constexpr std::string_view kFp8 = "fp8";
constexpr std::string_view kFp8Scales = "_scale_inv";

bool is_plain_float(ScalarType type) { return is_floating_point(type) && item_size(type) > 1; }
bool is_plain_float(const CheckpointTensor& tensor) {
  return tensor.layout && is_plain_float(tensor.layout->scalar_type);
}

/// Returns the sizes of the blocks that have a scale each; nothing for scales that do not fit. transformers
/// divides a matrix evenly among its scales, which is wrong where config.json says another size.
std::optional<MatrixBlocks> blocks_of(const TensorLayout& weight, const TensorLayout& scales,
                                      const std::vector<std::int64_t>& block_size) {
  const auto is_row_by_row = [](const TensorLayout& layout) {
    return layout.dim_order == contiguous_dim_order(layout.sizes.size());
  };
  const bool is_one = std::ranges::all_of(scales.sizes, [](std::int32_t size) { return size == 1; });
  const std::vector<std::int32_t> counts = is_one ? std::vector{1, 1} : scales.sizes;
  if (weight.sizes.size() != 2 || counts.size() != 2) return std::nullopt;
  if (!is_row_by_row(weight) || !is_row_by_row(scales)) return std::nullopt;
  std::uint64_t blocks[2];
  for (std::size_t i = 0; i < 2; ++i) {
    if (counts[i] < 1 || weight.sizes[i] % counts[i] != 0) return std::nullopt;
    const std::int64_t size = weight.sizes[i] / counts[i];
    const std::int64_t told = block_size.size() == 2 ? block_size[i] : 0;
    const bool fits = is_one || block_size.empty() || size == told || (counts[i] == 1 && size < told);
    if (!fits) return std::nullopt;
    blocks[i] = static_cast<std::uint64_t>(size);
  }
  return MatrixBlocks{static_cast<std::uint64_t>(weight.sizes[1]), blocks[0], blocks[1]};
}

/// Returns the type that a model in `folder` has where config.json has none: that of the first tensor, by
/// name, in the first file.
std::string type_of_first(const Checkpoint& checkpoint, const std::string& folder) {
  const CheckpointTensor* first = nullptr;
  std::string file;
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    const std::string path = tensor.data.name();
    if (file.empty() && folder_of(path) == folder) file = path;
    if (path == file && is_plain_float(tensor) && (!first || tensor.name < first->name)) first = &tensor;
  }
  return first ? std::string(name_of(first->layout->scalar_type)) : "";
}

/// Multiplies a weight by its scales, if they are as transformers takes them. It computes in float32.
Result<bool> scale(CheckpointTensor& weight, const ModelConfig& config) {
  const CheckpointTensor& scales = *weight.own_scales;
  const auto type = find_scalar_type(config.type);
  const auto blocks = blocks_of(*weight.layout, *scales.layout, config.block_size);
  if (config.quantised_by != kFp8 || !type || !is_plain_float(*type) || !blocks) return false;
  constexpr ScalarType kFloat = ScalarType::kFloat32;
  ETSTREAM_ASSIGN(ByteSource floats, convert_floats(weight.data, weight.layout->scalar_type, kFloat));
  ETSTREAM_ASSIGN(ByteSource factors, convert_floats(scales.data, scales.layout->scalar_type, kFloat));
  floats = scale_blocks(std::move(floats), std::move(factors), *blocks);
  ETSTREAM_ASSIGN(weight.data, convert_floats(std::move(floats), kFloat, *type));
  weight.layout->scalar_type = *type;
  weight.type = name_of(*type);
  weight.scales = {};
  weight.own_scales = nullptr;
  return true;
}

}  // namespace

void note_scales(std::vector<CheckpointTensor>& tensors) {
  const auto may_be_scales = [](const CheckpointTensor& tensor) {
    return std::ranges::any_of(kScaledNames,
                               [&](const ScaledNames& ends) { return tensor.name.ends_with(ends.scales); });
  };
  if (std::ranges::none_of(tensors, may_be_scales)) return;
  std::vector<std::pair<std::string_view, CheckpointTensor*>> numbers;  // by name
  for (CheckpointTensor& tensor : tensors) {
    if (!is_plain_float(tensor)) numbers.emplace_back(tensor.name, &tensor);
  }
  std::ranges::sort(numbers);
  for (CheckpointTensor& tensor : tensors) {
    for (const ScaledNames& ends : kScaledNames) {
      if (!tensor.name.ends_with(ends.scales)) continue;
      const std::string name =
          tensor.name.substr(0, tensor.name.size() - ends.scales.size()).append(ends.numbers);
      auto found = std::ranges::lower_bound(numbers, name, {}, &decltype(numbers)::value_type::first);
      for (; found != numbers.end() && found->first == name; ++found) {
        CheckpointTensor& scaled = *found->second;
        scaled.scales = tensor.scales = ends.scales;
        const bool is_fp8 = ends.scales == kFp8Scales && name.ends_with("weight") && is_plain_float(tensor) &&
                            scaled.layout && is_floating_point(scaled.layout->scalar_type);
        if (is_fp8 && !scaled.own_scales) scaled.own_scales = std::make_shared<CheckpointTensor>(tensor);
      }
    }
  }
}

Result<std::optional<Checkpoint>> apply_scales(const Checkpoint& checkpoint,
                                               const std::function<bool(const CheckpointTensor&)>& concerns) {
  std::optional<Checkpoint> out;
  std::map<std::string, ModelConfig> configs;  // by folder
  std::set<SourcePlace> taken;
  std::set<std::string> inputs;  // the names of scales of activations
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const CheckpointTensor& weight = checkpoint.tensors[i];
    if (!weight.own_scales || (!concerns(weight) && !concerns(*weight.own_scales))) continue;
    const auto [config, is_new] = configs.try_emplace(folder_of(weight.data.name()));
    if (is_new) {
      ETSTREAM_ASSIGN(config->second, read_model_config(config->first));
      if (config->second.type.empty()) config->second.type = type_of_first(checkpoint, config->first);
    }
    CheckpointTensor scaled = weight;
    ETSTREAM_ASSIGN(const bool is_scaled, scale(scaled, config->second));
    if (!is_scaled) continue;
    if (!out) out = checkpoint;
    out->tensors[i] = std::move(scaled);
    taken.insert(weight.own_scales->data.place());
    inputs.insert(weight.name.substr(0, weight.name.rfind('.') + 1).append("activation_scale"));
  }
  if (out) {
    std::erase_if(out->tensors, [&](const CheckpointTensor& tensor) {
      return (tensor.scales == kFp8Scales && taken.contains(tensor.data.place())) ||
             inputs.contains(tensor.name);
    });
  }
  ETSTREAM_TRY(refuse_quantised(out ? *out : checkpoint, concerns));
  return out;
}

Result<void> refuse_quantised(const Checkpoint& checkpoint,
                              const std::function<bool(const CheckpointTensor&)>& concerns) {
  const CheckpointTensor* scaled = nullptr;
  bool concerns_any = false;
  bool concerns_bytes = false;
  bool has_scales = false;
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    has_scales = has_scales || !tensor.scales.empty();
    if (!concerns(tensor)) continue;
    concerns_any = true;
    concerns_bytes = concerns_bytes || !tensor.layout || item_size(tensor.layout->scalar_type) == 1;
    if (!scaled && !tensor.scales.empty()) scaled = &tensor;
  }
  if (!scaled && !concerns_bytes && (has_scales || !concerns_any)) return {};
  std::set<std::string> folders;
  for (const std::string& file : checkpoint.files) folders.insert(folder_of(file));
  std::optional<Error> error;
  for (const std::string& folder : folders) {
    ETSTREAM_ASSIGN(const ModelConfig config, read_model_config(folder));
    const bool is_about = config.quantised_by == kFp8 ? !scaled && concerns_bytes : scaled || !has_scales;
    if (config.quantised_by.empty() || error || !is_about) continue;
    error = error_in(ErrorCode::kUnsupported, config.path,
                     "says that the weights are quantised by {}, and etstream does not apply their scales",
                     quote(config.quantised_by));
  }
  if (!error && scaled) {
    error = error_in(ErrorCode::kUnsupported, scaled->data.name(),
                     "tensor {} is part of a quantised weight, as a name with {} says, and etstream does not "
                     "apply its scales",
                     quote(scaled->name), quote(scaled->scales));
  }
  if (!error) return {};
  return with_advice(std::move(*error),
                     {"save the model dequantised first, or keep names and types as they are"});
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) ||
         fs::is_regular_file(path + std::string(kPackedSuffix), ignored);
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string folder_of(std::string_view path) { return std::string(path.substr(0, path.rfind('/') + 1)); }

std::string normal_path(const std::string& path) { return fs::path(path).lexically_normal().string(); }

Result<std::vector<std::string>> files_in(const std::string& folder, std::string_view ending) {
  std::vector<std::string> out;
  std::error_code failed;
  fs::directory_iterator entries(folder.empty() ? "." : folder, failed);
  for (; !failed && entries != fs::directory_iterator(); entries.increment(failed)) {
    const std::string found = entries->path().filename().string();
    const std::string name(unpacked_name(found));
    if (name.ends_with(ending) && is_file(folder + name)) out.push_back(folder + name);
  }
  if (failed) return error_in(ErrorCode::kIo, folder, "cannot list the folder: {}", failed.message());
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());  // a file, and the same one packed
  return out;
}

Result<ModelConfig> read_model_config(const std::string& folder) {
  ModelConfig out;
  out.path = folder + "config.json";
  const auto file = ByteSource::file(out.path);
  if (!file) {
    if (file.error().code == ErrorCode::kNotFound) return out;
    return file.error();
  }
  out.is_there = true;
  ETSTREAM_TRY(
      read_json(*file, ErrorCode::kCorrupt, [&](JsonReader& json) { return read_members(json, out); }));
  return out;
}

Result<std::vector<std::string>> files_of_folder(const std::string& folder, const OpenFile& open_file) {
  using Paths = std::vector<std::string>;
  const std::string base = folder.ends_with('/') ? folder : folder + "/";
  ETSTREAM_ASSIGN(const ModelConfig config, read_model_config(base));
  if (is_file_name(config.weights)) return Paths{base + config.weights};
  for (const std::string_view name : kPreferred) {
    std::string path = base + std::string(name);
    if (!is_file(path)) continue;
    for (const std::string_view adapter : kAdapters) {
      if (!is_file(text("{}{}", base, adapter)) || !is_file(text("{}{}", base, kAdapterConfig))) continue;
      return with_advice(error_in(ErrorCode::kInvalidArgument, folder,
                                  "is a folder with {} and {}, which changes its weights", name, adapter),
                         {text("merge them with peft's merge_and_unload(), or give {} itself", name)});
    }
    return Paths{std::move(path)};
  }
  ETSTREAM_ASSIGN(Candidates found, candidates_in(base, open_file));
  if (found.size() == 1) return std::move(found.begin()->second);
  if (found.empty()) {
    return with_advice(
        error_in(ErrorCode::kInvalidArgument, folder,
                 "is a folder without weights: expected model.safetensors, model.safetensors.index.json, "
                 "pytorch_model.bin, or another safetensors, GGUF, .pth or .ptd file"),
        {"give the file itself"});
  }
  std::string names;
  for (const auto& [set, paths] : found) {
    names += (names.empty() ? "" : ", ") + printable(paths.front().substr(base.size()));
    if (paths.size() > 1) names += text(" (the first of {})", paths.size());
  }
  return with_advice(error_in(ErrorCode::kInvalidArgument, folder,
                              "is a folder with weights of several kinds or models: {}", names),
                     {"give one of them"});
}

}  // namespace etstream
