// SPDX-License-Identifier: BSD-3-Clause
#include "formats/torch/torch_archive.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "formats/tensor/dimensions.h"
#include "formats/tensor/strided_source.h"
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

}  // namespace etstream
