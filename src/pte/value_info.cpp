// SPDX-License-Identifier: BSD-3-Clause
#include "pte/value_info.h"

#include "base/try.h"

namespace etstream {
namespace {

Result<ValueInfo> read_tensor_info(const TableReader& tensor) {
  TensorInfo info;
  ETSTREAM_ASSIGN(info.scalar_type, tensor.scalar<ScalarType>("scalar_type"));
  ETSTREAM_ASSIGN(info.sizes, tensor.values<std::int32_t>("sizes"));
  ETSTREAM_ASSIGN(info.dim_order, tensor.values<std::uint8_t>("dim_order"));
  ETSTREAM_ASSIGN(info.dynamism, tensor.scalar<ShapeDynamism>("shape_dynamism"));
  return ValueInfo(std::move(info));
}

}  // namespace

Result<ValueInfo> read_value_info(const std::optional<TableReader>& held) {
  if (!held) return ValueInfo(OtherInfo{"NONE"});
  const std::string& kind = held->type_name();
  if (kind == "Tensor") return read_tensor_info(*held);
  if (kind == "Int") {
    ETSTREAM_ASSIGN(const auto scalar, held->scalar<std::int64_t>("int_val"));
    return ValueInfo(scalar);
  }
  if (kind == "Bool") {
    ETSTREAM_ASSIGN(const auto scalar, held->scalar<std::uint8_t>("bool_val"));
    return ValueInfo(scalar != 0);
  }
  if (kind == "Double") {
    ETSTREAM_ASSIGN(const auto scalar, held->scalar<double>("double_val"));
    return ValueInfo(scalar);
  }
  return ValueInfo(OtherInfo{kind});
}

}  // namespace etstream
