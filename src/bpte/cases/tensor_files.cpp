// SPDX-License-Identifier: BSD-3-Clause
#include "bpte/cases/tensor_files.h"

#include <span>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "tensor/dimensions.h"
#include "tensor/npy.h"

namespace etstream {
namespace {

Result<std::vector<std::int32_t>> sizes_of(std::span<const std::int64_t> shape) {
  std::vector<std::int32_t> sizes;
  for (const std::int64_t size : shape) {
    if (size < 0 || !std::in_range<std::int32_t>(size)) {
      return make_error(ErrorCode::kInvalidArgument, "a dimension has size {}, expected 0 to 2147483647",
                        size);
    }
    sizes.push_back(static_cast<std::int32_t>(size));
  }
  return sizes;
}

Result<std::vector<std::uint8_t>> dim_order_of(const std::vector<std::int64_t>& given,
                                               std::size_t dimensions) {
  constexpr std::uint8_t kNone = kMostDimensions;
  std::vector<std::uint8_t> order;
  for (const std::int64_t dimension : given) {
    order.push_back(std::in_range<std::uint8_t>(dimension) ? static_cast<std::uint8_t>(dimension) : kNone);
  }
  if (is_permutation(order, dimensions)) return order;
  return make_error(ErrorCode::kInvalidArgument,
                    "dim_order is not a permutation of the tensor's {} dimensions", dimensions);
}

}  // namespace

Result<Tensor> TensorFiles::open(const TensorReference& reference) {
  ETSTREAM_ASSIGN(Tensor tensor, open_from_file(reference));
  if (tensor.sizes.size() > kMostDimensions) {
    return make_error(ErrorCode::kInvalidArgument, "a tensor has {} dimensions, ExecuTorch's have at most {}",
                      tensor.sizes.size(), kMostDimensions);
  }
  tensor.dim_order = contiguous_dim_order(tensor.sizes.size());
  if (reference.dim_order) {
    ETSTREAM_ASSIGN(tensor.dim_order, dim_order_of(*reference.dim_order, tensor.sizes.size()));
  }
  return tensor;
}

Result<Tensor> TensorFiles::open_from_file(const TensorReference& reference) {
  const int kinds = reference.npy.has_value() + reference.safetensors.has_value() + reference.raw.has_value();
  if (kinds != 1) {
    return make_error(ErrorCode::kInvalidArgument,
                      "a tensor is given by one of npy, safetensors and raw, not by {}",
                      kinds == 0 ? "none" : "several");
  }
  if (reference.safetensors.has_value() != reference.name.has_value()) {
    return make_error(ErrorCode::kInvalidArgument, "safetensors and name go together");
  }
  const bool raw = reference.raw.has_value();
  if (raw != reference.dtype.has_value() || raw != reference.shape.has_value()) {
    return make_error(ErrorCode::kInvalidArgument, "raw, dtype and shape go together");
  }
  if (reference.raw) return open_raw(reference);
  if (reference.safetensors) return open_from_safetensors(*reference.safetensors, *reference.name);
  ETSTREAM_ASSIGN(const ByteSource file, open_file(*reference.npy));
  return open_npy(file);
}

Result<Tensor> TensorFiles::open_from_safetensors(const std::string& path, const std::string& name) {
  auto file_tensors = safetensors_.find(path);
  if (file_tensors == safetensors_.end()) {
    ETSTREAM_ASSIGN(const ByteSource file, open_file(path));
    ETSTREAM_ASSIGN(SafetensorsFile opened, open_safetensors(file));
    file_tensors = safetensors_.try_emplace(path).first;
    for (CheckpointTensor& tensor : opened.tensors) {
      file_tensors->second.emplace(tensor.name, std::move(tensor));
    }
  }
  const auto found = file_tensors->second.find(name);
  if (found == file_tensors->second.end()) {
    return make_error(ErrorCode::kNotFound, "{}: there is no tensor {} among its {}", path, quote(name),
                      file_tensors->second.size());
  }
  const CheckpointTensor& tensor = found->second;
  if (!tensor.layout) {
    return make_error(ErrorCode::kUnsupported,
                      "{}: tensor {} is of type {}, which ExecuTorch has no tensors of", path, quote(name),
                      quote(tensor.type));
  }
  return Tensor{tensor.layout->scalar_type, tensor.layout->sizes, {}, tensor.data};
}

Result<Tensor> TensorFiles::open_raw(const TensorReference& reference) {
  const auto type = find_scalar_type(*reference.dtype);
  if (!type) {
    return make_error(ErrorCode::kInvalidArgument,
                      "unknown dtype {}; expected a name that torch uses, such as float32 or int64",
                      quote(*reference.dtype));
  }
  ETSTREAM_ASSIGN(auto sizes, sizes_of(std::span(*reference.shape)));
  ETSTREAM_ASSIGN(const std::uint64_t expected, byte_size(*type, sizes));
  ETSTREAM_ASSIGN(ByteSource file, open_file(*reference.raw));
  if (file.size() != expected) {
    return make_error(ErrorCode::kInvalidArgument,
                      "{}: is {} bytes, expected {} for the shape and dtype given", file.name(), file.size(),
                      expected);
  }
  return Tensor{*type, std::move(sizes), {}, std::move(file)};
}

Result<ByteSource> TensorFiles::open_file(const std::string& path) {
  if (const auto opened = files_.find(path); opened != files_.end()) return opened->second;
  ETSTREAM_ASSIGN(ByteSource file, ByteSource::file(path.starts_with('/') ? path : folder_ + path));
  files_.emplace(path, file);
  return file;
}

}  // namespace etstream
