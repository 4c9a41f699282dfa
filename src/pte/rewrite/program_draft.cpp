// SPDX-License-Identifier: BSD-3-Clause
#include "pte/rewrite/program_draft.h"

#include "base/text.h"
#include "base/try.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/struct_reader.h"
#include "pte/segment_uses.h"

namespace etstream {
namespace {

using Subsegments = ProgramDraft::Subsegments;

/// Those of constants, or of delegates.
template <class T>
Result<std::vector<ProgramDraft::InlineData>> read_inline_data(const pte::List<T>& entries) {
  std::vector<ProgramDraft::InlineData> out;
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    ETSTREAM_ASSIGN(const T entry, entries.at(i));
    ETSTREAM_ASSIGN(ByteSource data, entry.data());
    out.push_back({entry.position(), std::move(data)});
  }
  return out;
}

/// The segment that `table` names, of `count`.
Result<std::uint32_t> read_segment(const auto& table, std::size_t count) {
  ETSTREAM_ASSIGN(const std::uint32_t index, table.segment());
  if (index < count) return index;
  return table.corrupt(text("a segment below ", count), text(index));
}

Result<Subsegments> read_subsegments(const pte::Subsegments& table, std::size_t count) {
  Subsegments out;
  out.position = table.position();
  ETSTREAM_ASSIGN(out.offsets, table.all_offsets());
  ETSTREAM_ASSIGN(const std::uint32_t index, table.segment());
  // With no constants, segment 0 need not be there, or is another's.
  if (out.offsets.empty() || (index == 0 && count == 0)) return out;
  ETSTREAM_ASSIGN(out.segment, read_segment(table, count));
  return out;
}

Result<void> read_tensor_data(ProgramDraft& draft) {
  ETSTREAM_ASSIGN(const auto inline_constants, draft.program.inline_constants());
  ETSTREAM_ASSIGN(draft.inline_constants, read_inline_data(inline_constants));
  ETSTREAM_ASSIGN(const auto constants, draft.program.constants());
  if (constants) {
    ETSTREAM_ASSIGN(draft.constants, read_subsegments(*constants, draft.segments.size()));
  }
  ETSTREAM_ASSIGN(const auto mutable_data, draft.program.mutable_data());
  for (std::uint32_t i = 0; i < mutable_data.size(); ++i) {
    ETSTREAM_ASSIGN(const pte::Subsegments table, mutable_data.at(i));
    ETSTREAM_ASSIGN(Subsegments subsegments, read_subsegments(table, draft.segments.size()));
    draft.mutable_data.push_back(std::move(subsegments));
  }
  ETSTREAM_ASSIGN(draft.tensors, read_tensors(draft.program));
  return {};
}

Result<void> read_named_data(ProgramDraft& draft) {
  ETSTREAM_ASSIGN(const auto named_data, draft.program.named_data());
  for (std::uint32_t i = 0; i < named_data.size(); ++i) {
    ETSTREAM_ASSIGN(const pte::NamedData table, named_data.at(i));
    ETSTREAM_ASSIGN(auto key, table.key());
    ETSTREAM_ASSIGN(const std::uint32_t segment, read_segment(table, draft.segments.size()));
    draft.named_data.push_back({table.position(), std::move(key).value_or(""), segment});
  }
  return {};
}

Result<void> read_delegates(ProgramDraft& draft) {
  ETSTREAM_ASSIGN(const auto inline_delegates, draft.program.inline_delegates());
  ETSTREAM_ASSIGN(draft.inline_delegates, read_inline_data(inline_delegates));
  ETSTREAM_ASSIGN(draft.delegates, read_delegate_references(draft.program));
  for (const DelegateReference& reference : draft.delegates) {
    const std::size_t count = reference.in_segment ? draft.segments.size() : draft.inline_delegates.size();
    if (reference.index < count) continue;
    return draft.program.view().corrupt(reference.position,
                                        text("an index below ", count, " of a delegate's data ",
                                             reference.in_segment ? "in segments" : "in the flatbuffer"),
                                        text(reference.index));
  }
  return {};
}

/// Puts a draft's content in place of what the program has.
class ValueSetter {
 public:
  ValueSetter(const ProgramDraft& draft, EditedValues& values)
      : draft_(draft), known_(draft.program.fields()), values_(values), numbers_(draft.segments.size()) {
    for (std::uint32_t i = 0; i < draft.order.size(); ++i) numbers_[draft.order[i]] = i;
  }

  void set_methods() {
    if (draft_.has_all_methods) return;
    std::vector<ValueNode> plans;
    for (const std::uint64_t position : draft_.methods) plans.push_back(EditedValues::node_at(position));
    set_list(known_.root.execution_plan, std::move(plans));
  }

  void set_segments(const std::vector<PlacedSegment>& placed) {
    std::vector<ValueNode> tables;
    for (std::size_t i = 0; i < placed.size(); ++i) {
      const ValueNode table = tables.emplace_back(node(draft_.segments[draft_.order[i]].position));
      values_.set(table, known_.segment.offset, scalar(placed[i].offset));
      values_.set(table, known_.segment.size, scalar(placed[i].size));
    }
    set_list(known_.root.segments, std::move(tables));
  }

  void set_tensor_data() {
    if (draft_.constants) {
      values_.set(values_.root(), known_.root.constant_segment,
                  TableValue{set_subsegments(*draft_.constants)});
      if (!draft_.has_same_inline_constants) set_list(known_.root.constant_buffer, {});
    }
    for (const Subsegments& subsegments : draft_.mutable_data) set_subsegments(subsegments);
    if (!draft_.has_same_mutable_data) {
      values_.set(values_.root(), known_.root.mutable_data_segments, AbsentValue{});
    }
    for (const std::size_t i : draft_.changed_tensors) set_tensor(draft_.tensors[i]);
  }

  void set_named_data() {
    std::vector<ValueNode> tables;
    for (const ProgramDraft::NamedData& named : draft_.named_data) {
      const ValueNode table = tables.emplace_back(node(named.position));
      values_.set(table, known_.named_data.segment_index, scalar(numbers_[named.segment]));
      if (!named.position) values_.set(table, known_.named_data.key, values_.string(named.key));
    }
    if (!draft_.has_same_named_data) set_list(known_.root.named_data, std::move(tables));
  }

  void set_delegates() {
    for (const DelegateReference& reference : draft_.delegates) {
      const ValueNode table = EditedValues::node_at(reference.position);
      const std::uint32_t index = reference.in_segment ? numbers_[reference.index] : reference.index;
      values_.set(table, known_.delegate_reference.location,
                  scalar(pte::delegate_location(reference.in_segment)));
      values_.set(table, known_.delegate_reference.index, scalar(index));
    }
    if (draft_.has_same_inline_delegates) return;
    std::vector<ValueNode> tables;
    for (const ProgramDraft::InlineData& entry : draft_.inline_delegates) {
      const ValueNode table = tables.emplace_back(node(entry.position));
      values_.set(table, known_.inline_delegate.data, entry.data);
    }
    set_list(known_.root.backend_delegate_data, std::move(tables));
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
      values_.set(table, known_.subsegments.segment_index, scalar(numbers_[*subsegments.segment]));
    }
    if (subsegments.pieces) {
      values_.set(table, known_.subsegments.offsets, values_.scalars(subsegments.offsets));
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
    values_.set(extra, known_.extra_tensor.fully_qualified_name,
                tensor.name.empty() ? FieldValue(AbsentValue{}) : values_.string(tensor.name));
    values_.set(extra, known_.extra_tensor.location, scalar(pte::tensor_location(tensor.is_external)));
  }

  const ProgramDraft& draft_;
  const pte::ProgramFields& known_;
  EditedValues& values_;
  std::vector<std::uint32_t> numbers_;  // of segments in the file
};

/// No method's instructions say where they come from.
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

Result<ProgramDraft> read_draft(const pte::Program& program, const std::vector<DraftSource>& sources) {
  ETSTREAM_ASSIGN(const auto unknown, find_unknown_field(program.view()));
  if (unknown) {
    return make_error(ErrorCode::kUnsupported, *unknown,
                      "; a program is written again only by a schema that has all of its fields");
  }
  ProgramDraft draft(program);
  ETSTREAM_ASSIGN(const auto methods, program.methods());
  for (std::uint32_t i = 0; i < methods.size(); ++i) {
    ETSTREAM_ASSIGN(const pte::Method method, methods.at(i));
    draft.methods.push_back(method.position());
  }
  std::vector<SegmentInfo> uses(sources.size());
  ETSTREAM_TRY(note_uses(program, uses));
  ETSTREAM_ASSIGN(const auto listed, program.segment_tables());
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    ETSTREAM_ASSIGN(const pte::View segment, listed.at(i));
    const std::string& use = uses[i].use;
    draft.segments.push_back({sources[i].source, use.empty() ? "segment" : use, sources[i].alignment,
                              segment.position(), sources[i].offset});
    draft.order.push_back(i);
  }
  ETSTREAM_TRY(read_tensor_data(draft));
  ETSTREAM_TRY(read_named_data(draft));
  ETSTREAM_TRY(read_delegates(draft));
  return draft;
}

Result<ProgramDraft> read_draft(const ProgramFile& program) {
  ETSTREAM_ASSIGN(const auto segments, program.model().segments());
  std::vector<DraftSource> sources;
  for (const SegmentInfo& segment : segments) {
    ETSTREAM_ASSIGN(ByteSource source, program.file().slice(segment.offset, segment.size));
    sources.push_back({std::move(source), 1, segment.offset - program.segment_base_offset()});
  }
  return read_draft(program.model(), sources);
}

Result<void> set_values(const ProgramDraft& draft, const std::vector<PlacedSegment>& placed,
                        EditedValues& values) {
  ValueSetter setter(draft, values);
  setter.set_methods();
  setter.set_segments(placed);
  setter.set_tensor_data();
  setter.set_named_data();
  setter.set_delegates();
  return draft.has_stack_traces ? Result<void>() : remove_stack_traces(draft.program, values);
}

}  // namespace etstream
