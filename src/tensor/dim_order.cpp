// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/dim_order.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "base/try.h"
#include "tensor/dimensions.h"

namespace etstream {
namespace {

/// The dimensions that decide where an element lies.
std::vector<std::uint8_t> without_ones(const std::vector<std::int32_t>& sizes,
                                       const std::vector<std::uint8_t>& order) {
  std::vector<std::uint8_t> out;
  std::copy_if(order.begin(), order.end(), std::back_inserter(out),
               [&](std::uint8_t dimension) { return sizes[dimension] != 1; });
  return out;
}

/// By dimension: how many elements further the next one lies.
std::vector<std::size_t> strides_of(const std::vector<std::int32_t>& sizes,
                                    const std::vector<std::uint8_t>& order) {
  std::vector<std::size_t> strides(sizes.size());
  std::size_t stride = 1;
  for (auto dimension = order.rbegin(); dimension != order.rend(); ++dimension) {
    strides[*dimension] = stride;
    stride *= static_cast<std::size_t>(sizes[*dimension]);
  }
  return strides;
}

/// Moves the elements of `from` to where they lie under the order `to`, front to back.
void permute(const Tensor& tensor, const std::vector<std::uint8_t>& to, const std::vector<std::byte>& from,
             std::vector<std::byte>& out) {
  const auto item = static_cast<std::size_t>(item_size(tensor.scalar_type));
  const auto strides = strides_of(tensor.sizes, tensor.dim_order);
  std::vector<std::int32_t> place(tensor.sizes.size());
  std::size_t source = 0;
  for (std::size_t at = 0; at < out.size(); at += item) {
    std::memcpy(out.data() + at, from.data() + source * item, item);
    for (auto dimension = to.rbegin(); dimension != to.rend(); ++dimension) {
      source += strides[*dimension];
      if (++place[*dimension] < tensor.sizes[*dimension]) break;
      source -= strides[*dimension] * static_cast<std::size_t>(tensor.sizes[*dimension]);
      place[*dimension] = 0;
    }
  }
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
    if (bytes > std::numeric_limits<std::size_t>::max() / 2) {
      return make_error(ErrorCode::kTooLarge, "a tensor of {} bytes does not fit in memory", bytes);
    }
    Tensor out{tensor.scalar_type, tensor.sizes, std::move(dim_order), tensor.data};
    if (lie_alike(tensor.sizes, tensor.dim_order, out.dim_order)) return out;
    std::vector<std::byte> from(static_cast<std::size_t>(bytes));
    ETSTREAM_TRY(tensor.data.read_at(0, from));
    std::vector<std::byte> moved(from.size());
    permute(tensor, out.dim_order, from, moved);
    out.data = ByteSource::owned(std::move(moved));
    return out;
  });
}

}  // namespace etstream
