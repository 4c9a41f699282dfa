// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/dim_order.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "formats/tensor/dimensions.h"
#include "formats/tensor/strided_source.h"

namespace etstream {
namespace {

/// Returns the dimensions that decide where an element lies.
std::vector<std::uint8_t> without_ones(const std::vector<std::int32_t>& sizes,
                                       const std::vector<std::uint8_t>& order) {
  std::vector<std::uint8_t> out;
  std::copy_if(order.begin(), order.end(), std::back_inserter(out),
               [&](std::uint8_t dimension) { return sizes[dimension] != 1; });
  return out;
}

/// Returns the sizes in the order in which the elements lie.
std::vector<std::uint64_t> lying_sizes(const std::vector<std::int32_t>& sizes,
                                       const std::vector<std::uint8_t>& order) {
  std::vector<std::uint64_t> out;
  out.reserve(order.size());
  for (const std::uint8_t dimension : order) out.push_back(static_cast<std::uint64_t>(sizes[dimension]));
  return out;
}

/// Returns the elements of the tensor in the order `to`.
StridedElements elements_in_order(const Tensor& tensor, const std::vector<std::uint8_t>& to) {
  const std::uint64_t item = item_size(tensor.scalar_type);
  const auto lying = dense_strides(lying_sizes(tensor.sizes, tensor.dim_order), item);
  std::vector<std::int64_t> strides(lying.size());
  for (std::size_t i = 0; i < lying.size(); ++i) strides[tensor.dim_order[i]] = lying[i];
  StridedElements out{item, lying_sizes(tensor.sizes, to), {}, 0};
  for (const std::uint8_t dimension : to) out.strides.push_back(strides[dimension]);
  return out;
}

}  // namespace

bool lie_alike(const std::vector<std::int32_t>& sizes, const std::vector<std::uint8_t>& one,
               const std::vector<std::uint8_t>& other) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return true;
  return without_ones(sizes, one) == without_ones(sizes, other);
}

Result<Tensor> with_dim_order(const Tensor& tensor, std::vector<std::uint8_t> dim_order) {
  return without_exceptions([&]() -> Result<Tensor> {
    for (const std::vector<std::uint8_t>* order : {&tensor.dim_order, &std::as_const(dim_order)}) {
      if (is_permutation(*order, tensor.sizes.size())) continue;
      return make_error(ErrorCode::kInvalidArgument, "dim_order {} is not a permutation of the {} dimensions",
                        list_text(*order), tensor.sizes.size());
    }
    ETSTREAM_ASSIGN(const std::uint64_t bytes, byte_size(tensor.scalar_type, tensor.sizes));
    if (tensor.data.size() != bytes) {
      return make_error(ErrorCode::kInvalidArgument, "a tensor has {} bytes of data, expected {}",
                        tensor.data.size(), bytes);
    }
    Tensor out{tensor.scalar_type, tensor.sizes, std::move(dim_order), tensor.data, tensor.any_order};
    if (lie_alike(tensor.sizes, tensor.dim_order, out.dim_order)) return out;
    ETSTREAM_ASSIGN(out.data, gather(tensor.data, elements_in_order(tensor, out.dim_order)));
    return out;
  });
}

}  // namespace etstream
