// SPDX-License-Identifier: BSD-3-Clause
#include "pte/rewrite/release_fields.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "base/text.h"
#include "base/try.h"

namespace etstream {
namespace {

/// What program.fbs got after 1.0, where a value says something. Tables that came later are in such fields.
struct LaterField {
  std::string_view table;
  std::string_view field;
  ExecutorchRelease since;
};
constexpr std::array kLaterFields = {
    LaterField{"ExtraTensorInfo", "device_type", ExecutorchRelease::k1_3},
    LaterField{"ExtraTensorInfo", "device_index", ExecutorchRelease::k1_3},
    LaterField{"ExecutionPlan", "non_const_buffer_device", ExecutorchRelease::k1_3},
};

}  // namespace

ReleaseFields::ReleaseFields(const Schema& schema, ValueReader& values, ExecutorchRelease release)
    : schema_(schema), values_(values), release_(release) {
  for (const LaterField& later : kLaterFields) {
    if (release >= later.since) continue;
    const auto table = schema.find_table(later.table);
    const auto field = table ? schema.find_field(*table, later.field) : std::nullopt;
    if (!field) std::abort();
    newer_.emplace_back(*table, *field);
  }
}

Result<FieldValue> ReleaseFields::field(ValueNode node, std::size_t table, std::size_t field) {
  ETSTREAM_ASSIGN(FieldValue value, values_.field(node, table, field));
  if (std::find(newer_.begin(), newer_.end(), std::pair(table, field)) == newer_.end()) return value;
  const auto* scalar = std::get_if<ScalarValue>(&value);
  if (std::holds_alternative<AbsentValue>(value) || (scalar && scalar->bits == 0)) return value;
  const TableType& type = schema_.tables()[table];
  return make_error(ErrorCode::kInvalidArgument, "the program has a value for ", type.name, ".",
                    type.fields[field].name, ", which ExecuTorch ", name_of(release_), " does not know");
}

}  // namespace etstream
