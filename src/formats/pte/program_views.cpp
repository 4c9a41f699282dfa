// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/program_views.h"

#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"

namespace etstream {

std::string name_of_kinds(Kinds set) {
  using enum pte::ValueKind;
  constexpr std::pair<Kinds, std::string_view> kNames[] = {
      {kAnyNumber, "a number"},
      {kinds(kTensor), "a tensor"},
      {kinds(kInt), "an integer"},
      {kinds(kBool), "a boolean"},
      {kinds(kDouble), "a double"},
      {kinds(kString), "a string"},
      {kinds(kIntList), "a list of integers"},
      {kinds(kDoubleList), "a list of doubles"},
      {kinds(kBoolList), "a list of booleans"},
      {kinds(kTensorList), "a list of tensors"},
      {kinds(kOptionalTensorList), "a list of optional tensors"}};
  if (set == kinds(kNull)) return "null";
  std::string out;
  for (const auto& [each, name] : kNames) {
    if ((set & each) != each) continue;
    if (!out.empty()) out += " or ";
    out += name;
    set = static_cast<Kinds>(set & ~each);
  }
  return out.empty() ? "another kind of value" : out;
}

std::string_view name_of(TensorStorage storage) noexcept {
  // The names in the order of TensorStorage.
  static constexpr std::string_view kNames[] = {"", "provided", "planned", "constant", "mutable", "external"};
  const auto number = static_cast<std::size_t>(storage);
  return number < std::size(kNames) ? kNames[number] : "";
}

}  // namespace etstream

namespace etstream::pte {
namespace {

constexpr std::int8_t kExternal = 1;   // TensorDataLocation.EXTERNAL
constexpr std::int8_t kInSegment = 1;  // DataLocation.SEGMENT

}  // namespace

Result<std::string> View::string_or_empty(const BoundField& field) const {
  ETSTREAM_ASSIGN(auto found, string(field));
  return std::move(found).value_or("");
}

Result<ByteSource> View::bytes_or_empty(const BoundField& field) const {
  ETSTREAM_ASSIGN(auto found, bytes(field));
  return std::move(found).value_or(ByteSource());
}

Result<void> View::check_index(const BoundField& field, std::int64_t index, std::uint64_t limit) const {
  if (index >= 0 && std::cmp_less(index, limit)) return {};
  return corrupt(text("{} from 0 to below {}", field.full_name(), limit), std::to_string(index));
}

Result<std::uint32_t> View::index(const BoundField& field, std::uint64_t limit) const {
  ETSTREAM_ASSIGN(const auto found, scalar<std::int32_t>(field));
  ETSTREAM_TRY(check_index(field, found, limit));
  return static_cast<std::uint32_t>(found);
}

std::int8_t tensor_location(bool is_external) { return is_external ? kExternal : 0; }
std::int8_t delegate_location(bool in_segment) { return in_segment ? kInSegment : 0; }

Result<std::uint64_t> Allocation::memory_offset() const {
  ETSTREAM_ASSIGN(const auto low, scalar<std::uint32_t>(fields().allocation_details.memory_offset_low));
  ETSTREAM_ASSIGN(const auto high, scalar<std::uint32_t>(fields().allocation_details.memory_offset_high));
  return std::uint64_t{high} << 32 | low;
}

Result<void> Allocation::check(std::uint64_t bytes, const NumberList<std::int64_t>& sizes) const {
  ETSTREAM_ASSIGN(const std::uint32_t memory, memory_id());
  // Memory ids count from 1; their sizes from 0, and size 0 is reserved.
  if (memory == 0 || memory >= sizes.size()) {
    return corrupt(text("a memory_id from 1 to below {}", sizes.size()), std::to_string(memory));
  }
  ETSTREAM_ASSIGN(const std::uint64_t offset, memory_offset());
  ETSTREAM_ASSIGN(const std::int64_t signed_size, sizes.at(memory));
  const auto size = static_cast<std::uint64_t>(signed_size);
  if (range_fits(offset, bytes, size)) return {};
  return corrupt(text("{} bytes inside the {} of memory {}", bytes, size, memory),
                 text("them at {}", offset));
}

Result<TensorInfo> Tensor::info() const {
  ETSTREAM_ASSIGN(TensorLayout layout, this->layout());
  ETSTREAM_ASSIGN(const auto dynamism, scalar<ShapeDynamism>(fields().tensor.shape_dynamism));
  return TensorInfo{layout.scalar_type, std::move(layout.sizes), std::move(layout.dim_order), dynamism};
}

Result<std::optional<Allocation>> Tensor::allocation() const {
  return optional_view<Allocation>(child(fields().tensor.allocation_info));
}

Result<Storage> Tensor::storage() const {
  Storage out;
  std::int8_t location = 0;
  ETSTREAM_ASSIGN(out.index, scalar<std::uint32_t>(fields().tensor.data_buffer_idx));
  ETSTREAM_ASSIGN(out.is_planned, has(fields().tensor.allocation_info));
  ETSTREAM_ASSIGN(const auto extra, child(fields().tensor.extra_tensor_info));
  if (extra) {
    const auto& known = fields().extra_tensor_info;
    ETSTREAM_ASSIGN(location, extra->scalar<std::int8_t>(known.location));
    ETSTREAM_ASSIGN(auto name, extra->string(known.fully_qualified_name));
    out.name = std::move(name).value_or("");
    ETSTREAM_ASSIGN(out.mutable_data, extra->scalar<std::uint64_t>(known.mutable_data_segments_idx));
    out.extra_position = extra->position();
    for (const BoundField* other :
         {&known.mutable_data_segments_idx, &known.device_type, &known.device_index}) {
      ETSTREAM_ASSIGN(const bool has_it, extra->has(*other));
      out.has_other_info |= has_it;
    }
  }
  if (location == kExternal) {
    out.kind = TensorStorage::kExternal;
  } else if (out.index == 0) {
    out.kind = out.is_planned ? TensorStorage::kPlanned : TensorStorage::kProvided;
  } else {
    out.kind = out.is_planned ? TensorStorage::kMutable : TensorStorage::kConstant;
  }
  return out;
}

ValueKind Held::kind() const {
  const program::Fields& known = fields();
  const std::pair<const BoundTable&, ValueKind> kinds[] = {
      {known.null, ValueKind::kNull},
      {known.tensor, ValueKind::kTensor},
      {known.int_, ValueKind::kInt},
      {known.bool_, ValueKind::kBool},
      {known.double_, ValueKind::kDouble},
      {known.string, ValueKind::kString},
      {known.int_list, ValueKind::kIntList},
      {known.double_list, ValueKind::kDoubleList},
      {known.bool_list, ValueKind::kBoolList},
      {known.tensor_list, ValueKind::kTensorList},
      {known.optional_tensor_list, ValueKind::kOptionalTensorList},
  };
  for (const auto& [table, kind] : kinds) {
    if (table.index() == type()) return kind;
  }
  return ValueKind::kUnknown;
}

Result<ValueInfo> Held::info_of(const std::optional<Held>& held) {
  return held ? held->info() : ValueInfo(OtherInfo{"NONE"});
}

Result<ValueInfo> Held::info() const {
  const program::Fields& known = fields();
  switch (kind()) {
    case ValueKind::kTensor: {
      ETSTREAM_ASSIGN(TensorInfo info, tensor().info());
      return ValueInfo(std::move(info));
    }
    case ValueKind::kInt: {
      ETSTREAM_ASSIGN(const auto integer, scalar<std::int64_t>(known.int_.int_val));
      return ValueInfo(integer);
    }
    case ValueKind::kBool: {
      ETSTREAM_ASSIGN(const auto boolean, scalar<std::uint8_t>(known.bool_.bool_val));
      return ValueInfo(boolean != 0);
    }
    case ValueKind::kDouble: {
      ETSTREAM_ASSIGN(const auto number, scalar<double>(known.double_.double_val));
      return ValueInfo(number);
    }
    default:
      return ValueInfo(OtherInfo{type_name()});
  }
}

const BoundField* Held::items() const {
  const program::Fields& known = fields();
  for (const BoundField* items : {&known.int_list.items, &known.double_list.items, &known.bool_list.items,
                                  &known.tensor_list.items, &known.optional_tensor_list.items}) {
    if (items->table == type()) return items;
  }
  return nullptr;
}

Result<std::optional<DelegatePlace>> Delegate::place() const {
  const auto& known = fields().backend_delegate_data_reference;
  ETSTREAM_ASSIGN(const auto table, child(fields().backend_delegate.processed));
  if (!table) return std::optional<DelegatePlace>();
  DelegatePlace out{.position = table->position()};
  ETSTREAM_ASSIGN(out.location, table->scalar<std::int8_t>(known.location));
  ETSTREAM_ASSIGN(out.index, table->scalar<std::uint32_t>(known.index));
  out.in_segment = out.location == kInSegment;
  return std::optional(out);
}

std::optional<CallKind> Call::kind() const {
  const program::Fields& known = fields();
  if (type() == known.kernel_call.index()) return CallKind::kKernel;
  if (type() == known.delegate_call.index()) return CallKind::kDelegate;
  if (type() == known.move_call.index()) return CallKind::kMove;
  if (type() == known.jump_false_call.index()) return CallKind::kJumpIfFalse;
  if (type() == known.free_call.index()) return CallKind::kFree;
  return std::nullopt;
}

const BoundField* Call::args() const {
  const auto found = kind();
  if (found == CallKind::kKernel) return &fields().kernel_call.args;
  return found == CallKind::kDelegate ? &fields().delegate_call.args : nullptr;
}

const BoundField& Call::callee() const {
  return kind() == CallKind::kKernel ? fields().kernel_call.op_index : fields().delegate_call.delegate_index;
}

Result<std::vector<std::uint64_t>> Subsegments::all_offsets() const {
  ETSTREAM_ASSIGN(const ByteSource source, bytes_or_empty(fields().subsegment_offsets.offsets));
  std::vector<std::uint64_t> offsets(static_cast<std::size_t>(source.size() / sizeof(std::uint64_t)));
  ETSTREAM_TRY(source.read_at(0, std::as_writable_bytes(std::span(offsets))));
  return offsets;
}

}  // namespace etstream::pte
