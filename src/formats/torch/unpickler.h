// SPDX-License-Identifier: BSD-3-Clause
//
// Unpickler: reads the pickle of a torch file as data. It knows tensors, storages and containers. It never
// imports, calls or makes anything else: a pickle that asks for another class or function is refused by name,
// unless a tensor of a kind that is not read asks for it, which is opaque. What torch.load reads is read as
// torch.load(weights_only=True) of torch 2.13 does, or refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "formats/torch/pickle.h"

namespace etstream {

struct PickleValue {
  enum class Kind : std::uint8_t {
    kOther,  // a number with a point, bytes, None, an unknown object: nothing that matters
    kBool,
    kInteger,
    kText,
    kTuple,
    kList,  // a set too
    kDict,
    kGlobal,
    kStorage,
    kTensor,
    kOpaque,
  };
  Kind kind = Kind::kOther;
  std::int64_t number = 0;  // of a boolean or an integer its value, of others an index
};

/// A persistent id: ("storage", class, key, location, elements).
struct UnpickledStorage {
  std::string_view key;             // the member "data/KEY" has the bytes
  const TorchType* type = nullptr;  // null for untyped storages
  std::uint64_t elements = 0;       // or bytes of untyped ones
};

struct UnpickledTensor {
  std::size_t storage = 0;          // an index in Unpickled::storages
  const TorchType* type = nullptr;  // not null
  std::uint64_t offset = 0;         // in elements, as the strides
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint64_t> strides;
};

/// A tensor of a kind that is not read, such as one of torchao's.
struct UnpickledOpaque {
  std::string_view module;  // of its class, or of the function that makes it
  std::string_view name;
  PickleValue parts;  // a container of its tensors, storages and other values
};

struct Unpickled {
  std::vector<std::byte> bytes;  // the pickle, in which texts lie
  std::vector<std::string_view> texts;
  /// Returns the items of tuples, lists and dicts; of a dict each key with its value behind it. They may
  /// contain each other in circles.
  std::deque<std::vector<PickleValue>> containers;
  std::vector<UnpickledStorage> storages;
  std::vector<UnpickledTensor> tensors;
  std::vector<UnpickledOpaque> opaques;
  PickleValue root;
};

/// The largest pickle that is read, in bytes.
inline constexpr std::uint64_t kLargestPickle = std::uint64_t{64} << 20;

/// Reads a pickle of protocols 0 to 5. Time and memory grow with its length. `offset` is its offset in the
/// file that messages name. Errors: kCorrupt; kUnsupported for other classes and functions, naming them;
/// kTooLarge over kLargestPickle; those of reading.
[[nodiscard]] Result<Unpickled> unpickle(const ByteSource& pickle, std::uint64_t offset);

}  // namespace etstream
