// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/rewrite/editable_program.h"

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/struct_reader.h"

namespace etstream {
namespace {

using Subsegments = EditableProgram::Subsegments;

/// Reads the data that constants, or delegates, have in the flatbuffer.
template <class T>
Result<std::vector<EditableProgram::InlineData>> read_inline_data(const pte::List<T>& entries) {
  std::vector<EditableProgram::InlineData> out;
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    ETSTREAM_ASSIGN(const T entry, entries.at(i));
    ETSTREAM_ASSIGN(ByteSource data, entry.data());
    out.push_back({entry.position(), std::move(data)});
  }
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
  ETSTREAM_ASSIGN(const auto inline_constants, editable.program.inline_constants());
  ETSTREAM_ASSIGN(editable.inline_constants, read_inline_data(inline_constants));
  ETSTREAM_ASSIGN(const auto constants, editable.program.constants());
  if (constants) {
    ETSTREAM_ASSIGN(editable.constants, read_subsegments(*constants, editable.segments.size()));
  }
  ETSTREAM_ASSIGN(const auto mutable_data, editable.program.mutable_data());
  for (std::uint32_t i = 0; i < mutable_data.size(); ++i) {
    ETSTREAM_ASSIGN(const pte::Subsegments table, mutable_data.at(i));
    ETSTREAM_ASSIGN(Subsegments subsegments, read_subsegments(table, editable.segments.size()));
    editable.mutable_data.push_back(std::move(subsegments));
  }
  ETSTREAM_ASSIGN(editable.tensors, read_tensors(editable.program));
  return {};
}

Result<void> read_named_data(EditableProgram& editable) {
  ETSTREAM_ASSIGN(const auto named_data, editable.program.named_data());
  for (std::uint32_t i = 0; i < named_data.size(); ++i) {
    ETSTREAM_ASSIGN(const pte::NamedData table, named_data.at(i));
    ETSTREAM_ASSIGN(auto key, table.key());
    ETSTREAM_ASSIGN(const std::uint32_t segment, read_segment(table, editable.segments.size()));
    editable.named_data.push_back({table.position(), std::move(key).value_or(""), segment});
  }
  return {};
}

Result<void> read_delegates(EditableProgram& editable) {
  ETSTREAM_ASSIGN(const auto inline_delegates, editable.program.inline_delegates());
  ETSTREAM_ASSIGN(editable.inline_delegates, read_inline_data(inline_delegates));
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
    values_.set(table, known_.tensor.data_buffer_idx, scalar(tensor.buffer));
    if (tensor.name.empty() && !tensor.has_other_info) {
      values_.set(table, known_.tensor.extra_tensor_info, AbsentValue{});
      return;
    }
    const ValueNode extra = node(tensor.extra_position);
    values_.set(table, known_.tensor.extra_tensor_info, TableValue{extra});
    values_.set(extra, known_.extra_tensor_info.fully_qualified_name,
                tensor.name.empty() ? FieldValue(AbsentValue{}) : values_.string(tensor.name));
    values_.set(extra, known_.extra_tensor_info.location, scalar(pte::tensor_location(tensor.is_external)));
  }

  const EditableProgram& editable_;
  const program::Fields& known_;
  EditedValues& values_;
  std::vector<std::uint32_t> numbers_;  // of segments in the file
};

/// Removes the source locations of all methods' instructions.
Result<void> remove_stack_traces(const pte::Program& program, EditedValues& values) {
  ETSTREAM_ASSIGN(const auto methods, program.methods());
  for (std::uint32_t i = 0; i < methods.size(); ++i) {
    ETSTREAM_ASSIGN(const pte::Method method, methods.at(i));
    ETSTREAM_ASSIGN(const auto chains, method.chains());
    for (std::uint32_t j = 0; j < chains.size(); ++j) {
      ETSTREAM_ASSIGN(const pte::Chain chain, chains.at(j));
      values.set(EditedValues::node_at(chain.position()), program.fields().chain.stacktrace, AbsentValue{});
    }
  }
  return {};
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
  ETSTREAM_ASSIGN(const auto methods, program.methods());
  for (std::uint32_t i = 0; i < methods.size(); ++i) {
    ETSTREAM_ASSIGN(const pte::Method method, methods.at(i));
    editable.methods.push_back(method.position());
  }
  editable.segments = std::move(segments);
  std::vector<SegmentInfo> uses(editable.segments.size());
  ETSTREAM_TRY(note_uses(program, uses));
  ETSTREAM_ASSIGN(const auto listed, program.segment_tables());
  for (std::uint32_t i = 0; i < uses.size(); ++i) {
    ETSTREAM_ASSIGN(const pte::View table, listed.at(i));
    editable.segments[i].label = uses[i].use.empty() ? "segment" : uses[i].use;
    editable.segments[i].position = table.position();
    editable.order.push_back(i);
  }
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

}  // namespace etstream
