// SPDX-License-Identifier: BSD-3-Clause
#include "formats/torch/pickle_globals.h"

#include <algorithm>
#include <array>

namespace etstream {
namespace {

using GlobalKind = PickleGlobal::Kind;

struct KnownGlobal {
  std::string_view module;
  std::string_view name;
  GlobalKind kind;
};

constexpr auto kKnownGlobals = std::to_array<KnownGlobal>({
    {"collections", "OrderedDict", GlobalKind::kDict},
    {"collections", "Counter", GlobalKind::kCounter},
    {"collections", "defaultdict", GlobalKind::kDefaultDict},
    {"builtins", "dict", GlobalKind::kDict},
    {"builtins", "list", GlobalKind::kSequence},
    {"builtins", "tuple", GlobalKind::kSequence},
    {"builtins", "set", GlobalKind::kSequence},
    {"builtins", "frozenset", GlobalKind::kSequence},
    {"builtins", "bytearray", GlobalKind::kOther},
    {"builtins", "complex", GlobalKind::kOther},
    {"builtins", "int", GlobalKind::kOther},
    {"builtins", "float", GlobalKind::kOther},
    {"builtins", "str", GlobalKind::kOther},
    {"_codecs", "encode", GlobalKind::kOther},
    {"torch", "Size", GlobalKind::kSequence},
    {"torch", "device", GlobalKind::kOther},
    {"torch", "Tensor", GlobalKind::kTensorClass},
    {"torch.nn.parameter", "Parameter", GlobalKind::kTensorClass},
    {"torch.nn.parameter", "Buffer", GlobalKind::kTensorClass},
    {"torch.serialization", "_get_layout", GlobalKind::kOther},
    {"torch", "UntypedStorage", GlobalKind::kStorage},
    {"torch.storage", "UntypedStorage", GlobalKind::kStorage},
    {"torch._utils", "_rebuild_tensor", GlobalKind::kRebuildTensor},
    {"torch._utils", "_rebuild_tensor_v2", GlobalKind::kRebuildTensor},
    {"torch._utils", "_rebuild_tensor_v3", GlobalKind::kRebuildTensorV3},
    {"torch._utils", "_rebuild_parameter", GlobalKind::kRebuildParameter},
    {"torch._utils", "_rebuild_parameter_with_state", GlobalKind::kRebuildParameter},
    {"torch._tensor", "_rebuild_from_type_v2", GlobalKind::kRebuildFromType},
    {"torch._utils", "_rebuild_wrapper_subclass", GlobalKind::kRebuildOpaque},
    {"torch._utils", "_rebuild_qtensor", GlobalKind::kRebuildOpaque},
    {"torch._utils", "_rebuild_sparse_tensor", GlobalKind::kRebuildOpaque},
    {"torch._utils", "_rebuild_nested_tensor", GlobalKind::kRebuildOpaque},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", GlobalKind::kRebuildOpaque},
    {"torch._utils", "_rebuild_device_tensor_from_numpy", GlobalKind::kRebuildOpaque},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", GlobalKind::kRebuildOpaque},
});

}  // namespace

PickleGlobal find_pickle_global(std::string_view module, std::string_view name) {
  PickleGlobal out{GlobalKind::kUnknown, nullptr, module, name};
  if (module == "__builtin__") module = "builtins";  // as Python 2, and protocol 2, have it
  const auto* const known = std::ranges::find_if(kKnownGlobals, [&](const KnownGlobal& global) {
    return global.module == module && global.name == name;
  });
  if (known != kKnownGlobals.end()) {
    out.kind = known->kind;
  } else if (module == "torch") {
    out.type = torch_type_of_dtype(name);
    if (out.type) out.kind = GlobalKind::kDtype;
    if (!out.type) out.type = torch_type_of_storage(name);
    if (out.kind == GlobalKind::kUnknown && out.type) out.kind = GlobalKind::kStorage;
  }
  return out;
}

}  // namespace etstream
