// SPDX-License-Identifier: BSD-3-Clause
//
// PickleValues: the values in a pickle, and the results that its calls of classes and functions would give.
// Only those that pickles of tensors ask for are known, and none is executed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "etstream/result.h"
#include "formats/torch/pickle.h"
#include "formats/torch/unpickler.h"

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

using PickleItems = std::vector<PickleValue>;

class PickleValues {
 public:
  /// `reader` gives errors their place, and must outlive this.
  explicit PickleValues(const PickleReader& reader) : reader_(reader) {}

  PickleValue text(std::string_view text);
  Result<PickleValue> container(PickleValue::Kind kind, PickleItems items);
  /// Adds items to a list or a dict.
  Result<void> extend(const PickleValue& container, const PickleItems& items);
  /// Refuses a pickle that keeps much more than the bytes that were read of it ask for in one of torch.save:
  /// containers of nothing, or the same items over and over. `bytes` are those that ask for one more thing.
  Result<void> count(std::size_t bytes);
  PickleValue global(std::string_view module, std::string_view name);
  /// Returns the error about a value that is an unknown class or function; nothing for others.
  [[nodiscard]] std::optional<Error> refusal_of(const PickleValue& value) const;
  /// Takes a storage by its persistent id: ("storage", class, key, location, elements). The first id of a key
  /// decides what the storage is; others that differ are an error.
  Result<PickleValue> storage(const PickleValue& id);
  /// Refuses to give a state to a value whose content it would replace.
  [[nodiscard]] Result<void> check_build(const PickleValue& value) const;
  /// Returns the result of a call, or of making an object of a class.
  Result<PickleValue> call(const PickleValue& callable, const PickleValue& arguments);

  [[nodiscard]] std::string_view text_of(const PickleValue& text) const {
    return out_.texts[static_cast<std::size_t>(text.number)];
  }
  /// Gives all values away, without the bytes of the pickle.
  Unpickled release() && { return std::move(out_); }

 private:
  [[nodiscard]] const PickleGlobal* global_of(const PickleValue& value) const;
  PickleItems& items_of(const PickleValue& container) {
    return out_.containers[static_cast<std::size_t>(container.number)];
  }
  PickleItems arguments_in(const PickleValue& tuple);
  Result<void> check_attributes(const PickleItems& arguments);
  Result<PickleValue> result_of(const PickleGlobal& global, const PickleValue& tuple);
  Result<PickleValue> opaque(const PickleGlobal& named, const PickleValue& parts);
  Result<PickleValue> dict_of(const PickleItems& arguments);
  Result<PickleValue> sequence_of(const PickleItems& arguments);
  Result<PickleValue> tensor_of(const PickleGlobal& global, const PickleItems& arguments,
                                const PickleValue& tuple);
  Result<PickleValue> tensor_of_type(const PickleItems& arguments, const PickleValue& tuple);
  Result<std::vector<std::uint64_t>> numbers_of(const PickleValue& value);

  const PickleReader& reader_;
  Unpickled out_;
  std::vector<PickleGlobal> globals_;
  std::map<std::string_view, std::size_t> storages_;  // by key
  std::size_t counted_ = 0;
};

}  // namespace etstream
