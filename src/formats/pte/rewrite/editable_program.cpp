// SPDX-License-Identifier: BSD-3-Clause
//
// Reading a program to edit; its payloads, taken out of it, moved and put in again; and its values for the
// packer.
#include "formats/pte/rewrite/editable_program.h"

#include <algorithm>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "core/layout/same_bytes.h"
#include "etstream/tensor.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/struct_reader.h"

namespace etstream {
namespace {

using Subsegments = EditableProgram::Subsegments;

/// Reads the data that constants, or delegates, have in the flatbuffer.
template <class T>
Result<std::vector<EditableProgram::InlineData>> read_inline_data(const Result<pte::List<T>>& entries) {
  std::vector<EditableProgram::InlineData> out;
  ETSTREAM_TRY(for_each(entries, [&](const T& entry) -> Result<void> {
    ETSTREAM_ASSIGN(ByteSource data, entry.data());
    out.push_back({entry.position(), std::move(data)});
    return {};
  }));
  return out;
}

/// Returns the index of the segment that `table` names, which is below `count`.
Result<std::uint32_t> read_segment(const auto& table, std::size_t count) {
  ETSTREAM_ASSIGN(const std::uint32_t index, table.segment());
  if (index < count) return index;
  return table.corrupt(text("a segment below {}", count), std::to_string(index));
}

Result<Subsegments> read_subsegments(const pte::Subsegments& table, std::size_t count) {
  Subsegments out;
  out.position = table.position();
  ETSTREAM_ASSIGN(out.offsets, table.all_offsets());
  ETSTREAM_ASSIGN(const std::uint32_t index, table.segment());
  // If there are no constants, segment 0 need not exist, or belongs to others.
  if (out.offsets.empty() || (index == 0 && count == 0)) return out;
  ETSTREAM_ASSIGN(out.segment, read_segment(table, count));
  return out;
}

Result<void> read_tensor_data(EditableProgram& editable) {
  ETSTREAM_ASSIGN(editable.inline_constants, read_inline_data(editable.program.inline_constants()));
  ETSTREAM_ASSIGN(const auto constants, editable.program.constants());
  if (constants) {
    ETSTREAM_ASSIGN(editable.constants, read_subsegments(*constants, editable.segments.size()));
  }
  ETSTREAM_TRY(for_each(editable.program.mutable_data(), [&](const pte::Subsegments& table) -> Result<void> {
    ETSTREAM_ASSIGN(editable.mutable_data.emplace_back(), read_subsegments(table, editable.segments.size()));
    return {};
  }));
  ETSTREAM_ASSIGN(editable.tensors, read_tensors(editable.program));
  return {};
}

Result<void> read_named_data(EditableProgram& editable) {
  return for_each(editable.program.named_data(), [&](const pte::NamedData& table) -> Result<void> {
    ETSTREAM_ASSIGN(auto key, table.key());
    ETSTREAM_ASSIGN(const std::uint32_t segment, read_segment(table, editable.segments.size()));
    editable.named_data.push_back({table.position(), std::move(key).value_or(""), segment});
    return {};
  });
}

Result<void> read_delegates(EditableProgram& editable) {
  ETSTREAM_ASSIGN(editable.inline_delegates, read_inline_data(editable.program.inline_delegates()));
  ETSTREAM_ASSIGN(editable.delegates, read_delegate_references(editable.program));
  for (const DelegateReference& reference : editable.delegates) {
    const std::size_t count =
        reference.in_segment ? editable.segments.size() : editable.inline_delegates.size();
    if (reference.index < count) continue;
    return editable.program.view().corrupt(reference.position,
                                           text("an index below {} of a delegate's data {}", count,
                                                reference.in_segment ? "in segments" : "in the flatbuffer"),
                                           std::to_string(reference.index));
  }
  return {};
}

/// Sets the values of a program to those of its edited form.
class ValueSetter {
 public:
  ValueSetter(const EditableProgram& editable, EditedValues& values)
      : editable_(editable),
        known_(editable.program.fields()),
        values_(values),
        numbers_(editable.segments.size()) {
    for (std::uint32_t i = 0; i < editable.order.size(); ++i) numbers_[editable.order[i]] = i;
  }

  void set_methods() {
    if (editable_.has_all_methods) return;
    std::vector<ValueNode> plans;
    for (const std::uint64_t position : editable_.methods) plans.push_back(EditedValues::node_at(position));
    set_list(known_.program.execution_plan, std::move(plans));
  }

  void set_segments(const std::vector<std::uint64_t>& offsets) {
    std::vector<ValueNode> tables;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      const EditableProgram::Segment& segment = editable_.segments[editable_.order[i]];
      const ValueNode table = tables.emplace_back(node(segment.position));
      values_.set(table, known_.data_segment.offset, scalar(offsets[i]));
      values_.set(table, known_.data_segment.size, scalar(segment.source.size()));
    }
    set_list(known_.program.segments, std::move(tables));
  }

  void set_tensor_data() {
    if (editable_.constants) {
      values_.set(values_.root(), known_.program.constant_segment,
                  TableValue{set_subsegments(*editable_.constants)});
      if (!editable_.has_same_inline_constants) set_list(known_.program.constant_buffer, {});
    }
    for (const Subsegments& subsegments : editable_.mutable_data) set_subsegments(subsegments);
    if (!editable_.has_same_mutable_data) {
      values_.set(values_.root(), known_.program.mutable_data_segments, AbsentValue{});
    }
    for (const std::size_t i : editable_.changed_tensors) set_tensor(editable_.tensors[i]);
  }

  void set_named_data() {
    std::vector<ValueNode> tables;
    for (const EditableProgram::NamedData& named : editable_.named_data) {
      const ValueNode table = tables.emplace_back(node(named.position));
      values_.set(table, known_.named_data.segment_index, scalar(numbers_[named.segment]));
      if (!named.position) values_.set(table, known_.named_data.key, values_.string(named.key));
    }
    if (!editable_.has_same_named_data) set_list(known_.program.named_data, std::move(tables));
  }

  void set_delegates() {
    for (const DelegateReference& reference : editable_.delegates) {
      const ValueNode table = EditedValues::node_at(reference.position);
      const std::uint32_t index = reference.in_segment ? numbers_[reference.index] : reference.index;
      values_.set(table, known_.backend_delegate_data_reference.location,
                  scalar(pte::delegate_location(reference.in_segment)));
      values_.set(table, known_.backend_delegate_data_reference.index, scalar(index));
    }
    if (editable_.has_same_inline_delegates) return;
    std::vector<ValueNode> tables;
    for (const EditableProgram::InlineData& entry : editable_.inline_delegates) {
      const ValueNode table = tables.emplace_back(node(entry.position));
      values_.set(table, known_.backend_delegate_inline_data.data, entry.data);
    }
    set_list(known_.program.backend_delegate_data, std::move(tables));
  }

 private:
  ValueNode node(const std::optional<std::uint64_t>& position) {
    return position ? EditedValues::node_at(*position) : values_.add_table();
  }

  void set_list(const BoundField& field, std::vector<ValueNode> tables) {
    values_.set(values_.root(), field, values_.tables(std::move(tables)));
  }

  ValueNode set_subsegments(const Subsegments& subsegments) {
    const ValueNode table = node(subsegments.position);
    if (subsegments.segment) {
      values_.set(table, known_.subsegment_offsets.segment_index, scalar(numbers_[*subsegments.segment]));
    }
    if (subsegments.pieces) {
      values_.set(table, known_.subsegment_offsets.offsets, values_.scalars(subsegments.offsets));
    }
    return table;
  }

  void set_tensor(const ProgramTensor& tensor) {
    const ValueNode table = EditedValues::node_at(tensor.position);
    values_.set(table, known_.tensor.data_buffer_idx, scalar(tensor.index));
    if (tensor.name.empty() && !tensor.has_other_info) {
      values_.set(table, known_.tensor.extra_tensor_info, AbsentValue{});
      return;
    }
    const ValueNode extra = node(tensor.extra_position);
    values_.set(table, known_.tensor.extra_tensor_info, TableValue{extra});
    values_.set(extra, known_.extra_tensor_info.fully_qualified_name,
                tensor.name.empty() ? FieldValue(AbsentValue{}) : values_.string(tensor.name));
    values_.set(extra, known_.extra_tensor_info.location,
                scalar(pte::tensor_location(tensor.kind == TensorStorage::kExternal)));
  }

  const EditableProgram& editable_;
  const program::Fields& known_;
  EditedValues& values_;
  std::vector<std::uint32_t> numbers_;  // of segments in the file
};

/// Removes the source locations of all methods' instructions.
Result<void> remove_stack_traces(const pte::Program& program, EditedValues& values) {
  return for_each(program.methods(), [&](const pte::Method& method) {
    return for_each(method.chains(), [&](const pte::Chain& chain) {
      values.set(EditedValues::node_at(chain.position()), program.fields().chain.stacktrace, AbsentValue{});
    });
  });
}

}  // namespace

std::uint32_t EditableProgram::add_segment(ByteSource source, std::string_view label) {
  order.push_back(static_cast<std::uint32_t>(segments.size()));
  segments.push_back({std::move(source), std::string(label)});
  return order.back();
}

Result<EditableProgram> read_editable_program(const pte::Program& program,
                                              std::vector<EditableProgram::Segment> segments) {
  ETSTREAM_ASSIGN(const auto unknown, find_unknown_field(program.view()));
  if (unknown) {
    return make_error(ErrorCode::kUnsupported,
                      "{}; a program is written again only by a schema that has all of its fields",
                      unknown->message);
  }
  EditableProgram editable(program);
  ETSTREAM_TRY(for_each(program.methods(),
                        [&](const pte::Method& method) { editable.methods.push_back(method.position()); }));
  editable.segments = std::move(segments);
  std::vector<SegmentInfo> uses(editable.segments.size());
  ETSTREAM_TRY(note_uses(program, uses));
  ETSTREAM_TRY(for_each(program.segment_tables(), [&](const pte::View& table, std::uint32_t i) {
    editable.segments[i].label = uses[i].use.empty() ? "segment" : uses[i].use;
    editable.segments[i].position = table.position();
    editable.order.push_back(i);
  }));
  ETSTREAM_TRY(read_tensor_data(editable));
  ETSTREAM_TRY(read_named_data(editable));
  ETSTREAM_TRY(read_delegates(editable));
  return editable;
}

Result<EditableProgram> read_editable_program(const ProgramFile& program) {
  const pte::Program& model = program.model();
  ETSTREAM_ASSIGN(const auto listed, model.segments());
  std::vector<EditableProgram::Segment> segments;
  for (const SegmentInfo& segment : listed) {
    ETSTREAM_ASSIGN(ByteSource source, model.file().slice(segment.offset, segment.size));
    segments.push_back(
        {.source = std::move(source), .offset = segment.offset - model.header().segment_base_offset});
  }
  ETSTREAM_ASSIGN(EditableProgram editable, read_editable_program(model, std::move(segments)));
  editable.size = model.file().size();
  FileBudget budget(model.file());
  for (const auto& segment : editable.segments) ETSTREAM_TRY(budget.spend(segment.source.size()));
  for (const auto* const listed_inline : {&editable.inline_constants, &editable.inline_delegates}) {
    for (const auto& entry : *listed_inline) ETSTREAM_TRY(budget.spend(entry.data.size()));
  }
  return editable;
}

Result<void> set_values(const EditableProgram& editable, const std::vector<std::uint64_t>& offsets,
                        EditedValues& values) {
  ValueSetter setter(editable, values);
  setter.set_methods();
  setter.set_segments(offsets);
  setter.set_tensor_data();
  setter.set_named_data();
  setter.set_delegates();
  return editable.has_stack_traces ? Result<void>() : remove_stack_traces(editable.program, values);
}

namespace {

using Sizes = std::vector<std::optional<std::uint64_t>>;

/// Returns the size of each constant's data, by the tensors that refer to it.
Result<Sizes> constant_sizes(const EditableProgram& editable, std::size_t count) {
  Sizes sizes(count);
  for (const ProgramTensor& tensor : editable.tensors) {
    if (tensor.kind != TensorStorage::kConstant || tensor.index >= count) continue;
    ETSTREAM_ASSIGN(const pte::Tensor table, editable.program.tensor_at(tensor.position));
    ETSTREAM_ASSIGN(const TensorLayout layout, table.layout());
    const auto bytes = byte_size(layout.scalar_type, layout.sizes);
    if (!bytes) return table.corrupt("a constant tensor", bytes.error().message);
    sizes[tensor.index] = std::max(sizes[tensor.index].value_or(0), *bytes);
  }
  return sizes;
}

/// Cuts the segment into its pieces, without the padding behind a piece whose length is known. `sizes` is
/// empty if no length is known, and then pieces follow one another. Otherwise ExecuTorch accepts offsets in
/// any order, and an offset that no tensor refers to, such as the first, may point anywhere.
Result<void> split(EditableProgram& editable, EditableProgram::Subsegments& subsegments, const Sizes& sizes) {
  const ByteSource segment =
      subsegments.segment ? editable.segments[*subsegments.segment].source : ByteSource();
  const std::vector<std::uint64_t>& offsets = subsegments.offsets;
  std::vector<ByteSource> pieces;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::uint64_t end =
        std::min(i + 1 < offsets.size() ? offsets[i + 1] : segment.size(), segment.size());
    const std::optional<std::uint64_t> known = sizes.empty() ? std::nullopt : sizes[i];
    const bool fits = known ? range_fits(offsets[i], *known, segment.size()) : offsets[i] <= end;
    const std::uint64_t size = known.value_or(fits ? end - offsets[i] : 0);
    const bool may_be_unused = !sizes.empty() && !known;
    if (!fits && !may_be_unused) {
      return editable.program.view().corrupt(
          subsegments.position.value_or(0),
          text("piece {}, {} bytes, in its place in a segment of {} bytes", i, size, segment.size()),
          text("it at {}", offsets[i]));
    }
    ETSTREAM_ASSIGN(pieces.emplace_back(), segment.slice(std::min(offsets[i], segment.size()), size));
  }
  subsegments.pieces = std::move(pieces);
  return {};
}

constexpr std::string_view kDelegate = "delegate ";  // how the use of segments of delegates begins

/// Returns the segments, or the entries in the flatbuffer, that delegates refer to.
std::set<std::uint32_t> used_by(const std::vector<DelegateReference>& delegates, bool in_segment) {
  std::set<std::uint32_t> out;
  for (const DelegateReference& reference : delegates) {
    if (reference.in_segment == in_segment) out.insert(reference.index);
  }
  return out;
}

/// Returns the segments of `delegates` that nothing but delegates uses.
std::set<std::uint32_t> own_segments(const EditableProgram& editable,
                                     const std::vector<DelegateReference>& delegates) {
  std::set<std::uint32_t> out = used_by(delegates, true);
  std::erase_if(out, [&](std::uint32_t i) { return !editable.segments[i].label.starts_with(kDelegate); });
  return out;
}

void leave_out(EditableProgram& editable, const std::set<std::uint32_t>& segments) {
  std::erase_if(editable.order, [&](std::uint32_t i) { return segments.contains(i); });
}

/// Returns the segment of named data that has these bytes.
Result<std::optional<std::uint32_t>> segment_with(const EditableProgram& editable, const ByteSource& value) {
  for (const EditableProgram::NamedData& named : editable.named_data) {
    const ByteSource& source = editable.segments[named.segment].source;
    if (source.size() != value.size()) continue;
    ETSTREAM_ASSIGN(const bool same, same_bytes(source, value));
    if (same) return std::optional(named.segment);
  }
  return std::optional<std::uint32_t>();
}

}  // namespace

Result<void> split_constants(EditableProgram& editable) {
  if (editable.constants && editable.constants->pieces) return {};
  if (!editable.constants) editable.constants.emplace();
  EditableProgram::Subsegments& constants = *editable.constants;
  if (!constants.segment) {
    constants.segment = static_cast<std::uint32_t>(editable.segments.size());
    editable.segments.push_back({{}, "constants"});
    editable.order.insert(editable.order.begin(), *constants.segment);
  }
  if (editable.inline_constants.empty() || !constants.offsets.empty()) {
    ETSTREAM_ASSIGN(const Sizes sizes, constant_sizes(editable, constants.offsets.size()));
    return split(editable, constants, sizes);
  }
  constants.pieces.emplace();
  for (const auto& entry : editable.inline_constants) constants.pieces->push_back(entry.data);
  editable.inline_constants.clear();
  editable.has_same_inline_constants = false;
  return {};
}

Result<ByteSource> piece_of(const EditableProgram& editable, const ProgramTensor& tensor) {
  const std::vector<ByteSource>& pieces = *editable.constants->pieces;
  if (tensor.index < pieces.size()) return pieces[tensor.index];
  return editable.program.view().corrupt(tensor.position, text("a constant below {}", pieces.size()),
                                         std::to_string(tensor.index));
}

Result<TensorLayout> layout_of(const EditableProgram& editable, const ProgramTensor& tensor) {
  ETSTREAM_ASSIGN(const pte::Tensor table, editable.program.tensor_at(tensor.position));
  return table.layout();
}

Result<void> split_mutable_data(EditableProgram& editable) {
  for (EditableProgram::Subsegments& subsegments : editable.mutable_data) {
    ETSTREAM_TRY(split(editable, subsegments, {}));
  }
  return {};
}

void remove_pieces(EditableProgram& editable, EditableProgram::Subsegments& subsegments,
                   const std::vector<ProgramTensor>& gone, TensorStorage uses) {
  std::set<std::uint32_t> unused;
  for (const ProgramTensor& tensor : gone) {
    if (tensor.kind == uses) unused.insert(tensor.index);
  }
  for (const ProgramTensor& tensor : editable.tensors) {
    if (tensor.kind == uses) unused.erase(tensor.index);
  }
  std::vector<std::uint32_t> numbers;
  std::vector<ByteSource> kept;
  for (std::uint32_t i = 0; i < subsegments.pieces->size(); ++i) {
    numbers.push_back(static_cast<std::uint32_t>(kept.size()));
    if (!unused.contains(i)) kept.push_back((*subsegments.pieces)[i]);
  }
  for (std::size_t i = 0; i < editable.tensors.size(); ++i) {
    std::uint32_t& index = editable.tensors[i].index;
    if (editable.tensors[i].kind != uses || index >= numbers.size() || numbers[index] == index) continue;
    index = numbers[index];
    editable.changed_tensors.insert(i);
  }
  subsegments.pieces = std::move(kept);
}

Result<void> join(EditableProgram& editable, EditableProgram::Subsegments& subsegments,
                  std::uint32_t alignment) {
  std::vector<ByteSource> parts;
  std::uint64_t end = 0;
  subsegments.offsets.clear();
  for (const ByteSource& piece : *subsegments.pieces) {
    const std::uint64_t padding = padding_to(end, alignment);
    const auto begin = checked_add(end, padding);
    const auto next = begin ? checked_add(*begin, piece.size()) : std::nullopt;
    if (!next) return make_error(ErrorCode::kTooLarge, "the constants would be over 2^64 - 1 bytes");
    parts.push_back(ByteSource::zeros(padding));
    parts.push_back(piece);
    subsegments.offsets.push_back(*begin);
    end = *next;
  }
  EditableProgram::Segment& segment = editable.segments[*subsegments.segment];
  ETSTREAM_ASSIGN(segment.source, ByteSource::concatenation(std::move(parts)));
  segment.offset.reset();
  return {};
}

const ByteSource& data_of(const EditableProgram& editable, const DelegateReference& reference) {
  return reference.in_segment ? editable.segments[reference.index].source
                              : editable.inline_delegates[reference.index].data;
}

void move_delegates_inline(EditableProgram& editable) {
  if (used_by(editable.delegates, true).empty()) return;
  leave_out(editable, own_segments(editable, editable.delegates));
  std::vector<EditableProgram::InlineData> entries;
  std::map<std::pair<bool, std::uint32_t>, std::uint32_t> numbers;  // by where the data was
  for (DelegateReference& reference : editable.delegates) {
    const auto [number, added] = numbers.try_emplace({reference.in_segment, reference.index},
                                                     static_cast<std::uint32_t>(entries.size()));
    if (added && reference.in_segment) {
      entries.push_back({std::nullopt, editable.segments[reference.index].source});
    } else if (added) {
      entries.push_back(editable.inline_delegates[reference.index]);
    }
    reference.in_segment = false;
    reference.index = number->second;
  }
  editable.inline_delegates = std::move(entries);
  editable.has_same_inline_delegates = false;
}

Result<void> move_delegates_to_segments(EditableProgram& editable) {
  const auto label_of = [&](std::uint32_t i) -> std::string_view { return editable.segments[i].label; };
  auto insert_at = std::ranges::find(editable.order, kNamedDataLabel, label_of) - editable.order.begin();
  std::vector<EditableProgram::InlineData> entries;
  std::vector<ByteSource> data;
  for (const DelegateReference& reference : editable.delegates) {
    if (reference.in_segment) continue;
    const ByteSource& own = editable.inline_delegates[reference.index].data;
    if (own.size() > 0) data.push_back(own);
  }
  ETSTREAM_ASSIGN(const auto first, first_equal(data));
  std::vector<std::uint32_t> segments;  // of the data
  for (DelegateReference& reference : editable.delegates) {
    if (reference.in_segment) continue;
    const EditableProgram::InlineData& entry = editable.inline_delegates[reference.index];
    if (entry.data.size() == 0) {
      reference.index = static_cast<std::uint32_t>(entries.size());
      entries.push_back(entry);
      continue;
    }
    const std::uint32_t same = first[segments.size()];
    if (same == segments.size()) {
      segments.push_back(static_cast<std::uint32_t>(editable.segments.size()));
      editable.segments.push_back({entry.data, "delegate"});
      editable.order.insert(editable.order.begin() + insert_at++, segments.back());
    } else {
      segments.push_back(segments[same]);
    }
    reference.in_segment = true;
    reference.index = segments.back();
  }
  editable.inline_delegates = std::move(entries);
  editable.has_same_inline_delegates = false;
  return {};
}

void remove_delegate_data(EditableProgram& editable, const std::vector<DelegateReference>& gone) {
  const auto used_segments = used_by(editable.delegates, true);
  std::set<std::uint32_t> segments = own_segments(editable, gone);
  std::erase_if(segments, [&](std::uint32_t i) { return used_segments.contains(i); });
  leave_out(editable, segments);

  const auto used = used_by(editable.delegates, false);
  const auto used_before = used_by(gone, false);
  std::vector<EditableProgram::InlineData> entries;
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < editable.inline_delegates.size(); ++i) {
    numbers.push_back(static_cast<std::uint32_t>(entries.size()));
    if (used.contains(i) || !used_before.contains(i)) entries.push_back(editable.inline_delegates[i]);
  }
  if (entries.size() == editable.inline_delegates.size()) return;
  for (DelegateReference& reference : editable.delegates) {
    if (!reference.in_segment) reference.index = numbers[reference.index];
  }
  editable.inline_delegates = std::move(entries);
  editable.has_same_inline_delegates = false;
}

void remove_named_data(EditableProgram& editable, const std::set<std::string>& keys) {
  std::set<std::uint32_t> kept;
  std::set<std::uint32_t> gone;
  for (const EditableProgram::NamedData& named : editable.named_data) {
    (keys.contains(named.key) ? gone : kept).insert(named.segment);
  }
  if (gone.empty()) return;
  std::erase_if(editable.named_data, [&](const auto& named) { return keys.contains(named.key); });
  std::erase_if(editable.order, [&](std::uint32_t i) {
    return gone.contains(i) && !kept.contains(i) && editable.segments[i].label == kNamedDataLabel;
  });
  editable.has_same_named_data = false;
}

void add_named_data(EditableProgram& editable, const std::string& key, std::uint32_t segment) {
  editable.named_data.push_back({std::nullopt, key, segment});
  editable.has_same_named_data = false;
}

void move_metadata_to_the_end(EditableProgram& editable) {
  const auto is_other = [](const EditableProgram::NamedData& named) {
    return !named.key.starts_with(kMetadataPrefix);
  };
  const auto metadata =
      std::stable_partition(editable.named_data.begin(), editable.named_data.end(), is_other);
  std::set<std::uint32_t> of_others;
  for (auto named = editable.named_data.begin(); named != metadata; ++named) of_others.insert(named->segment);
  for (auto named = metadata; named != editable.named_data.end(); ++named) {
    const std::uint32_t segment = named->segment;
    if (of_others.contains(segment) || editable.segments[segment].label != kNamedDataLabel) continue;
    std::erase(editable.order, segment);
    editable.order.push_back(segment);
  }
  editable.has_same_named_data = false;
}

Result<void> add_metadata(EditableProgram& editable, const std::map<std::string, ByteSource>& metadata) {
  for (const auto& [name, value] : metadata) {
    if (name.empty()) return Error{ErrorCode::kInvalidArgument, "metadata: expected a key, found none"};
    const std::string key = std::string(kMetadataPrefix) + name;
    remove_named_data(editable, {key});
    ETSTREAM_ASSIGN(const auto segment, segment_with(editable, value));
    add_named_data(editable, key, segment ? *segment : editable.add_segment(value, kNamedDataLabel));
  }
  return {};
}

}  // namespace etstream
