// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/checkpoint.h"
#include "formats/tensor/dimensions.h"
#include "formats/torch/pickle.h"
#include "formats/zip/zip.h"

namespace etstream {
namespace {

constexpr std::uint32_t kStorageAlignment = 64;
/// The folder in the archive. torch takes that of the first member.
constexpr std::string_view kArchive = "archive/";
constexpr std::uint64_t kOtherMembers = 3;  // data.pkl, byteorder, version
/// The number of items that Python's pickler puts into a dict at once.
constexpr std::size_t kItemsAtOnce = 1000;

/// A pickle of protocol 2, byte for byte as Python's pickler spells it.
class PickleWriter {
 public:
  PickleWriter() {
    put(PickleOpcode::kProtocol);
    put_bytes(std::uint8_t{2});
  }

  void put(PickleOpcode opcode) { bytes_.push_back(static_cast<std::byte>(opcode)); }

  /// Puts a number up to 2^63 - 1.
  void put_integer(std::uint64_t number) {
    if (number <= std::numeric_limits<std::uint8_t>::max()) {
      put(PickleOpcode::kBinInt1);
      put_bytes(static_cast<std::uint8_t>(number));
    } else if (number <= std::numeric_limits<std::uint16_t>::max()) {
      put(PickleOpcode::kBinInt2);
      put_bytes(static_cast<std::uint16_t>(number));
    } else if (number <= static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
      put(PickleOpcode::kBinInt);
      put_bytes(static_cast<std::int32_t>(number));
    } else {
      // The number and its sign take the fewest bytes that hold them.
      std::uint8_t size = 1;
      while (size < sizeof(number) && number >> (8U * size - 1) != 0) ++size;
      put(PickleOpcode::kLong1);
      put_bytes(size);
      const auto bytes = std::as_bytes(std::span(&number, 1)).first(size);
      bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }
  }

  /// Puts a string that is an object of its own, of at most 2^32 - 1 bytes.
  void put_string(std::string_view string) {
    put(PickleOpcode::kBinUnicode);
    put_bytes(static_cast<std::uint32_t>(string.size()));
    put_text(string);
    memoize();
  }

  /// Puts a string that is the same object at every place, or a class or function.
  void put_shared_string(const std::string& string) {
    if (!put_known(string)) put_string(string);
  }

  void put_global(const std::string& module, std::string_view name) {
    const std::string lines = module + "\n" + std::string(name) + "\n";
    if (put_known(lines)) return;
    put(PickleOpcode::kGlobal);
    put_text(lines);
    memoize();
  }

  /// Puts a tuple of numbers.
  void put_tuple(const std::vector<std::uint64_t>& numbers) {
    if (numbers.empty()) return put(PickleOpcode::kEmptyTuple);
    constexpr PickleOpcode kShort[] = {PickleOpcode::kTuple1, PickleOpcode::kTuple2, PickleOpcode::kTuple3};
    const bool is_short = numbers.size() <= std::size(kShort);
    if (!is_short) put(PickleOpcode::kMark);
    for (const std::uint64_t number : numbers) put_integer(number);
    put(is_short ? kShort[numbers.size() - 1] : PickleOpcode::kTuple);
    memoize();
  }

  /// Keeps the object that was put last, as Python's pickler keeps every object except numbers and the empty
  /// tuple.
  void memoize() {
    if (kept_ <= std::numeric_limits<std::uint8_t>::max()) {
      put(PickleOpcode::kBinPut);
      put_bytes(static_cast<std::uint8_t>(kept_));
    } else {
      put(PickleOpcode::kLongBinPut);
      put_bytes(kept_);
    }
    ++kept_;
  }

  /// Ends the pickle.
  std::vector<std::byte> finish() && {
    put(PickleOpcode::kStop);
    return std::move(bytes_);
  }

 private:
  template <class Integer>
  void put_bytes(Integer number) {
    const auto bytes = std::as_bytes(std::span(&number, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  void put_text(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  /// Puts the object that was kept under `key`, or else keeps the next one under it.
  bool put_known(const std::string& key) {
    const auto [found, is_new] = shared_.try_emplace(key, kept_);
    if (is_new) return false;
    if (found->second <= std::numeric_limits<std::uint8_t>::max()) {
      put(PickleOpcode::kBinGet);
      put_bytes(static_cast<std::uint8_t>(found->second));
    } else {
      put(PickleOpcode::kLongBinGet);
      put_bytes(found->second);
    }
    return true;
  }

  std::vector<std::byte> bytes_;
  std::map<std::string, std::uint32_t> shared_;  // where strings and globals are kept
  std::uint32_t kept_ = 0;
};

/// A tensor as the pickle describes it.
struct PickledTensor {
  const CheckpointTensor* tensor = nullptr;
  const TorchType* type = nullptr;
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint64_t> strides;  // in elements
  std::size_t storage = 0;             // its number
};

struct PickledFile {
  std::vector<PickledTensor> tensors;
  std::vector<const CheckpointTensor*> storages;  // a tensor that has the bytes of each
};

/// Returns the strides of dense elements, as torch computes them: a dimension of size 0 counts as one of size
/// 1. Returns nothing if a stride or a size is over 2^63 - 1.
std::optional<std::vector<std::uint64_t>> strides_of(const std::vector<std::uint64_t>& sizes,
                                                     const std::vector<std::uint8_t>& dim_order) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::vector<std::uint64_t> out(sizes.size());
  auto stride = std::optional<std::uint64_t>(1);
  for (std::size_t i = dim_order.size(); i-- > 0;) {
    const std::uint64_t size = sizes[dim_order[i]];
    if (!stride || *stride > kMost || size > kMost) return std::nullopt;
    out[dim_order[i]] = *stride;
    stride = checked_multiply(*stride, std::max<std::uint64_t>(size, 1));
  }
  return out;
}

Result<PickledTensor> pickled(const CheckpointTensor& tensor) {
  const auto refused = [&]<class... Arguments>(ErrorCode code, Template<Arguments...> words,
                                               const Arguments&... arguments) {
    return error_in(code, tensor.data.name(), "tensor {} {}", quote(tensor.name), text(words, arguments...));
  };
  PickledTensor out;
  out.tensor = &tensor;
  std::vector<std::uint8_t> order;
  if (tensor.layout) {
    out.type = torch_type(tensor.layout->scalar_type);
    out.sizes.assign(tensor.layout->sizes.begin(), tensor.layout->sizes.end());
    order = tensor.layout->dim_order;
  } else if (tensor.shape) {
    const auto type = find_scalar_type(tensor.type);
    out.type = type ? torch_type(*type) : torch_type_of_safetensors(tensor.type);
    if (!out.type) out.type = torch_type_of_dtype(tensor.type);
    out.sizes = *tensor.shape;
    for (std::size_t i = 0; i < out.sizes.size(); ++i) order.push_back(static_cast<std::uint8_t>(i));
  }
  if (!out.type) {
    const std::string type = tensor.layout ? std::string(name_of(tensor.layout->scalar_type)) : tensor.type;
    return with_advice(refused(ErrorCode::kUnsupported, "{}, which torch has no plain tensors of",
                               type.empty() ? "has no layout" : "is of type " + printable(type)),
                       {"leave it out"});
  }
  if (!out.sizes.empty()) out.sizes.back() /= out.type->elements;
  auto size = std::optional(out.type->item_size);
  for (const std::uint64_t one : out.sizes) {
    if (size) size = checked_multiply(*size, one);
  }
  auto strides = strides_of(out.sizes, order);
  if (!size || !strides || *size != tensor.data.size()) {
    return refused(ErrorCode::kUnsupported, "has {}, expected those of {} {}",
                   counted(tensor.data.size(), "byte"), out.type->name, list_text(out.sizes));
  }
  if (!is_utf8(tensor.name)) return refused(ErrorCode::kUnsupported, "has a name that is not UTF-8");
  out.strides = std::move(*strides);
  return out;
}

Result<PickledFile> describe_file(const Checkpoint& checkpoint) {
  if (const auto repeated = first_repeated(checkpoint.tensors, &CheckpointTensor::name)) {
    return make_error(ErrorCode::kInvalidArgument, "tensor {} comes twice", quote(*repeated));
  }
  PickledFile out;
  std::map<std::pair<SourcePlace, std::string_view>, std::size_t> storages;
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    ETSTREAM_ASSIGN(PickledTensor one, pickled(tensor));
    const std::size_t next = out.storages.size();
    one.storage = next;
    // Empty tensors may easily be at one place.
    if (tensor.data.size() != 0) {
      one.storage = storages.try_emplace({tensor.data.place(), one.type->name}, next).first->second;
    }
    if (one.storage == next) out.storages.push_back(&tensor);
    out.tensors.push_back(std::move(one));
  }
  if (out.storages.size() > zip::kMostMembers - kOtherMembers) {
    return make_error(ErrorCode::kTooLarge, "expected at most {} tensors for a torch file, found {}",
                      zip::kMostMembers - kOtherMembers, out.storages.size());
  }
  return out;
}

/// Puts torch._utils._rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks), or _v3, which
/// has a dtype too; and the storage's persistent id: ("storage", class, key, location, elements).
void put_tensor(PickleWriter& out, const PickledTensor& tensor) {
  const bool is_typed = !tensor.type->storage.empty();
  out.put_global("torch._utils", is_typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  out.put(PickleOpcode::kMark);
  out.put(PickleOpcode::kMark);
  out.put_shared_string("storage");
  if (is_typed) {
    out.put_global("torch", tensor.type->storage);
  } else {
    out.put_global("torch.storage", "UntypedStorage");
  }
  out.put_string(std::to_string(tensor.storage));
  out.put_shared_string("cpu");
  const std::uint64_t size = tensor.tensor->data.size();
  out.put_integer(is_typed ? size / tensor.type->item_size : size);
  out.put(PickleOpcode::kTuple);
  out.memoize();
  out.put(PickleOpcode::kBinPersistentId);
  out.put_integer(0);
  out.put_tuple(tensor.sizes);
  out.put_tuple(tensor.strides);
  out.put(PickleOpcode::kNewFalse);
  out.put_global("collections", "OrderedDict");
  out.put(PickleOpcode::kEmptyTuple);
  out.put(PickleOpcode::kReduce);
  out.memoize();
  if (!is_typed) out.put_global("torch", tensor.type->name);
  out.put(PickleOpcode::kTuple);
  out.memoize();
  out.put(PickleOpcode::kReduce);
  out.memoize();
}

std::vector<std::byte> pickle_of(const std::vector<PickledTensor>& tensors) {
  PickleWriter out;
  out.put(PickleOpcode::kEmptyDict);
  out.memoize();
  const auto put_item = [&](const PickledTensor& tensor) {
    out.put_string(tensor.tensor->name);
    put_tensor(out, tensor);
  };
  if (tensors.size() == 1) {
    put_item(tensors.front());
    out.put(PickleOpcode::kSetItem);
  } else if (!tensors.empty()) {
    // Another batch follows a full one, even if it is empty.
    for (std::size_t begin = 0; begin <= tensors.size(); begin += kItemsAtOnce) {
      const std::size_t end = std::min(tensors.size(), begin + kItemsAtOnce);
      out.put(PickleOpcode::kMark);
      for (std::size_t i = begin; i < end; ++i) put_item(tensors[i]);
      out.put(PickleOpcode::kSetItems);
    }
  }
  return std::move(out).finish();
}

}  // namespace

Result<FilePlan> plan_torch_file(const Checkpoint& checkpoint) {
  return without_exceptions([&]() -> Result<FilePlan> {
    ETSTREAM_ASSIGN(const PickledFile file, describe_file(checkpoint));
    FilePlan plan;
    ZipWriter zip(plan, kStorageAlignment);
    const auto append = [&](std::string_view name, ByteSource data, std::string_view label) {
      return zip.append_streamed(std::string(kArchive) + std::string(name), std::move(data), label);
    };
    const auto append_text = [&](std::string_view name, std::string_view words) {
      const auto bytes = std::as_bytes(std::span(words));
      return append(name, ByteSource::owned({bytes.begin(), bytes.end()}), name);
    };
    std::vector<std::byte> pickle = pickle_of(file.tensors);
    plan.metadata_size = pickle.size();
    ETSTREAM_TRY(append("data.pkl", ByteSource::owned(std::move(pickle)), "data.pkl"));
    ETSTREAM_TRY(append_text("byteorder", "little"));
    for (std::size_t i = 0; i < file.storages.size(); ++i) {
      const CheckpointTensor& tensor = *file.storages[i];
      ETSTREAM_TRY(append("data/" + std::to_string(i), tensor.data, tensor.name));
      plan.payload_size += tensor.data.size();
    }
    ETSTREAM_TRY(append_text("version", "3\n"));
    ETSTREAM_TRY(zip.finish());
    plan.metadata_size = plan.size - plan.payload_size;
    return plan;
  });
}

}  // namespace etstream
