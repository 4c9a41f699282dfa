// SPDX-License-Identifier: BSD-3-Clause
//
// The classes and functions that pickles of tensors ask for.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/torch/torch_types.h"

namespace etstream {

struct PickleGlobal {
  enum class Kind : std::uint8_t {
    kUnknown,           // a part of tensors of kinds that are not read, or a reason to refuse the pickle
    kDict,              // collections.OrderedDict, dict
    kCounter,           // collections.Counter, which counts what is no dict
    kDefaultDict,       // collections.defaultdict, whose first argument makes values
    kSequence,          // list, tuple, set, torch.Size
    kOther,             // what is left aside: torch.device, bytearray
    kTensorClass,       // torch.Tensor, torch.nn.parameter.Parameter
    kDtype,             // torch.float32
    kStorage,           // torch.FloatStorage
    kRebuildTensor,     // (storage, offset, sizes, strides, ...)
    kRebuildTensorV3,   // the same with a dtype
    kRebuildParameter,  // (tensor, ...)
    kRebuildFromType,   // (function, class, its arguments, state)
    kRebuildOpaque,     // of a tensor that has more than elements: sparse, quantised, of a wrapper's class
  };
  Kind kind = Kind::kOther;
  const TorchType* type = nullptr;  // of a dtype or a typed storage
  std::string_view module;
  std::string_view name;
};

/// Returns kUnknown for a name that is not known to be harmless.
[[nodiscard]] PickleGlobal find_pickle_global(std::string_view module, std::string_view name);

}  // namespace etstream
