// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/program_model.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/flatbuffer_verifier.h"

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

Result<std::vector<std::int64_t>> View::indices(const BoundField& field) const {
  ETSTREAM_ASSIGN(const auto listed, vector(field));
  std::vector<std::int64_t> out;
  out.reserve(listed ? listed->count : 0);
  const auto add = [&](std::int64_t index) { out.push_back(index); };
  ETSTREAM_TRY(field.type().width == sizeof(std::int64_t) ? for_each(numbers<std::int64_t>(field), add)
                                                          : for_each(numbers<std::int32_t>(field), add));
  return out;
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

Result<std::vector<std::uint64_t>> Subsegments::all_offsets() const {
  ETSTREAM_ASSIGN(const ByteSource source, bytes_or_empty(fields().subsegment_offsets.offsets));
  std::vector<std::uint64_t> offsets(static_cast<std::size_t>(source.size() / sizeof(std::uint64_t)));
  ETSTREAM_TRY(source.read_at(0, std::as_writable_bytes(std::span(offsets))));
  return offsets;
}

Result<std::unique_ptr<const Program>> Program::open(std::shared_ptr<const Schema> schema, ByteSource file,
                                                     const ExtendedHeader& header, std::string name) {
  ETSTREAM_ASSIGN(ByteSource flatbuffer, file.slice(0, header.program_size));
  ETSTREAM_ASSIGN(FlatbufferView view, FlatbufferView::open(*schema, std::move(flatbuffer), std::move(name)));
  ETSTREAM_TRY(verify_flatbuffer(view));
  ETSTREAM_ASSIGN(const TableView root, view.root());
  return std::unique_ptr<const Program>(
      new Program(std::move(schema), std::move(file), header, std::move(view), root));
}

Result<std::uint64_t> Program::header_alignment() const {
  constexpr std::uint64_t kMost = 65536;
  const std::uint64_t begin = ExtendedHeader::kPosition + ExtendedHeader::kSize;
  const std::uint64_t end = std::min(view_.file().size(), begin + 2 * kMost);
  ETSTREAM_ASSIGN(const auto first, view_.find_nonzero(begin, end));
  return std::min(kMost, std::bit_floor((first ? first->offset : end) - ExtendedHeader::kPosition));
}

Program::Program(std::shared_ptr<const Schema> schema, ByteSource file, const ExtendedHeader& header,
                 FlatbufferView view, const TableView& root)
    : schema_(std::move(schema)),
      file_(std::move(file)),
      header_(header),
      view_(std::move(view)),
      fields_{*schema_},
      root_(fields_, TableReader(view_, root, schema_->root_index())) {}

Result<std::uint32_t> Program::version() const {
  return root_.scalar<std::uint32_t>(fields_.program.version);
}

Result<std::span<const std::string>> Program::method_names() const {
  const std::lock_guard lock(mutex_);
  if (!method_names_) {
    std::vector<std::string> names;
    ETSTREAM_TRY(for_each(methods(), [&](const Method& method) -> Result<void> {
      ETSTREAM_ASSIGN(names.emplace_back(), method.name());
      return {};
    }));
    method_names_ = std::move(names);
  }
  return std::span<const std::string>(*method_names_);
}

Result<std::span<const SegmentInfo>> Program::segments() const {
  const std::lock_guard lock(mutex_);
  if (!segments_) {
    ETSTREAM_ASSIGN(const TableList listed, root_.tables(fields_.program.segments));
    ETSTREAM_ASSIGN(auto segments,
                    read_segments(listed, fields_.data_segment, file_, header_.segment_base_offset));
    ETSTREAM_TRY(note_uses(*this, segments));
    segments_ = std::move(segments);
  }
  return std::span<const SegmentInfo>(*segments_);
}

Result<Tensor> Program::tensor_at(std::uint64_t position) const {
  ETSTREAM_ASSIGN(const TableView table, view_.table(position));
  return Tensor(fields_, TableReader(view_, table, fields_.tensor.index()));
}

Result<ByteSource> Program::segment_data(std::uint64_t position, std::uint64_t index) const {
  ETSTREAM_ASSIGN(const auto segments, this->segments());
  if (index >= segments.size()) {
    return view_.corrupt(position, text("a segment below {}", segments.size()), std::to_string(index));
  }
  const SegmentInfo& segment = segments[static_cast<std::size_t>(index)];
  return file_.slice(segment.offset, segment.size);
}

template <class T>
Result<T> Program::entry(const BoundField& field, std::uint64_t position, std::uint64_t index) const {
  ETSTREAM_ASSIGN(const auto all, root_.list<T>(field));
  if (index < all.size()) return all.at(index);
  return view_.corrupt(position, text("an index below {} in {}", all.size(), field.name()),
                       std::to_string(index));
}

Result<ByteSource> Program::tensor_data(const Tensor& tensor, const Storage& storage,
                                        std::uint64_t size) const {
  if (storage.kind == TensorStorage::kMutable) {
    ETSTREAM_ASSIGN(const auto pieces, entry<Subsegments>(fields_.program.mutable_data_segments,
                                                          tensor.position(), storage.mutable_data));
    return piece(tensor, pieces, storage.index, size);
  }
  ETSTREAM_ASSIGN(const auto pieces, constants());
  if (pieces) {
    ETSTREAM_ASSIGN(const auto offsets, pieces->offsets());
    if (offsets.size() > 0) return piece(tensor, *pieces, storage.index, size);
  }
  return inline_constant(tensor, storage.index, size);
}

Result<ByteSource> Program::inline_constant(const Tensor& tensor, std::uint32_t index,
                                            std::uint64_t size) const {
  ETSTREAM_ASSIGN(const auto constants, inline_constants());
  if (index >= constants.size()) {
    return tensor.corrupt(text("{} of an inline constant from 0 to below {}",
                               fields_.tensor.data_buffer_idx.full_name(), constants.size()),
                          std::to_string(index));
  }
  ETSTREAM_ASSIGN(const InlineConstant constant, constants.at(index));
  ETSTREAM_ASSIGN(const ByteSource whole, constant.data());
  if (whole.size() < size) {
    return tensor.corrupt(text("a tensor's {} bytes in the flatbuffer", size), std::to_string(whole.size()));
  }
  return whole.slice(0, size);
}

Result<ByteSource> Program::piece(const Tensor& tensor, const Subsegments& pieces, std::uint32_t index,
                                  std::uint64_t size) const {
  ETSTREAM_ASSIGN(const auto offsets, pieces.offsets());
  ETSTREAM_TRY(tensor.check_index(fields_.tensor.data_buffer_idx, index, offsets.size()));
  ETSTREAM_ASSIGN(const std::uint32_t segment, pieces.segment());
  ETSTREAM_ASSIGN(const ByteSource whole, segment_data(pieces.position(), segment));
  ETSTREAM_ASSIGN(const std::uint64_t offset, offsets.at(index));
  if (!range_fits(offset, size, whole.size())) {
    return tensor.corrupt(text("a tensor's {} bytes inside its segment's {}", size, whole.size()),
                          text("them at {}", offset));
  }
  return whole.slice(offset, size);
}

Result<ByteSource> Program::delegate_data(const DelegatePlace& place) const {
  if (place.in_segment) return segment_data(place.position, place.index);
  ETSTREAM_ASSIGN(const auto delegate,
                  entry<InlineDelegate>(fields_.program.backend_delegate_data, place.position, place.index));
  return delegate.data();
}

Result<std::vector<NamedPayload>> read_named_data(const Program& program) {
  std::vector<NamedPayload> out;
  ETSTREAM_TRY(for_each(program.named_data(), [&](const NamedData& named) -> Result<void> {
    ETSTREAM_ASSIGN(auto key, named.key());
    ETSTREAM_ASSIGN(const std::uint32_t segment, named.segment());
    ETSTREAM_ASSIGN(ByteSource data, program.segment_data(named.position(), segment));
    ETSTREAM_ASSIGN(ByteSource key_place, named.key_place());
    out.push_back({std::move(key).value_or(""), std::move(data), std::move(key_place)});
    return {};
  }));
  return out;
}

}  // namespace etstream::pte

namespace etstream {

Result<std::vector<ProgramTensor>> read_tensors(const pte::Program& program) {
  std::vector<ProgramTensor> out;
  ETSTREAM_TRY(for_each(program.methods(), [&](const pte::Method& method, std::uint32_t number) {
    return for_each(method.values(), [&](const pte::Value& value) -> Result<void> {
      ETSTREAM_ASSIGN(const auto held, value.held());
      if (!held || held->kind() != pte::ValueKind::kTensor) return {};
      ETSTREAM_ASSIGN(pte::Storage storage, held->tensor().storage());
      out.push_back({std::move(storage), number, held->position()});
      return {};
    });
  }));
  return out;
}

Result<std::vector<DelegateReference>> read_delegate_references(const pte::Program& program) {
  std::vector<DelegateReference> out;
  ETSTREAM_TRY(for_each(program.methods(), [&](const pte::Method& method, std::uint32_t number) {
    return for_each(method.delegates(), [&](const pte::Delegate& delegate, std::uint32_t i) -> Result<void> {
      ETSTREAM_ASSIGN(std::string backend, delegate.backend());
      ETSTREAM_ASSIGN(const auto place, delegate.place());
      if (place) out.push_back({*place, number, i, std::move(backend)});
      return {};
    });
  }));
  return out;
}

Result<void> note_uses(const pte::Program& program, std::vector<SegmentInfo>& segments) {
  const auto note = [&](std::uint64_t index, std::string_view use) {
    if (index < segments.size() && segments[index].use.empty()) segments[index].use = use;
  };
  const auto note_listed = [&](const auto& tables, std::string_view use) {
    return for_each(tables, [&](const auto& table) -> Result<void> {
      ETSTREAM_ASSIGN(const std::uint32_t index, table.segment());
      note(index, use);
      return {};
    });
  };
  ETSTREAM_ASSIGN(const auto constants, program.constants());
  if (constants) {
    ETSTREAM_ASSIGN(const auto offsets, constants->offsets());
    ETSTREAM_ASSIGN(const std::uint32_t index, constants->segment());
    // A table without offsets is a formality, and the segment that it names belongs to others.
    if (offsets.size() > 0) note(index, "constants");
  }
  ETSTREAM_TRY(note_listed(program.mutable_data(), "mutable data"));
  ETSTREAM_TRY(note_listed(program.named_data(), "named data"));
  ETSTREAM_ASSIGN(const auto delegates, read_delegate_references(program));
  for (const DelegateReference& reference : delegates) {
    if (reference.in_segment) note(reference.index, text("delegate {}", reference.backend));
  }
  return {};
}

}  // namespace etstream
