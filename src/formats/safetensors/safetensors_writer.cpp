// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/checked.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/append.h"
#include "etstream/dim_order.h"
#include "etstream/safetensors.h"
#include "flatbuffer/json/json_text.h"
#include "formats/safetensors/safetensors.h"
#include "formats/tensor/dimensions.h"

namespace etstream {
namespace {

constexpr SafetensorsStyle kStyle = {R"({"__metadata__":{"format":"pt"})", &json_string, "tensors",
                                     "safetensors file"};

Result<std::vector<StoredTensor>> sorted_tensors(const Checkpoint& checkpoint) {
  std::vector<StoredTensor> out;
  out.reserve(checkpoint.tensors.size());
  std::vector<std::string_view> names = {"__metadata__"};
  names.reserve(checkpoint.tensors.size() + 1);
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    ETSTREAM_ASSIGN(const SafetensorsDtype dtype, safetensors_dtype(tensor));
    out.push_back({&tensor, dtype});
    names.emplace_back(tensor.name);
  }
  if (const auto repeated = first_repeated(names)) {
    const std::string name = quote(*repeated);
    if (*repeated != names.front()) {
      return make_error(ErrorCode::kInvalidArgument, "tensor {} comes twice", name);
    }
    return with_advice(
        make_error(ErrorCode::kInvalidArgument, "tensor {} has a name that safetensors reserves", name),
        {"give it another"});
  }
  std::ranges::sort(out, [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(b.dtype.rank, a.tensor->name) < std::tie(a.dtype.rank, b.tensor->name);
  });
  return out;
}

}  // namespace

Result<SafetensorsDtype> safetensors_dtype(const CheckpointTensor& tensor) {
  const auto unsupported = [&]<class... Arguments>(Template<Arguments...> words,
                                                   const Arguments&... arguments) {
    return error_in(ErrorCode::kUnsupported, tensor.data.name(), "tensor {} {}", quote(tensor.name),
                    text(words, arguments...));
  };
  if (!tensor.layout && tensor.shape) {
    const auto dtype = safetensors_dtype(tensor.type, *tensor.shape, tensor.data.size());
    if (dtype) return *dtype;
  }
  if (!tensor.layout) {
    return with_advice(
        unsupported("{}, which safetensors can't hold",
                    tensor.type.empty() ? "has no layout" : "is of type " + printable(tensor.type)),
        {"leave it out"});
  }
  const auto dtype = safetensors_dtype(tensor.layout->scalar_type);
  if (!dtype) {
    return unsupported("is of type {}, which safetensors has no name for",
                       name_of(tensor.layout->scalar_type));
  }
  if (!lie_alike(tensor.layout->sizes, tensor.layout->dim_order,
                 contiguous_dim_order(tensor.layout->sizes.size()))) {
    return unsupported("has its elements in the order {} of its dimensions, which safetensors can't say",
                       list_text(tensor.layout->dim_order));
  }
  const std::vector<std::uint64_t> shape(tensor.layout->sizes.begin(), tensor.layout->sizes.end());
  if (!safetensors_dtype(dtype->name, shape, tensor.data.size())) {
    return unsupported("has {}, expected those of {}", counted(tensor.data.size(), "byte"),
                       describe(*tensor.layout));
  }
  return *dtype;
}

Result<std::vector<std::byte>> safetensors_header(const std::vector<StoredTensor>& tensors,
                                                  const SafetensorsStyle& style) {
  std::string json(style.begin);
  std::uint64_t begin = 0;
  for (const auto& [tensor, dtype] : tensors) {
    const auto name = style.spell(tensor->name);
    if (!name) {
      return error_in(ErrorCode::kUnsupported, tensor->data.name(),
                      "the name of tensor {} is not UTF-8, as JSON needs it", quote(tensor->name));
    }
    const auto end = checked_add(begin, tensor->data.size());
    if (!end) return make_error(ErrorCode::kTooLarge, "the {} would be over 2^64 - 1 bytes", style.tensors);
    json += text(R"({}{}:{{"dtype":"{}","shape":[)", json == "{" ? "" : ",", *name, dtype.name);
    const std::size_t before = json.size();
    const auto add_sizes = [&](const auto& sizes) {
      for (const auto size : sizes) json += text("{}{}", json.size() == before ? "" : ",", size);
    };
    if (tensor->layout) {
      add_sizes(tensor->layout->sizes);
    } else {
      add_sizes(*tensor->shape);
    }
    json += text(R"(],"data_offsets":[{},{}]}})", begin, *end);
    begin = *end;
  }
  json += '}';
  const std::uint64_t unit = std::max<std::uint64_t>(8, style.alignment);
  json.append(static_cast<std::size_t>(padding_to(json.size() + kSafetensorsLengthSize, unit)), ' ');
  if (json.size() > kLongestSafetensorsHeader) {
    return make_error(ErrorCode::kTooLarge, "the header of the {} would be {} bytes; expected at most {}",
                      style.file, json.size(), kLongestSafetensorsHeader);
  }
  std::vector<std::byte> out(kSafetensorsLengthSize + json.size());
  const auto length = static_cast<std::uint64_t>(json.size());
  std::ranges::copy(std::as_bytes(std::span(&length, 1)), out.begin());
  std::ranges::copy(std::as_bytes(std::span(json)), out.begin() + kSafetensorsLengthSize);
  return out;
}

Result<FilePlan> plan_safetensors(const Checkpoint& checkpoint) {
  return without_exceptions([&]() -> Result<FilePlan> {
    ETSTREAM_ASSIGN(const auto tensors, sorted_tensors(checkpoint));
    ETSTREAM_ASSIGN(auto header, safetensors_header(tensors, kStyle));
    FilePlan plan;
    plan.metadata_size = header.size();
    ETSTREAM_TRY(append(plan, 8, "header", ByteSource::owned(std::move(header))));
    for (const StoredTensor& stored : tensors) {
      ETSTREAM_TRY(append(plan, 1, stored.tensor->name, stored.tensor->data));
    }
    plan.payload_size = plan.size - plan.metadata_size;
    return plan;
  });
}

}  // namespace etstream
