// SPDX-License-Identifier: BSD-3-Clause
#include "formats/torch/unpickler.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "formats/torch/pickle.h"

namespace etstream {
namespace {

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

/// Returns kUnknown for a name that is not known to be harmless.
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

using PickleItems = std::vector<PickleValue>;

/// The values in a pickle, and the results that its calls of classes and functions would give. Only those
/// that pickles of tensors ask for are known, and none is executed.
class PickleValues {
 public:
  /// `reader` gives errors their place, and must outlive this.
  explicit PickleValues(const PickleReader& reader) : reader_(reader) {}

  PickleValue text(std::string_view text) {
    out_.texts.push_back(text);
    return {PickleValue::Kind::kText, static_cast<std::int64_t>(out_.texts.size()) - 1};
  }

  Result<PickleValue> container(PickleValue::Kind kind, PickleItems items) {
    ETSTREAM_TRY(count(kContainer));
    if (!items.empty()) ETSTREAM_TRY(count(kItems));
    out_.containers.push_back(std::move(items));
    return PickleValue{kind, static_cast<std::int64_t>(out_.containers.size()) - 1};
  }

  /// Adds items to a list or a dict.
  Result<void> extend(const PickleValue& container, const PickleItems& items) {
    PickleItems& out = items_of(container);
    if (out.empty()) ETSTREAM_TRY(count(kItems));
    out.insert(out.end(), items.begin(), items.end());
    return {};
  }

  /// Refuses a pickle that keeps much more than the bytes that were read of it ask for in one of torch.save:
  /// containers of nothing, or the same items over and over. `bytes` are those that ask for one more thing.
  Result<void> count(std::size_t bytes) {
    constexpr std::size_t kAlways = std::size_t{256} << 10;
    counted_ += bytes;
    if (counted_ <= kAlways + reader_.taken()) return {};
    return reader_.corrupt("containers and tensors in proportion to its bytes, found the same over and over");
  }

  PickleValue global(std::string_view module, std::string_view name) {
    globals_.push_back(find_pickle_global(module, name));
    return {PickleValue::Kind::kGlobal, static_cast<std::int64_t>(globals_.size()) - 1};
  }

  /// Returns the error about a value that is an unknown class or function; nothing for others.
  std::optional<Error> refusal_of(const PickleValue& value) const {
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

  /// Takes a storage by its persistent id: ("storage", class, key, location, elements). The first id of a key
  /// decides what the storage is; others that differ are an error.
  Result<PickleValue> storage(const PickleValue& id) {
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

  /// Refuses to give a state to a value whose content it would replace.
  Result<void> check_build(const PickleValue& value) const {
    switch (value.kind) {
      case PickleValue::Kind::kStorage:
      case PickleValue::Kind::kTensor:
      case PickleValue::Kind::kOpaque:
        return reader_.unsupported("replaces the content of a tensor, which torch.save never asks for");
      default:  // attributes of a dict are not part of its content
        return {};
    }
  }

  /// Returns the result of a call, or of making an object of a class.
  Result<PickleValue> call(const PickleValue& callable, const PickleValue& arguments) {
    const PickleGlobal* const found = global_of(callable);
    if (found == nullptr || arguments.kind != PickleValue::Kind::kTuple) {
      return reader_.corrupt("a class or function and its arguments on the stack");
    }
    const PickleGlobal global = *found;
    return result_of(global, arguments);
  }

  [[nodiscard]] std::string_view text_of(const PickleValue& text) const {
    return out_.texts[static_cast<std::size_t>(text.number)];
  }
  /// Gives all values away, without the bytes of the pickle.
  Unpickled release() && { return std::move(out_); }

 private:
  const PickleGlobal* global_of(const PickleValue& value) const {
    return value.kind == PickleValue::Kind::kGlobal ? &globals_[static_cast<std::size_t>(value.number)]
                                                    : nullptr;
  }

  PickleItems& items_of(const PickleValue& container) {
    return out_.containers[static_cast<std::size_t>(container.number)];
  }

  /// Returns no more items than any function takes, as a tuple may come again and again.
  PickleItems arguments_in(const PickleValue& tuple) {
    constexpr std::size_t kMost = 8;
    const PickleItems& items = items_of(tuple);
    return {items.begin(), items.begin() + static_cast<std::ptrdiff_t>(std::min(items.size(), kMost))};
  }

  /// Refuses attributes that replace a tensor's content. They are the fourth argument, if there is one: a
  /// dict, or a tuple of a dict and one of slots.
  Result<void> check_attributes(const PickleItems& arguments) {
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

  Result<PickleValue> result_of(const PickleGlobal& global, const PickleValue& tuple) {
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

  /// Returns a tensor of a kind that is not read, which is called like this class or function.
  Result<PickleValue> opaque(const PickleGlobal& named, const PickleValue& parts) {
    ETSTREAM_TRY(count(kTensor));
    out_.opaques.push_back({named.module, named.name, parts});
    return PickleValue{PickleValue::Kind::kOpaque, static_cast<std::int64_t>(out_.opaques.size()) - 1};
  }

  /// Makes a dict of OrderedDict(), or OrderedDict([[key, value], ...]), or OrderedDict({key: value, ...}).
  Result<PickleValue> dict_of(const PickleItems& arguments) {
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

  Result<PickleValue> sequence_of(const PickleItems& arguments) {
    if (arguments.empty()) return container(PickleValue::Kind::kList, {});
    const PickleValue given = arguments.front();
    if (given.kind == PickleValue::Kind::kTuple) return given;
    if (given.kind != PickleValue::Kind::kList) return PickleValue();
    ETSTREAM_TRY(count(items_of(given).size()));
    return container(given.kind, items_of(given));  // which later changes of the list do not reach
  }

  /// Makes a tensor of (storage, offset, sizes, strides, requires_grad, hooks, [dtype,] metadata)
  Result<PickleValue> tensor_of(const PickleGlobal& global, const PickleItems& arguments,
                                const PickleValue& tuple) {
    constexpr std::size_t kLeast = 4;
    constexpr std::size_t kDtype = 6;
    const bool has_dtype = global.kind == PickleGlobal::Kind::kRebuildTensorV3;
    if (arguments.size() < (has_dtype ? kDtype + 1 : kLeast) ||
        arguments[0].kind != PickleValue::Kind::kStorage ||
        arguments[1].kind != PickleValue::Kind::kInteger || arguments[1].number < 0) {
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
  Result<PickleValue> tensor_of_type(const PickleItems& arguments, const PickleValue& tuple) {
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

  Result<std::vector<std::uint64_t>> numbers_of(const PickleValue& value) {
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

  const PickleReader& reader_;
  Unpickled out_;
  std::vector<PickleGlobal> globals_;
  std::map<std::string_view, std::size_t> storages_;  // by key
  std::size_t counted_ = 0;
};

using ValueKind = PickleValue::Kind;
using Items = PickleItems;

/// The machine that runs pickles: a stack, marks on it, and a memo of values by number.
class Unpickler {
 public:
  explicit Unpickler(PickleReader reader) : in_(std::move(reader)) {}
  Unpickler(const Unpickler&) = delete;
  Unpickler& operator=(const Unpickler&) = delete;

  Result<Unpickled> run() {
    while (!root_) {
      const auto done = run_one();
      if (!done) return unknown_ ? *unknown_ : done.error();
    }
    if (unknown_) return *std::move(unknown_);
    Unpickled out = std::move(values_).release();
    out.bytes = std::move(in_).release();
    out.root = *root_;
    return out;
  }

 private:
  Result<void> run_one() {
    ETSTREAM_ASSIGN(const auto opcode, in_.begin_instruction<PickleOpcode>());
    ETSTREAM_TRY(step(opcode));
    constexpr std::size_t kMostOnStack = std::size_t{1} << 20;
    if (stack_.size() + marks_.size() > kMostOnStack)
      return in_.corrupt("at most {} on the stack, found more", counted(kMostOnStack, "item"));
    if (!unknown_ && !stack_.empty()) {
      unknown_ = values_.refusal_of(stack_.back());
      lowest_ = stack_.size();
    }
    lowest_ = std::min(lowest_, stack_.size());
    return {};
  }

  // The stack.

  void push(PickleValue value) { stack_.push_back(value); }
  Result<void> push(const Result<PickleValue>& value) {
    if (!value) return value.error();
    push(*value);
    return {};
  }
  Result<void> push_other(const Result<std::string_view>& passed) {
    if (!passed) return passed.error();
    push({});
    return {};
  }
  Result<void> push_text(const Result<std::string_view>& text) {
    if (!text) return text.error();
    push(values_.text(*text));
    return {};
  }
  template <class Integer>
  Result<void> push_integer(const Result<Integer>& number) {
    if (!number) return number.error();
    push({ValueKind::kInteger, static_cast<std::int64_t>(*number)});
    return {};
  }
  Result<void> push_container(ValueKind kind, Items items) {
    return push(values_.container(kind, std::move(items)));
  }

  /// Returns the number of items above the last mark, or of all.
  [[nodiscard]] std::size_t items_there() const {
    return stack_.size() - (marks_.empty() ? 0 : marks_.back());
  }
  Result<PickleValue> pop() {
    if (items_there() == 0) return in_.corrupt("an item on the stack, found none");
    const PickleValue out = stack_.back();
    stack_.pop_back();
    return out;
  }
  Result<Items> pop_items(std::size_t count) {
    if (items_there() < count) return in_.corrupt("{} on the stack, found {}", count, items_there());
    const auto begin = stack_.end() - static_cast<std::ptrdiff_t>(count);
    Items out(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    return out;
  }
  Result<Items> pop_to_mark() {
    if (marks_.empty()) return in_.corrupt("a mark on the stack, found none");
    ETSTREAM_ASSIGN(Items out, pop_items(items_there()));
    marks_.pop_back();
    return out;
  }

  Result<void> add_to(ValueKind kind, const Items& items) {
    if (items_there() == 0 || stack_.back().kind != kind) {
      // This may be a bytearray or a similar object, which is not kept.
      if (items_there() != 0 && stack_.back().kind == ValueKind::kOther) return {};
      return in_.corrupt("a {} on the stack", kind == ValueKind::kDict ? "dict" : "list");
    }
    if (kind == ValueKind::kDict && items.size() % 2 != 0)
      return in_.corrupt("keys and values, found an odd number");
    return values_.extend(stack_.back(), items);
  }
  Result<void> add_to(ValueKind kind, Result<Items> items) {
    return items ? add_to(kind, *items) : Result<void>(items.error());
  }

  // The memo.

  Result<void> keep(std::uint64_t number) {
    if (items_there() == 0) return in_.corrupt("an item on the stack, found none");
    if (number < memo_.size()) {
      memo_[static_cast<std::size_t>(number)] = stack_.back();
    } else if (number == memo_.size()) {
      memo_.push_back(stack_.back());
      others_.erase(number);
    } else {
      constexpr std::size_t kEntry = 4;
      ETSTREAM_TRY(values_.count(kEntry));
      others_[number] = stack_.back();
    }
    return {};
  }
  template <class Integer>
  Result<void> keep(const Result<Integer>& number) {
    return number ? keep(static_cast<std::uint64_t>(*number)) : Result<void>(number.error());
  }
  template <class Integer>
  Result<void> recall(const Result<Integer>& number) {
    if (!number) return number.error();
    const auto at = static_cast<std::uint64_t>(*number);
    const auto other = others_.find(at);
    if (at >= memo_.size() && other == others_.end())
      return in_.corrupt("the number of a value that was kept, found {}", *number);
    push(at < memo_.size() ? memo_[static_cast<std::size_t>(at)] : other->second);
    return {};
  }

  Result<void> step(PickleOpcode opcode) {
    using enum PickleOpcode;
    switch (opcode) {
      case kProtocol: {
        constexpr std::uint8_t kNewest = 5;
        ETSTREAM_ASSIGN(const auto protocol, in_.take<std::uint8_t>());
        if (protocol > kNewest) return in_.unsupported("is of protocol {}, expected at most 5", protocol);
        return {};
      }
      case kFrame:
        return in_.take<std::uint64_t>().and_then([](std::uint64_t) { return Result<void>(); });
      case kStop: {
        ETSTREAM_ASSIGN(root_, pop());
        return {};
      }
      case kMark:
        marks_.push_back(stack_.size());
        return {};
      case kPop:
        if (items_there() == 0 && !marks_.empty()) {
          marks_.pop_back();
          return {};
        }
        return pop().and_then([](PickleValue) { return Result<void>(); });
      case kPopMark:
        return pop_to_mark().and_then([](const Items&) { return Result<void>(); });
      case kDup:
        if (items_there() == 0) return in_.corrupt("an item on the stack, found none");
        push(stack_.back());
        return {};
      case kEmptyTuple:
        return push_container(ValueKind::kTuple, {});
      case kEmptyList:
      case kEmptySet:
        return push_container(ValueKind::kList, {});
      case kEmptyDict:
        return push_container(ValueKind::kDict, {});
      case kTuple:
        return make_container(ValueKind::kTuple);
      case kList:
      case kFrozenSet:
        return make_container(ValueKind::kList);
      case kDict:
        return make_container(ValueKind::kDict);
      case kTuple1:
      case kTuple2:
      case kTuple3: {
        const auto count = static_cast<std::size_t>(opcode) - static_cast<std::size_t>(kTuple1) + 1;
        ETSTREAM_ASSIGN(Items items, pop_items(count));
        return push_container(ValueKind::kTuple, std::move(items));
      }
      case kAppend:
        return add_to(ValueKind::kList, pop_items(1));
      case kAppends:
      case kAddItems:
        return add_to(ValueKind::kList, pop_to_mark());
      case kSetItem:
        return add_to(ValueKind::kDict, pop_items(2));
      case kSetItems:
        return add_to(ValueKind::kDict, pop_to_mark());
      case kPut:
        return keep(in_.take_decimal());
      case kBinPut:
        return keep(in_.take<std::uint8_t>());
      case kLongBinPut:
        return keep(in_.take<std::uint32_t>());
      case kMemoize:
        return keep(std::uint64_t{memo_.size() + others_.size()});
      case kGet:
        return recall(in_.take_decimal());
      case kBinGet:
        return recall(in_.take<std::uint8_t>());
      case kLongBinGet:
        return recall(in_.take<std::uint32_t>());
      case kGlobal: {
        ETSTREAM_ASSIGN(const std::string_view module, in_.take_line());
        ETSTREAM_ASSIGN(const std::string_view name, in_.take_line());
        push(values_.global(module, name));
        return {};
      }
      case kStackGlobal:
        return push_stack_global();
      case kBinPersistentId:
        return pop().and_then([&](const PickleValue& id) { return push(values_.storage(id)); });
      case kReduce:
      case kNewObject:
        return call();
      case kBuild:
        ETSTREAM_TRY(pop());
        if (items_there() == 0) return in_.corrupt("an item on the stack, found none");
        return values_.check_build(stack_.back());
      case kNone:
        push({});
        return {};
      case kNewTrue:
      case kNewFalse:
        push({ValueKind::kBool, opcode == kNewTrue ? 1 : 0});
        return {};
      default:
        return step_number(opcode);
    }
  }

  Result<void> step_number(PickleOpcode opcode) {
    using enum PickleOpcode;
    constexpr std::uint64_t kDouble = 8;
    switch (opcode) {
      case kBinInt1:
        return push_integer(in_.take<std::uint8_t>());
      case kBinInt2:
        return push_integer(in_.take<std::uint16_t>());
      case kBinInt:
        return push_integer(in_.take<std::int32_t>());
      case kInt:
      case kLong:
        return push_integer(in_.take_decimal());
      case kLong1:
        return push_long(in_.take_sized<std::uint8_t>());
      case kLong4:
        return push_long(in_.take_sized<std::uint32_t>());
      case kBinFloat:
        return push_other(in_.take_bytes(kDouble));
      case kFloat:
        return push_other(in_.take_line());
      default:
        return step_text(opcode);
    }
  }

  Result<void> step_text(PickleOpcode opcode) {
    using enum PickleOpcode;
    switch (opcode) {
      case kShortBinUnicode:
      case kShortBinString:
        return push_text(in_.take_sized<std::uint8_t>());
      case kBinUnicode:
      case kBinString:
        return push_text(in_.take_sized<std::uint32_t>());
      case kBinUnicode8:
        return push_text(in_.take_sized<std::uint64_t>());
      case kShortBinBytes:
        return push_other(in_.take_sized<std::uint8_t>());
      case kBinBytes:
        return push_other(in_.take_sized<std::uint32_t>());
      case kBinBytes8:
      case kByteArray8:
        return push_other(in_.take_sized<std::uint64_t>());
      case kUnicode:
        return push_unicode();
      case kString:
        return push_quoted();
      case kInstance:
      case kObject:
      case kNewObjectWithKeywords:
      case kPersistentId:
      case kExtension1:
      case kExtension2:
      case kExtension4:
      case kNextBuffer:
      case kReadOnlyBuffer:
        return with_advice(
            in_.unsupported("has instruction {:#x}, which makes other objects than tensors and containers",
                            static_cast<unsigned>(opcode)),
            {"etstream never executes a pickle: save a dict of tensors, such as a state_dict(), with "
             "torch.save"});
      default:
        return in_.corrupt("an instruction of a pickle, found byte {:#x}", static_cast<unsigned>(opcode));
    }
  }

  Result<void> push_quoted() {
    ETSTREAM_ASSIGN(const std::string_view line, in_.take_line());
    const bool is_quoted = line.size() >= 2 && (line.front() == '\'' || line.front() == '"') &&
                           line.back() == line.front() && line.find('\\') == std::string_view::npos;
    if (!is_quoted) return in_.unsupported("has a text with escapes, {}", quote(line));
    return push_text(line.substr(1, line.size() - 2));
  }

  /// Pushes a line's text. Refuses a text with escapes.
  Result<void> push_unicode() {
    ETSTREAM_ASSIGN(const std::string_view line, in_.take_line());
    if (line.find('\\') != std::string_view::npos)
      return in_.unsupported("has a text with escapes, {}", quote(line));
    return push_text(line);
  }

  /// Pushes a signed number that is stored in as few bytes as possible. A larger number belongs to no tensor.
  Result<void> push_long(const Result<std::string_view>& bytes) {
    if (!bytes) return bytes.error();
    if (bytes->size() > sizeof(std::int64_t)) return push_other(bytes);
    const bool is_negative = !bytes->empty() && static_cast<signed char>(bytes->back()) < 0;
    std::int64_t number = is_negative ? -1 : 0;
    std::memcpy(&number, bytes->data(), bytes->size());
    push({ValueKind::kInteger, number});
    return {};
  }

  Result<void> push_stack_global() {
    ETSTREAM_ASSIGN(const Items names, pop_items(2));
    if (names[0].kind != ValueKind::kText || names[1].kind != ValueKind::kText) {
      return in_.corrupt("the names of a module and a class on the stack");
    }
    push(values_.global(values_.text_of(names[0]), values_.text_of(names[1])));
    return {};
  }

  Result<void> make_container(ValueKind kind) {
    ETSTREAM_ASSIGN(Items items, pop_to_mark());
    if (kind == ValueKind::kDict && items.size() % 2 != 0)
      return in_.corrupt("keys and values, found an odd number");
    return push_container(kind, std::move(items));
  }

  /// Pushes the result of calling a function, or of making an object of a class. An opaque tensor may ask for
  /// unknown ones.
  Result<void> call() {
    ETSTREAM_ASSIGN(const Items parts, pop_items(2));
    ETSTREAM_ASSIGN(const PickleValue result, values_.call(parts[0], parts[1]));
    if (result.kind == ValueKind::kOpaque && lowest_ > stack_.size()) unknown_.reset();
    push(result);
    return {};
  }

  PickleReader in_;
  PickleValues values_{in_};
  std::optional<PickleValue> root_;  // once there is one, the pickle ends
  Items stack_;
  std::vector<std::size_t> marks_;  // how much of the stack is below each
  std::optional<Error> unknown_;    // about the first unknown class or function that is in no opaque tensor
  std::size_t lowest_ = 0;          // the least height of the stack since that was on top of it
  std::deque<PickleValue> memo_;    // by numbers from 0 on, as picklers give them
  std::map<std::uint64_t, PickleValue> others_;  // by other numbers
};

}  // namespace

Result<Unpickled> unpickle(const ByteSource& pickle, std::uint64_t offset) {
  return without_exceptions([&]() -> Result<Unpickled> {
    if (pickle.size() > kLargestPickle) {
      return error_at(ErrorCode::kTooLarge, {pickle.name(), offset},
                      "expected a pickle of at most {}, found {}", counted(kLargestPickle, "byte"),
                      pickle.size());
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(pickle.size()));
    ETSTREAM_TRY(pickle.read_at(0, bytes));
    return Unpickler({pickle.name(), offset, std::move(bytes)}).run();
  });
}

}  // namespace etstream
