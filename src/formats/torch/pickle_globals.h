// SPDX-License-Identifier: BSD-3-Clause
//
// The classes and functions that pickles of tensors ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/torch/torch_types.h"

namespace etstream {

struct PickleGlobal {
  enum class Kind : std::uint8_t {
    kDict,              // collections.OrderedDict, dict
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
  };
  Kind kind = Kind::kOther;
  const TorchType* type = nullptr;  // of a dtype or a typed storage
};

/// Returns nothing for a name that is not known to be harmless.
[[nodiscard]] std::optional<PickleGlobal> find_pickle_global(std::string_view module, std::string_view name);

}  // namespace etstream
