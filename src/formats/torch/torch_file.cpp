// SPDX-License-Identifier: BSD-3-Clause
#include "formats/torch/torch_file.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/checked.h"
#include "core/base/findings.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "formats/tensor/dimensions.h"
#include "formats/tensor/strided_source.h"
#include "formats/torch/unpickler.h"
#include "formats/zip/zip.h"

namespace etstream {
namespace {

constexpr std::string_view kByteOrder = "byteorder";

/// Refuses bytes in the order of big-endian machines. Files without the record are older than torch 2.1, and
/// almost all are little-endian.
Result<void> check_byte_order(const TorchArchive& archive) {
  constexpr std::string_view kLittle = "little";
  const ByteSource* const order = archive.find(kByteOrder);
  if (order == nullptr) return {};
  std::string found(static_cast<std::size_t>(std::min<std::uint64_t>(order->size(), kLittle.size() + 1)),
                    '\0');
  ETSTREAM_TRY(order->read_at(0, std::as_writable_bytes(std::span(found))));
  if (found == kLittle) return {};
  return with_advice(error_in(ErrorCode::kUnsupported, archive.file.name(),
                              "expected 'little' as its byteorder, found {}", quote(found)),
                     {"load it in torch and save it again on a little-endian machine"});
}

/// Takes the tensors out of what a pickle has, by walking its containers. A pickle may have a container in
/// several others, or in itself, so depth, visits and names are bounded by its length.
class TensorCollector {
 public:
  TensorCollector(const TorchArchive& archive, const Unpickled& pickle)
      : archive_(archive), pickle_(pickle), checked_(pickle.containers.size()) {}

  Result<std::vector<CheckpointTensor>> run() {
    // The name of a tensor that is saved by itself.
    std::string name =
        pickle_.root.kind == Kind::kTensor || pickle_.root.kind == Kind::kOpaque ? "tensor" : "";
    ETSTREAM_TRY(visit(pickle_.root, name, 0));
    if (const auto repeated = first_repeated(out_, &CheckpointTensor::name)) {
      return error_in(ErrorCode::kCorrupt, archive_.file.name(), "tensor {} comes twice", quote(*repeated));
    }
    return std::move(out_);
  }

 private:
  using Kind = PickleValue::Kind;

  Error too_large(std::string_view what) const {
    return with_advice(error_in(ErrorCode::kTooLarge, archive_.file.name(), "its pickle has {}", what),
                       {"save a dict of tensors"});
  }

  /// NOLINTNEXTLINE(misc-no-recursion): bounded by kDeepest.
  Result<void> visit(const PickleValue& value, std::string& name, int depth) {
    constexpr int kDeepest = 64;
    if (++visits_ > pickle_.bytes.size()) return too_large("the same containers over and over");
    switch (value.kind) {
      case Kind::kTensor:
        return add(pickle_.tensors[static_cast<std::size_t>(value.number)], name);
      case Kind::kOpaque:
        return add(pickle_.opaques[static_cast<std::size_t>(value.number)], name, depth);
      case Kind::kDict:
      case Kind::kTuple:
      case Kind::kList:
        break;
      case Kind::kStorage:
        if (opaque_ != nullptr) {
          ETSTREAM_ASSIGN(opaque_->emplace_back(),
                          storage_of(pickle_.storages[static_cast<std::size_t>(value.number)], name));
          return {};
        }
        return with_advice(error_in(ErrorCode::kUnsupported, archive_.file.name(),
                                    "has a storage by itself as {}, whose shape is not known", quote(name)),
                           {"save a tensor"});
      default:
        return {};
    }
    if (depth == kDeepest) return too_large(text("containers more than {} deep", kDeepest));
    const auto& items = pickle_.containers[static_cast<std::size_t>(value.number)];
    const bool is_dict = value.kind == Kind::kDict;
    std::vector<bool>::reference is_checked = checked_[static_cast<std::size_t>(value.number)];
    if (is_dict && !is_checked) ETSTREAM_TRY(check_keys(items, name));
    is_checked = true;
    const std::size_t step = is_dict ? 2 : 1;
    for (std::size_t i = 0; i + step <= items.size(); i += step) {
      const PickleValue& item = items[i + step - 1];
      if (!may_have_tensors(item)) {
        if (++visits_ > pickle_.bytes.size()) return too_large("the same containers over and over");
        continue;
      }
      if (opaque_ != nullptr) {
        ETSTREAM_TRY(visit(item, name, depth + 1));
        continue;
      }
      const std::size_t before = name.size();
      if (depth != 0) name += '.';
      if (!is_dict) {
        name += std::to_string(i);
      } else if (items[i].kind == Kind::kText) {
        name += text_of(items[i]);
      } else if (items[i].kind == Kind::kInteger || items[i].kind == Kind::kBool) {
        name += std::to_string(items[i].number);
      } else {
        return other_key(std::string_view(name).substr(0, before));
      }
      ETSTREAM_TRY(count_name(name.size() - before));
      ETSTREAM_TRY(visit(item, name, depth + 1));
      name.resize(before);
    }
    return {};
  }

  /// Refuses names, of containers and of tensors, that are together much longer than the pickle.
  Result<void> count_name(std::size_t size) {
    constexpr std::uint64_t kMostForByte = 8;
    names_ += size;
    if (names_ <= kMostForByte * pickle_.bytes.size()) return {};
    return too_large("names that grow with the depth of its containers");
  }

  Error other_key(std::string_view dict) const {
    return with_advice(error_in(ErrorCode::kUnsupported, archive_.file.name(),
                                "has a dict in {} with a key that is no text and no integer", quote(dict)),
                       {"name its tensors by text"});
  }

  std::string_view text_of(const PickleValue& text) const {
    return pickle_.texts[static_cast<std::size_t>(text.number)];
  }

  /// Refuses a dict with a key that comes twice, as torch keeps the last value alone. Other keys than texts
  /// and integers may be equal to integers. A text that the pickle keeps may be long, and is compared by its
  /// number.
  Result<void> check_keys(const std::vector<PickleValue>& items, const std::string& name) const {
    std::vector<PickleValue> keys;
    keys.reserve(items.size() / 2);
    bool has_others = false;
    bool has_integers = false;  // that name tensors
    for (std::size_t i = 0; i < items.size(); i += 2) {
      PickleValue key = items[i];
      if (key.kind == Kind::kBool) key.kind = Kind::kInteger;
      if (key.kind == Kind::kText || key.kind == Kind::kInteger) keys.push_back(key);
      has_integers = has_integers || (key.kind == Kind::kInteger && may_have_tensors(items[i + 1]));
      has_others = has_others || key.kind == Kind::kOther;
    }
    if (has_others && has_integers) return other_key(name);
    const auto is_less = [&](const PickleValue& a, const PickleValue& b) {
      if (a.kind != b.kind) return a.kind < b.kind;
      if (a.kind == Kind::kInteger || a.number == b.number) return a.number < b.number;
      return text_of(a) < text_of(b);
    };
    std::ranges::sort(keys, is_less);
    const auto repeated = std::ranges::adjacent_find(
        keys, [&](const PickleValue& a, const PickleValue& b) { return !is_less(a, b); });
    if (repeated == keys.end()) return {};
    return error_in(
        ErrorCode::kCorrupt, archive_.file.name(), "has a dict in {} with key {} twice", quote(name),
        repeated->kind == Kind::kText ? quote(text_of(*repeated)) : std::to_string(repeated->number));
  }

  static bool may_have_tensors(const PickleValue& value) {
    switch (value.kind) {
      case Kind::kTensor:
      case Kind::kOpaque:
      case Kind::kStorage:
      case Kind::kDict:
      case Kind::kTuple:
      case Kind::kList:
        return true;
      default:
        return false;
    }
  }

  Result<void> add(const UnpickledTensor& tensor, const std::string& name) {
    ETSTREAM_TRY(count_name(name.size()));
    ETSTREAM_ASSIGN(const ByteSource storage, storage_of(pickle_.storages[tensor.storage], name));
    ETSTREAM_ASSIGN(CheckpointTensor found,
                    tensor_in(storage, name, {tensor.type, tensor.offset, tensor.sizes, tensor.strides}));
    if (opaque_ == nullptr) {
      out_.push_back(std::move(found));
    } else {
      opaque_->push_back(std::move(found.data));
    }
    return {};
  }

  /// Adds a tensor of a kind that is not read, whose data is that of its parts.
  /// NOLINTNEXTLINE(misc-no-recursion): bounded by kDeepest.
  Result<void> add(const UnpickledOpaque& tensor, std::string& name, int depth) {
    if (opaque_ != nullptr) return visit(tensor.parts, name, depth);
    std::vector<ByteSource> parts;
    opaque_ = &parts;
    ETSTREAM_TRY(visit(tensor.parts, name, depth));
    opaque_ = nullptr;
    CheckpointTensor out{name, std::string(tensor.module) + "." + std::string(tensor.name), {}, {}};
    ETSTREAM_TRY(count_name(out.name.size() + out.type.size()));
    ETSTREAM_ASSIGN(out.data, ByteSource::concatenation(std::move(parts)));
    out_.push_back(std::move(out));
    return {};
  }

  Result<ByteSource> storage_of(const UnpickledStorage& storage, const std::string& name) const {
    const ByteSource* const bytes = archive_.find("data/" + std::string(storage.key));
    const auto size = checked_multiply(storage.elements, storage.type ? storage.type->item_size : 1);
    if (bytes != nullptr && size && *size <= bytes->size()) return bytes->slice(0, *size);
    return error_in(
        ErrorCode::kCorrupt, archive_.file.name(), "expected {} for tensor {} as data/{}, found {}",
        size ? counted(*size, "byte") : "fewer than 2^64 bytes", quote(name), printable(storage.key),
        bytes == nullptr ? "no such member" : std::to_string(bytes->size()));
  }

  const TorchArchive& archive_;
  const Unpickled& pickle_;
  std::vector<CheckpointTensor> out_;
  std::vector<ByteSource>* opaque_ = nullptr;  // the parts of the opaque tensor that is visited
  std::vector<bool> checked_;                  // the dicts whose keys come once, by their numbers
  std::uint64_t visits_ = 0;
  std::uint64_t names_ = 0;  // their bytes
};

}  // namespace

const ByteSource* TorchArchive::find(std::string_view name) const {
  const auto found = members.find(name);
  return found == members.end() ? nullptr : &found->second;
}

Result<TorchArchive> open_torch_archive(const ByteSource& file) {
  auto zip = read_zip(file);
  if (!zip) {
    Error error = std::move(zip).error();
    if (error.code == ErrorCode::kUnsupported) {
      error.advice = {"load it in torch and save it again with torch.save, which compresses nothing"};
    }
    return error;
  }
  TorchArchive out{file, {}};
  std::string folder;
  for (const ZipMember& member : zip->members) {
    const std::string::size_type end = member.name.find('/');
    if (end == std::string::npos || (!folder.empty() && !member.name.starts_with(folder))) {
      return error_in(ErrorCode::kUnsupported, file.name(),
                      "expected members in one folder, as torch writes them, found {}", quote(member.name));
    }
    if (folder.empty()) folder = member.name.substr(0, end + 1);
    ETSTREAM_ASSIGN(ByteSource data, file.slice(member.offset, member.size));
    std::string name = member.name.substr(folder.size());
    if (name != kByteOrder && in_small_letters(name) == kByteOrder) {
      return error_in(ErrorCode::kCorrupt, file.name(),
                      "expected {}, as torch finds it in whatever letters, found {}", quote(kByteOrder),
                      quote(name));
    }
    out.members.emplace(std::move(name), std::move(data));
  }
  ETSTREAM_TRY(check_byte_order(out));
  return out;
}

Result<CheckpointTensor> tensor_in(const ByteSource& storage, std::string name, TorchElements elements) {
  const auto corrupt = [&](std::string_view what) {
    return error_in(ErrorCode::kCorrupt, storage.name(), "tensor {} of {} {}: {}", quote(name),
                    elements.type->name, list_text(elements.sizes), what);
  };
  const std::uint64_t item_size = elements.type->item_size;
  const auto offset = checked_multiply(elements.offset, item_size);
  if (!offset) return corrupt("its offset is not inside the storage");
  StridedElements strided{item_size, elements.sizes, {}, *offset};
  for (const std::uint64_t stride : elements.strides) {
    const auto bytes = checked_multiply(stride, item_size);
    if (!bytes || *bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return corrupt("a stride is not inside the storage");
    }
    strided.strides.push_back(static_cast<std::int64_t>(*bytes));
  }
  auto data = gather(storage, std::move(strided));
  if (!data) {
    std::string_view why = data.error().message;
    const std::string file = storage.name() + ": ";  // which corrupt() names already
    if (why.starts_with(file)) why.remove_prefix(file.size());
    return corrupt(why);
  }
  CheckpointTensor out;
  out.type = elements.type->safetensors.empty() ? elements.type->name : elements.type->safetensors;
  out.data = std::move(*data);
  if (elements.type->type) out.layout = contiguous_layout(*elements.type->type, elements.sizes);
  if (!out.layout) {
    if (!elements.sizes.empty()) {
      const auto whole = checked_multiply(elements.sizes.back(), elements.type->elements);
      if (!whole) return corrupt("a dimension is too large");
      elements.sizes.back() = *whole;
    }
    out.shape = std::move(elements.sizes);
  }
  out.name = std::move(name);  // which corrupt() needs until here
  return out;
}

Result<std::vector<CheckpointTensor>> saved_tensors(const TorchArchive& archive, const ByteSource& pickle) {
  ETSTREAM_ASSIGN(const Unpickled unpickled, unpickle(pickle, pickle.offset_in(archive.file).value_or(0)));
  return TensorCollector(archive, unpickled).run();
}

Result<void> verify_checksums(const ByteSource& file, Findings& findings) {
  ETSTREAM_ASSIGN(const ZipArchive archive, read_zip(file));
  const bool has_none = std::ranges::all_of(archive.members, [](const ZipMember& member) {
    return member.crc32 == 0;  // with torch.serialization.set_crc32_options(False)
  });
  if (has_none) {
    add_warning(findings, text("{}: its members have no checksums, which would tell damaged ones; torch "
                               "writes them by default",
                               file.name()));
    return {};
  }
  const ZipMember* without = nullptr;  // the first that has no checksum
  std::size_t count = 0;
  std::size_t of_zeros = 0;
  for (const ZipMember& member : archive.members) {
    if (member.crc32 == 0 && member.size != 0) {  // within torch.serialization.skip_data()
      ETSTREAM_ASSIGN(const auto nonzero, find_nonzero(file, member.offset, member.offset + member.size));
      if (without == nullptr) without = &member;
      ++count;
      if (!nonzero) ++of_zeros;
      continue;
    }
    ETSTREAM_ASSIGN(auto damage, find_damage(file, member));
    if (damage) add_error(findings, *std::move(damage));
  }
  if (without != nullptr) {
    add_warning(findings,
                text("{}: {} without a checksum, which would tell damage, such as {}: torch saved the file "
                     "within skip_data(); {} of them {} only zeros, as data that was never filled in",
                     file.name(), counted(count, "member"), quote(without->name), of_zeros,
                     of_zeros == 1 ? "holds" : "hold"));
  }
  return {};
}

Result<std::vector<CheckpointTensor>> open_torch_file(const ByteSource& file) {
  return without_exceptions([&]() -> Result<std::vector<CheckpointTensor>> {
    ETSTREAM_ASSIGN(const TorchArchive archive, open_torch_archive(file));
    const ByteSource* const pickle = archive.find(kTorchPickle);
    if (pickle != nullptr) return saved_tensors(archive, *pickle);
    if (archive.find("archive_format") != nullptr) return exported_tensors(archive);
    return error_in(ErrorCode::kUnsupported, file.name(),
                    "is a zip archive without data.pkl, as torch.save writes it, or archive_format, as "
                    "torch.export.save does; expected one of them among {}",
                    counted(archive.members.size(), "member"));
  });
}

}  // namespace etstream
