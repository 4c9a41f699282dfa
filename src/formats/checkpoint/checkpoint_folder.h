// SPDX-License-Identifier: BSD-3-Clause
//
// The folder of a checkpoint: its config.json, and its weights, which may be quantised.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/checkpoint.h"
#include "etstream/result.h"

namespace etstream {

[[nodiscard]] bool is_folder(const std::string& path);
/// Returns whether there is a regular file at `path`, or a link to one.
[[nodiscard]] bool is_file(const std::string& path);

/// Returns the folder of `path` with the '/' at its end; "" for a name alone.
[[nodiscard]] std::string folder_of(std::string_view path);

/// Returns the path without parts that change nothing: "a/./b" becomes "a/b".
[[nodiscard]] std::string normal_path(const std::string& path);

/// The config.json that Hugging Face's checkpoints have beside their weights.
struct ModelConfig {
  std::string path;
  bool is_there = false;
  std::string model_type;  // "llama"; "" where the file does not say
  std::string weights;     // "transformers_weights", the name of the file that transformers opens; or ""
  /// The number of rows of a query or key projection that make up a head: "head_dim", or "hidden_size" over
  /// "num_attention_heads"; nothing if the file does not say.
  std::optional<std::uint32_t> head_dim;
  std::string quantised_by;  // "quant_method" of "quantization_config": "fp8"; "" where there is none
  /// "weight_block_size", whose default is that of transformers; empty for null.
  std::vector<std::int64_t> block_size = {128, 128};
  std::string type;  // "dtype" or "torch_dtype" of the model: "bfloat16"; "" where there is none
};

/// Reads `folder`config.json, if it exists; `folder` ends with '/' or is "". Errors: kCorrupt for a file that
/// is not JSON; those of reading.
[[nodiscard]] Result<ModelConfig> read_model_config(const std::string& folder);

/// Notes the scales of quantised numbers, by the names of tensors: see CheckpointTensor::scales.
void note_scales(std::vector<CheckpointTensor>& tensors);
/// Returns the checkpoint in which weights of FP8 that `concerns` is true for, or for their scales, have
/// become the products with these, as transformers 5 computes them, in the type of the model; their scales
/// are taken out. Returns nothing if there are none. Errors: those of refuse_quantised() for the other
/// tensors.
[[nodiscard]] Result<std::optional<Checkpoint>> apply_scales(
    const Checkpoint& checkpoint, const std::function<bool(const CheckpointTensor&)>& concerns);
/// Refuses tensors that are nothing without their scales, among those that `concerns` is true for: those with
/// noted scales, and, if none are noted, all where config.json beside a file says that it is quantised; if it
/// says by FP8, all with elements of a byte. Error: kUnsupported; those of reading config.json.
[[nodiscard]] Result<void> refuse_quantised(const Checkpoint& checkpoint,
                                            const std::function<bool(const CheckpointTensor&)>& concerns);

/// Returns the files that `folder` stands for: one file, an index, or the files of a set. Prefers what
/// transformers loads from a folder: the file that config.json names, model.safetensors, its index,
/// pytorch_model.bin, its index. Otherwise takes the only index, file or set, by the endings of names.
/// Errors: kInvalidArgument if there is none, or several, which it lists; those of reading the folder and
/// config.json.
[[nodiscard]] Result<std::vector<std::string>> files_of_folder(const std::string& folder,
                                                               const OpenFile& open_file);

/// Returns the sorted paths of the regular files in a folder whose names have one of these endings. `folder`
/// ends with '/' or is "".
[[nodiscard]] Result<std::vector<std::string>> files_in(const std::string& folder, std::string_view ending);

}  // namespace etstream
