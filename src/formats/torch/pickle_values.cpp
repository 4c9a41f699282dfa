// SPDX-License-Identifier: BSD-3-Clause
#include "formats/torch/pickle_values.h"

#include <algorithm>
#include <string>

#include "core/base/text.h"
#include "core/base/try.h"

namespace etstream {

PickleValue PickleValues::text(std::string_view text) {
  out_.texts.push_back(text);
  return {PickleValue::Kind::kText, static_cast<std::int64_t>(out_.texts.size()) - 1};
}

PickleValue PickleValues::container(PickleValue::Kind kind, PickleItems items) {
  out_.containers.push_back(std::move(items));
  return {kind, static_cast<std::int64_t>(out_.containers.size()) - 1};
}

const PickleGlobal* PickleValues::global_of(const PickleValue& value) const {
  return value.kind == PickleValue::Kind::kGlobal ? &globals_[static_cast<std::size_t>(value.number)]
                                                  : nullptr;
}

/// Refuses a pickle that copies more items than it has bytes: it copies the same items over and over.
Result<void> PickleValues::count_copies(std::size_t items) {
  copies_ += items;
  if (copies_ <= reader_.size()) return {};
  return reader_.corrupt("at most as many items as bytes, {}, found the same ones over and over",
                         reader_.size());
}

/// Returns a copy, as containers may move. It has no more items than any function takes, as a tuple may come
/// again and again.
PickleItems PickleValues::arguments_in(const PickleValue& tuple) {
  constexpr std::size_t kMost = 8;
  const PickleItems& items = items_of(tuple);
  return {items.begin(), items.begin() + static_cast<std::ptrdiff_t>(std::min(items.size(), kMost))};
}

Result<PickleValue> PickleValues::global(std::string_view module, std::string_view name) {
  const auto found = find_pickle_global(module, name);
  if (!found) {
    const bool is_module = module.starts_with("torch.nn.modules") || module.starts_with("__torch__");
    return with_advice(reader_.unsupported("asks for {}, and etstream knows tensors and containers only",
                                           quote(std::string(module) + "." + std::string(name))),
                       {"it never executes a pickle: ",
                        is_module ? "take the module's state_dict()" : "keep the tensors in a dict by name",
                        ", and save that with torch.save"});
  }
  globals_.push_back(*found);
  return PickleValue{PickleValue::Kind::kGlobal, static_cast<std::int64_t>(globals_.size()) - 1};
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
  out_.storages.push_back({text_of(parts[2]), type->type, static_cast<std::uint64_t>(parts[4].number)});
  return PickleValue{PickleValue::Kind::kStorage, static_cast<std::int64_t>(out_.storages.size()) - 1};
}

Result<PickleValue> PickleValues::call(const PickleValue& callable, const PickleValue& arguments) {
  const PickleGlobal* const found = global_of(callable);
  if (found == nullptr || arguments.kind != PickleValue::Kind::kTuple) {
    return reader_.corrupt("a class or function and its arguments on the stack");
  }
  const PickleGlobal global = *found;
  return result_of(global, arguments_in(arguments));
}

Result<PickleValue> PickleValues::result_of(const PickleGlobal& global, const PickleItems& arguments) {
  switch (global.kind) {
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
      return tensor_of(global, arguments);
    case PickleGlobal::Kind::kRebuildParameter:
    case PickleGlobal::Kind::kTensorClass:
      if (arguments.empty() || arguments.front().kind != PickleValue::Kind::kTensor)
        return reader_.corrupt("a tensor as argument");
      return arguments.front();
    case PickleGlobal::Kind::kRebuildFromType:
      return tensor_of_type(arguments);
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
    ETSTREAM_TRY(count_copies(2 * items_of(given).size()));
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
  const bool is_sequence = given.kind == PickleValue::Kind::kList || given.kind == PickleValue::Kind::kTuple;
  return is_sequence ? given : PickleValue();
}

Result<std::vector<std::uint64_t>> PickleValues::numbers_of(const PickleValue& value) {
  constexpr std::size_t kMost = 64;  // dimensions, as torch has it
  if ((value.kind != PickleValue::Kind::kTuple && value.kind != PickleValue::Kind::kList) ||
      items_of(value).size() > kMost) {
    return reader_.corrupt("a tuple of at most {} sizes or strides of a tensor", kMost);
  }
  ETSTREAM_TRY(count_copies(items_of(value).size()));
  std::vector<std::uint64_t> out;
  for (const PickleValue& item : items_of(value)) {
    if (item.kind != PickleValue::Kind::kInteger || item.number < 0)
      return reader_.corrupt("sizes and strides that are not negative");
    out.push_back(static_cast<std::uint64_t>(item.number));
  }
  return out;
}

/// Makes a tensor of (storage, offset, sizes, strides, requires_grad, hooks, [dtype,] metadata)
Result<PickleValue> PickleValues::tensor_of(const PickleGlobal& global, const PickleItems& arguments) {
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
    tensor.type = dtype && dtype->kind == PickleGlobal::Kind::kDtype ? dtype->type : nullptr;
  }
  if (tensor.type == nullptr) return reader_.corrupt("the type of a tensor's elements");
  const std::size_t metadata = kDtype + (has_dtype ? 1 : 0);
  if (arguments.size() > metadata && arguments[metadata].kind == PickleValue::Kind::kDict &&
      !items_of(arguments[metadata]).empty()) {
    return with_advice(
        reader_.unsupported("has a tensor that is the conjugate or the negative of what is stored"),
        {"save its resolve_conj() or resolve_neg()"});
  }
  const PickleValue out{PickleValue::Kind::kTensor, static_cast<std::int64_t>(out_.tensors.size())};
  out_.tensors.push_back(std::move(tensor));
  return out;
}

/// Makes a tensor with attributes of (function, class, its arguments, state).
Result<PickleValue> PickleValues::tensor_of_type(const PickleItems& arguments) {
  const bool has_all = arguments.size() >= 3;
  const PickleGlobal* const function = has_all ? global_of(arguments[0]) : nullptr;
  const PickleGlobal* const type = has_all ? global_of(arguments[1]) : nullptr;
  if (function == nullptr || type == nullptr || type->kind != PickleGlobal::Kind::kTensorClass ||
      function->kind == PickleGlobal::Kind::kRebuildFromType ||
      arguments[2].kind != PickleValue::Kind::kTuple) {
    return reader_.corrupt("a function, a class and the arguments of a tensor");
  }
  const PickleGlobal global = *function;
  return result_of(global, arguments_in(arguments[2]));
}

}  // namespace etstream
