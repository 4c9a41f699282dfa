// SPDX-License-Identifier: BSD-3-Clause
#include "weights/torch/pickle_globals.h"

#include <algorithm>
#include <array>

namespace etstream {
namespace {

using Kind = PickleGlobal::Kind;

struct KnownGlobal {
  std::string_view module;
  std::string_view name;
  Kind kind;
};

constexpr auto kKnownGlobals = std::to_array<KnownGlobal>({
    {"collections", "OrderedDict", Kind::kDict},
    {"collections", "Counter", Kind::kDict},
    {"collections", "defaultdict", Kind::kDefaultDict},
    {"builtins", "dict", Kind::kDict},
    {"builtins", "list", Kind::kSequence},
    {"builtins", "tuple", Kind::kSequence},
    {"builtins", "set", Kind::kSequence},
    {"builtins", "frozenset", Kind::kSequence},
    {"builtins", "bytearray", Kind::kOther},
    {"builtins", "complex", Kind::kOther},
    {"builtins", "int", Kind::kOther},
    {"builtins", "float", Kind::kOther},
    {"builtins", "str", Kind::kOther},
    {"_codecs", "encode", Kind::kOther},
    {"torch", "Size", Kind::kSequence},
    {"torch", "device", Kind::kOther},
    {"torch", "Tensor", Kind::kTensorClass},
    {"torch.nn.parameter", "Parameter", Kind::kTensorClass},
    {"torch.nn.parameter", "Buffer", Kind::kTensorClass},
    {"torch.serialization", "_get_layout", Kind::kOther},
    {"torch", "UntypedStorage", Kind::kStorage},
    {"torch.storage", "UntypedStorage", Kind::kStorage},
    {"torch._utils", "_rebuild_tensor", Kind::kRebuildTensor},
    {"torch._utils", "_rebuild_tensor_v2", Kind::kRebuildTensor},
    {"torch._utils", "_rebuild_tensor_v3", Kind::kRebuildTensorV3},
    {"torch._utils", "_rebuild_parameter", Kind::kRebuildParameter},
    {"torch._utils", "_rebuild_parameter_with_state", Kind::kRebuildParameter},
    {"torch._tensor", "_rebuild_from_type_v2", Kind::kRebuildFromType},
});

}  // namespace

std::optional<PickleGlobal> find_pickle_global(std::string_view module, std::string_view name) {
  if (module == "__builtin__") module = "builtins";  // as Python 2, and protocol 2, have it
  const auto* const known = std::ranges::find_if(kKnownGlobals, [&](const KnownGlobal& global) {
    return global.module == module && global.name == name;
  });
  if (known != kKnownGlobals.end()) return PickleGlobal{known->kind, nullptr};
  if (module != "torch") return std::nullopt;
  if (const TorchType* const type = torch_type_of_dtype(name)) return PickleGlobal{Kind::kDtype, type};
  if (const TorchType* const type = torch_type_of_storage(name)) return PickleGlobal{Kind::kStorage, type};
  return std::nullopt;
}

}  // namespace etstream
