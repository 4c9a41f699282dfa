// SPDX-License-Identifier: BSD-3-Clause
#include "pte/rewrite/release_fields.h"

#include <algorithm>

#include "base/text.h"
#include "base/try.h"

namespace etstream {

/// program.fbs got fields after 1.0, in which a value says something. Tables that came later are in such
/// fields.
ReleaseFields::ReleaseFields(const pte::ProgramFields& fields, ValueReader& values, ExecutorchRelease release)
    : values_(values), release_(release) {
  if (release >= ExecutorchRelease::k1_3) return;
  newer_ = {fields.extra_tensor.device_type, fields.extra_tensor.device_index,
            fields.method.non_const_buffer_device};
}

Result<FieldValue> ReleaseFields::field(ValueNode node, std::size_t table, std::size_t field) {
  ETSTREAM_ASSIGN(FieldValue value, values_.field(node, table, field));
  const auto newer = std::find_if(newer_.begin(), newer_.end(), [&](const BoundField& one) {
    return one.table == table && one.index == field;
  });
  if (newer == newer_.end()) return value;
  const auto* scalar = std::get_if<ScalarValue>(&value);
  if (std::holds_alternative<AbsentValue>(value) || (scalar && scalar->bits == 0)) return value;
  return make_error(ErrorCode::kInvalidArgument,
                    "the program has a value for {}, which ExecuTorch {} does not know", newer->full_name(),
                    name_of(release_));
}

}  // namespace etstream
