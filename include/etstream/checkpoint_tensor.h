// SPDX-License-Identifier: BSD-3-Clause
//
// The tensors of a checkpoint, as read from and written to each format of weights.
//
//   etstream::Checkpoint checkpoint;
//   checkpoint.tensors.push_back({"scale", "F32", etstream::TensorLayout{}, etstream::ByteSource::zeros(4)});
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/tensor_layout.h"

namespace etstream {

/// A tensor with its name, whose data stays in the file.
struct CheckpointTensor {
  std::string name;
  /// The type as the file spells it: "BF16", "Q4_0"; "" for a backend's opaque data, which has no type.
  std::string type;
  /// The layout of the tensor, from which the size of `data` follows. Empty for opaque data, and for types
  /// that ExecuTorch's tensors can't have, such as quantised blocks.
  std::optional<TensorLayout> layout;
  ByteSource data;
  /// The shape of a tensor without a layout, outermost dimension first, if the file says it. It counts
  /// elements, also of types with several in a byte.
  std::optional<std::vector<std::uint64_t>> shape = std::nullopt;
  /// For quantised numbers, and for the tensor of their scales, the end of the latter's name: "_scale_inv".
  /// "" for other tensors.
  std::string_view scales = {};
  /// For numbers of FP8, the tensor of their scales, if it was opened with them.
  std::shared_ptr<const CheckpointTensor> own_scales = nullptr;
};

/// The tensors of a file, or of all files of a set.
struct Checkpoint {
  std::vector<std::string> files;         // the paths of all files that were opened
  std::vector<CheckpointTensor> tensors;  // in file order
};

}  // namespace etstream
