// SPDX-License-Identifier: BSD-3-Clause
#include "formats/torch/pickle_values.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/base/text.h"
#include "core/base/try.h"

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

// The bytes of a pickle that are counted for what is kept, which takes at most 20 times as much memory.
constexpr std::size_t kContainer = 2;
constexpr std::size_t kItems = 2;  // for those of one container, however many: each has bytes of its own
constexpr std::size_t kTensor = 16;

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

PickleValue PickleValues::text(std::string_view text) {
  out_.texts.push_back(text);
  return {PickleValue::Kind::kText, static_cast<std::int64_t>(out_.texts.size()) - 1};
}

Result<PickleValue> PickleValues::container(PickleValue::Kind kind, PickleItems items) {
  ETSTREAM_TRY(count(kContainer));
  if (!items.empty()) ETSTREAM_TRY(count(kItems));
  out_.containers.push_back(std::move(items));
  return PickleValue{kind, static_cast<std::int64_t>(out_.containers.size()) - 1};
}

Result<void> PickleValues::extend(const PickleValue& container, const PickleItems& items) {
  PickleItems& out = items_of(container);
  if (out.empty()) ETSTREAM_TRY(count(kItems));
  out.insert(out.end(), items.begin(), items.end());
  return {};
}

const PickleGlobal* PickleValues::global_of(const PickleValue& value) const {
  return value.kind == PickleValue::Kind::kGlobal ? &globals_[static_cast<std::size_t>(value.number)]
                                                  : nullptr;
}

Result<void> PickleValues::count(std::size_t bytes) {
  constexpr std::size_t kAlways = std::size_t{256} << 10;
  counted_ += bytes;
  if (counted_ <= kAlways + reader_.taken()) return {};
  return reader_.corrupt("containers and tensors in proportion to its bytes, found the same over and over");
}

/// Returns no more items than any function takes, as a tuple may come again and again.
PickleItems PickleValues::arguments_in(const PickleValue& tuple) {
  constexpr std::size_t kMost = 8;
  const PickleItems& items = items_of(tuple);
  return {items.begin(), items.begin() + static_cast<std::ptrdiff_t>(std::min(items.size(), kMost))};
}

PickleValue PickleValues::global(std::string_view module, std::string_view name) {
  globals_.push_back(find_pickle_global(module, name));
  return {PickleValue::Kind::kGlobal, static_cast<std::int64_t>(globals_.size()) - 1};
}

std::optional<Error> PickleValues::refusal_of(const PickleValue& value) const {
  const PickleGlobal* const global = global_of(value);
  if (!global || global->kind != PickleGlobal::Kind::kUnknown) return std::nullopt;
  const std::string_view module = global->module;
  const bool is_module = module.starts_with("torch.nn.modules") || module.starts_with("__torch__");
  return with_advice(reader_.unsupported("asks for {}, and etstream knows tensors and containers only",
                                         quote(std::string(module) + "." + std::string(global->name))),
                     {"it never executes a pickle: ",
                      is_module ? "take the module's state_dict()" : "keep the tensors in a dict by name",
                      ", and save that with torch.save"});
}

Result<PickleValue> PickleValues::storage(const PickleValue& id) {
  const auto wrong = [&] {
    return reader_.corrupt("the id of a storage: 'storage', class, key, location, elements");
  };
  constexpr std::size_t kLeast = 5;
  if (id.kind != PickleValue::Kind::kTuple || items_of(id).size() < kLeast) return wrong();
  const PickleItems& parts = items_of(id);
  const PickleGlobal* const type = global_of(parts[1]);
  if (parts[0].kind != PickleValue::Kind::kText || text_of(parts[0]) != "storage" || type == nullptr ||
      type->kind != PickleGlobal::Kind::kStorage || parts[2].kind != PickleValue::Kind::kText ||
      parts[4].kind != PickleValue::Kind::kInteger || parts[4].number < 0) {
    return wrong();
  }
  const UnpickledStorage found{text_of(parts[2]), type->type, static_cast<std::uint64_t>(parts[4].number)};
  const auto number = static_cast<std::int64_t>(out_.storages.size());
  // Empty tensors of several types may share a storage, which torch then makes anew for each.
  const auto [before, is_new] = storages_.try_emplace(found.key, out_.storages.size());
  if (!is_new) {
    const UnpickledStorage& kept = out_.storages[before->second];
    if (kept.type == found.type && kept.elements == found.elements)
      return PickleValue{PickleValue::Kind::kStorage, static_cast<std::int64_t>(before->second)};
    if (kept.elements != 0 || found.elements != 0) {
      const auto shown = [](const UnpickledStorage& storage) {
        return counted(storage.elements, "element") + " of " +
               std::string(storage.type ? storage.type->name : "uint8");
      };
      return reader_.corrupt("storage {} with {}, as before, found {}", quote(found.key), shown(kept),
                             shown(found));
    }
  }
  out_.storages.push_back(found);
  return PickleValue{PickleValue::Kind::kStorage, number};
}

Result<void> PickleValues::check_build(const PickleValue& value) const {
  switch (value.kind) {
    case PickleValue::Kind::kStorage:
    case PickleValue::Kind::kTensor:
    case PickleValue::Kind::kOpaque:
      return reader_.unsupported("replaces the content of a tensor, which torch.save never asks for");
    default:  // attributes of a dict are not part of its content
      return {};
  }
}

/// Refuses attributes that replace a tensor's content. They are the fourth argument, if there is one: a dict,
/// or a tuple of a dict and one of slots.
Result<void> PickleValues::check_attributes(const PickleItems& arguments) {
  constexpr std::size_t kState = 3;
  if (arguments.size() <= kState) return {};
  const bool is_tuple = arguments[kState].kind == PickleValue::Kind::kTuple;
  for (const PickleValue& state :
       is_tuple ? arguments_in(arguments[kState]) : PickleItems{arguments[kState]}) {
    if (state.kind != PickleValue::Kind::kDict) continue;
    const PickleItems& items = items_of(state);
    ETSTREAM_TRY(count(items.size()));
    for (std::size_t i = 0; i < items.size(); i += 2) {
      if (items[i].kind != PickleValue::Kind::kText) continue;
      const std::string_view name = text_of(items[i]);
      if (name != "data" && name != "real" && name != "imag") continue;
      return reader_.unsupported(
          "replaces the content of a tensor by its attribute {}, which torch.save never asks for",
          quote(name));
    }
  }
  return {};
}

Result<PickleValue> PickleValues::call(const PickleValue& callable, const PickleValue& arguments) {
  const PickleGlobal* const found = global_of(callable);
  if (found == nullptr || arguments.kind != PickleValue::Kind::kTuple) {
    return reader_.corrupt("a class or function and its arguments on the stack");
  }
  const PickleGlobal global = *found;
  return result_of(global, arguments);
}

/// Returns a tensor of a kind that is not read, which is called like this class or function.
Result<PickleValue> PickleValues::opaque(const PickleGlobal& named, const PickleValue& parts) {
  ETSTREAM_TRY(count(kTensor));
  out_.opaques.push_back({named.module, named.name, parts});
  return PickleValue{PickleValue::Kind::kOpaque, static_cast<std::int64_t>(out_.opaques.size()) - 1};
}

Result<PickleValue> PickleValues::result_of(const PickleGlobal& global, const PickleValue& tuple) {
  const PickleItems arguments = arguments_in(tuple);
  switch (global.kind) {
    case PickleGlobal::Kind::kUnknown:
      return PickleValue();
    case PickleGlobal::Kind::kCounter:
      if (!arguments.empty() && arguments.front().kind != PickleValue::Kind::kDict)
        return reader_.corrupt("a dict as argument");
      [[fallthrough]];
    case PickleGlobal::Kind::kDict:
      return dict_of(arguments);
    case PickleGlobal::Kind::kDefaultDict:
      return dict_of({arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end()});
    case PickleGlobal::Kind::kSequence:
      return sequence_of(arguments);
    case PickleGlobal::Kind::kOther:
      return PickleValue();
    case PickleGlobal::Kind::kRebuildTensor:
    case PickleGlobal::Kind::kRebuildTensorV3:
      return tensor_of(global, arguments, tuple);
    case PickleGlobal::Kind::kRebuildParameter:
    case PickleGlobal::Kind::kTensorClass:
      if (arguments.empty() || (arguments.front().kind != PickleValue::Kind::kTensor &&
                                arguments.front().kind != PickleValue::Kind::kOpaque))
        return reader_.corrupt("a tensor as argument");
      ETSTREAM_TRY(check_attributes(arguments));
      return arguments.front();
    case PickleGlobal::Kind::kRebuildFromType:
      return tensor_of_type(arguments, tuple);
    case PickleGlobal::Kind::kRebuildOpaque:
      return opaque(global, tuple);
    case PickleGlobal::Kind::kDtype:
    case PickleGlobal::Kind::kStorage:
      break;
  }
  return reader_.corrupt("a function or class that may be called");
}

/// Makes a dict of OrderedDict(), or OrderedDict([[key, value], ...]), or OrderedDict({key: value, ...}).
Result<PickleValue> PickleValues::dict_of(const PickleItems& arguments) {
  PickleItems items;
  if (!arguments.empty()) {
    const PickleValue given = arguments.front();
    const bool is_dict = given.kind == PickleValue::Kind::kDict;
    if (!is_dict && given.kind != PickleValue::Kind::kList && given.kind != PickleValue::Kind::kTuple) {
      return reader_.corrupt("items of a dict as argument");
    }
    ETSTREAM_TRY(count(2 * items_of(given).size()));
    for (const PickleValue& item : items_of(given)) {
      if (is_dict) {
        items.push_back(item);
        continue;
      }
      if ((item.kind != PickleValue::Kind::kList && item.kind != PickleValue::Kind::kTuple) ||
          items_of(item).size() != 2) {
        return reader_.corrupt("a key and a value as an item of a dict");
      }
      items.insert(items.end(), items_of(item).begin(), items_of(item).end());
    }
  }
  return container(PickleValue::Kind::kDict, std::move(items));
}

Result<PickleValue> PickleValues::sequence_of(const PickleItems& arguments) {
  if (arguments.empty()) return container(PickleValue::Kind::kList, {});
  const PickleValue given = arguments.front();
  if (given.kind == PickleValue::Kind::kTuple) return given;
  if (given.kind != PickleValue::Kind::kList) return PickleValue();
  ETSTREAM_TRY(count(items_of(given).size()));
  return container(given.kind, items_of(given));  // which later changes of the list do not reach
}

Result<std::vector<std::uint64_t>> PickleValues::numbers_of(const PickleValue& value) {
  constexpr std::size_t kMost = 64;  // dimensions, as torch has it
  if ((value.kind != PickleValue::Kind::kTuple && value.kind != PickleValue::Kind::kList) ||
      items_of(value).size() > kMost) {
    return reader_.corrupt("a tuple of at most {} sizes or strides of a tensor", kMost);
  }
  ETSTREAM_TRY(count(items_of(value).size()));
  std::vector<std::uint64_t> out;
  for (const PickleValue& item : items_of(value)) {
    if (item.kind != PickleValue::Kind::kInteger || item.number < 0)
      return reader_.corrupt("sizes and strides that are not negative");
    out.push_back(static_cast<std::uint64_t>(item.number));
  }
  return out;
}

/// Makes a tensor of (storage, offset, sizes, strides, requires_grad, hooks, [dtype,] metadata)
Result<PickleValue> PickleValues::tensor_of(const PickleGlobal& global, const PickleItems& arguments,
                                            const PickleValue& tuple) {
  constexpr std::size_t kLeast = 4;
  constexpr std::size_t kDtype = 6;
  const bool has_dtype = global.kind == PickleGlobal::Kind::kRebuildTensorV3;
  if (arguments.size() < (has_dtype ? kDtype + 1 : kLeast) ||
      arguments[0].kind != PickleValue::Kind::kStorage || arguments[1].kind != PickleValue::Kind::kInteger ||
      arguments[1].number < 0) {
    return reader_.corrupt("the storage, offset, sizes and strides of a tensor");
  }
  UnpickledTensor tensor;
  tensor.storage = static_cast<std::size_t>(arguments[0].number);
  tensor.type = out_.storages[tensor.storage].type;
  tensor.offset = static_cast<std::uint64_t>(arguments[1].number);
  ETSTREAM_ASSIGN(tensor.sizes, numbers_of(arguments[2]));
  ETSTREAM_ASSIGN(tensor.strides, numbers_of(arguments[3]));
  if (has_dtype) {
    const PickleGlobal* const dtype = global_of(arguments[kDtype]);
    if (dtype && dtype->kind == PickleGlobal::Kind::kUnknown) return opaque(*dtype, tuple);
    tensor.type = dtype && dtype->kind == PickleGlobal::Kind::kDtype ? dtype->type : nullptr;
  }
  if (tensor.type == nullptr) return reader_.corrupt("the type of a tensor's elements");
  const std::size_t metadata = kDtype + (has_dtype ? 1 : 0);
  if (arguments.size() > metadata && arguments[metadata].kind == PickleValue::Kind::kDict &&
      !items_of(arguments[metadata]).empty()) {
    return opaque({PickleGlobal::Kind::kUnknown, nullptr, "torch", "Tensor.conj() or .neg()"}, tuple);
  }
  ETSTREAM_TRY(count(kTensor));
  const PickleValue out{PickleValue::Kind::kTensor, static_cast<std::int64_t>(out_.tensors.size())};
  out_.tensors.push_back(std::move(tensor));
  return out;
}

/// Makes a tensor with attributes of (function, class, its arguments, state).
Result<PickleValue> PickleValues::tensor_of_type(const PickleItems& arguments, const PickleValue& tuple) {
  const bool has_all = arguments.size() >= 3;
  const PickleGlobal* const function = has_all ? global_of(arguments[0]) : nullptr;
  const PickleGlobal* const type = has_all ? global_of(arguments[1]) : nullptr;
  const bool is_unknown = type != nullptr && type->kind == PickleGlobal::Kind::kUnknown;
  if (function == nullptr || type == nullptr ||
      (type->kind != PickleGlobal::Kind::kTensorClass && !is_unknown) ||
      function->kind == PickleGlobal::Kind::kRebuildFromType ||
      arguments[2].kind != PickleValue::Kind::kTuple) {
    return reader_.corrupt("a function, a class and the arguments of a tensor");
  }
  if (is_unknown) return opaque(*type, tuple);
  ETSTREAM_TRY(check_attributes(arguments));
  return result_of(PickleGlobal(*function), arguments[2]);
}

}  // namespace etstream
