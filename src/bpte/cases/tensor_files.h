// SPDX-License-Identifier: BSD-3-Clause
//
// Tensors that a test case refers to, in files of several kinds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "etstream/result.h"
#include "etstream/tensor.h"
#include "weights/safetensors.h"

namespace etstream {

/// What a test case says of a tensor. One of `npy`, `safetensors` and `raw` is there.
struct TensorReference {
  std::optional<std::string> npy;
  std::optional<std::string> safetensors;
  std::optional<std::string> name;  // with safetensors
  std::optional<std::string> raw;
  std::optional<std::string> dtype;                // with raw
  std::optional<std::vector<std::int64_t>> shape;  // with raw
  std::optional<std::vector<std::int64_t>> dim_order;
};

/// Opens tensors; each file once.
class TensorFiles {
 public:
  /// `folder` is what relative paths start from, empty for the current folder.
  explicit TensorFiles(std::string folder) : folder_(std::move(folder)) {}

  [[nodiscard]] Result<Tensor> open(const TensorReference& reference);

 private:
  Result<Tensor> open_from_file(const TensorReference& reference);
  Result<Tensor> open_from_safetensors(const std::string& path, const std::string& name);
  Result<Tensor> open_raw(const TensorReference& reference);
  Result<ByteSource> open_file(const std::string& path);

  std::string folder_;
  std::map<std::string, ByteSource> files_;  // by path, of npy and raw tensors
  std::map<std::string, std::map<std::string, CheckpointTensor>> safetensors_;  // by path, by name
};

}  // namespace etstream
