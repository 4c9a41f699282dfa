// SPDX-License-Identifier: BSD-3-Clause
//
// Checks of a program beyond a well-formed flatbuffer: every index in range, every segment in its place.
// ExecuTorch 1.5.1 checks some of this when it loads (runtime/executor/program_validation.cpp, method.cpp).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "core/base/checked.h"
#include "core/base/findings.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/flatbuffer_view.h"
#include "formats/pte/program_model.h"
#include "formats/segments/data_segments.h"

namespace etstream {
namespace {

constexpr std::uint64_t kShapeDynamisms = 3;  // that ExecuTorch knows (tensor_shape_dynamism.h)
constexpr std::uint64_t kWeakAlignment = 16;  // below it kernels may not read tensors in place

/// Returns whether some delegate's data in the flatbuffer lies at a multiple of `alignment`.
Result<bool> has_aligned_inline_data(const pte::Program& program, std::uint64_t alignment) {
  bool out = false;
  ETSTREAM_TRY(for_each(program.inline_delegates(), [&](const pte::InlineDelegate& entry) -> Result<void> {
    ETSTREAM_ASSIGN(const auto data, entry.vector(program.fields().backend_delegate_inline_data.data));
    out |= data && data->count > 0 && data->elements() % alignment == 0;
    return {};
  }));
  return out;
}

/// Returns the segment of constants, if all tensors in it lie at multiples of `alignment`, and not only the
/// first.
Result<std::optional<std::uint32_t>> aligned_constants(const pte::Program& program, std::uint64_t alignment) {
  ETSTREAM_ASSIGN(const auto constants, program.constants());
  if (!constants) return std::optional<std::uint32_t>();
  ETSTREAM_ASSIGN(const auto offsets, constants->all_offsets());
  std::uint64_t bits = 0;
  for (const std::uint64_t offset : offsets) bits |= offset;
  if (bits == 0 || bits % alignment != 0) return std::optional<std::uint32_t>();
  ETSTREAM_ASSIGN(const std::uint32_t segment, constants->segment());
  return std::optional(segment);
}

/// Adds a warning for each alignment that segments do not have. The extended header's padding shows the
/// alignment that was asked for, and the places of tensors show whether it was for them or for delegates.
/// Gives no warning if that is uncertain.
Result<void> warn_of_unmet_alignment(const pte::Program& program, Findings& findings) {
  if (program.header().length != ExtendedHeader::kSize) return {};
  ETSTREAM_ASSIGN(const std::uint64_t alignment, program.header_alignment());
  if (alignment <= ExtendedHeader::kSize) return {};
  ETSTREAM_ASSIGN(const bool is_for_inline_data, has_aligned_inline_data(program, alignment));
  if (is_for_inline_data) return {};
  ETSTREAM_ASSIGN(const auto segments, program.segments());
  const auto warn = [&](const SegmentInfo& segment, std::string_view what, AdviceTerm option) {
    Error lost = program.view().corrupt(
        segment.offset, text("{} at a multiple of {}, as the program was exported for", what, alignment),
        "it where segments lie");
    add_warning(findings, with_advice(std::move(lost), {AdviceTerm::kStrictAlignment, " ", option,
                                                        text(" {} moves it", alignment)}));
  };
  ETSTREAM_ASSIGN(const auto constants, aligned_constants(program, alignment));
  if (constants) {
    if (*constants < segments.size() && segments[*constants].offset % alignment != 0) {
      warn(segments[*constants], "the segment of constants", AdviceTerm::kConstantTensorAlignment);
    }
    return {};
  }
  ETSTREAM_ASSIGN(const auto delegates, read_delegate_references(program));
  for (const DelegateReference& reference : delegates) {
    if (!reference.in_segment || reference.index >= segments.size()) continue;
    if (segments[reference.index].offset % alignment == 0) continue;
    warn(segments[reference.index], "the data of a delegate", AdviceTerm::kDelegateAlignment);
    return {};
  }
  return {};
}

class ProgramVerifier {
 public:
  ProgramVerifier(const pte::Program& program, Findings& findings)
      : program_(program), known_(program.fields()), findings_(findings) {}

  Result<void> run() {
    ETSTREAM_ASSIGN(auto flaws, find_flaws_of_layout(program_.view(), {program_.header().range()}));
    add_warnings(findings_, std::move(flaws));
    ETSTREAM_ASSIGN(segments_, program_.segments());
    ETSTREAM_TRY(verify_segments());
    ETSTREAM_TRY(verify_data());
    ETSTREAM_ASSIGN(const auto methods, program_.methods());
    if (methods.size() == 0) error(program_.root().position(), "at least one method", "none");
    ETSTREAM_TRY(for_each(methods, [&](const pte::Method& method) { return verify_method(method); }));
    ETSTREAM_ASSIGN(const auto names, program_.method_names());
    if (const auto repeated = first_repeated(names)) {
      warning(program_.root().position(), "each method once, as ExecuTorch takes the first of a name",
              quote(*repeated));
    }
    return warn_of_unmet_alignment(program_, findings_);
  }

 private:
  void error(std::uint64_t position, std::string_view expected, std::string_view found) {
    add_error(findings_, program_.view().corrupt(position, expected, found));
  }
  void warning(std::uint64_t position, std::string_view expected, std::string_view found,
               Advice advice = {}) {
    add_warning(findings_,
                with_advice(program_.view().corrupt(position, expected, found), std::move(advice)));
  }
  Result<void> report(Result<void> checked) { return note_corrupt(std::move(checked), findings_); }

  Result<void> verify_segments() {
    const ExtendedHeader& header = program_.header();
    const auto is_used = [](const SegmentInfo& segment) { return segment.size != 0; };
    if (header.length == 0 && std::any_of(segments_.begin(), segments_.end(), is_used)) {
      error(ExtendedHeader::kPosition, "an extended header, as there are segments", "none");
      return {};
    }
    const SegmentRoom room{"the program", header.program_size, header.segment_base_offset,
                           header.segment_data_size, ExtendedHeader::kPosition + 24};
    return check_segments(program_.view(), program_.file(), segments_, room, findings_);
  }

  /// Checks constants, mutable data and named data.
  Result<void> verify_data() {
    ETSTREAM_ASSIGN(const auto inline_delegates, program_.inline_delegates());
    inline_delegates_ = inline_delegates.size();
    ETSTREAM_ASSIGN(const auto constants, program_.constants());
    if (constants) ETSTREAM_TRY(verify_subsegments(*constants));
    ETSTREAM_TRY(verify_inline_constants(constants));
    ETSTREAM_TRY(for_each(program_.mutable_data(),
                          [&](const pte::Subsegments& data) { return verify_subsegments(data); }));
    std::set<std::string> keys;
    return for_each(program_.named_data(), [&](const pte::NamedData& named) -> Result<void> {
      ETSTREAM_ASSIGN(const auto key, named.key());
      ETSTREAM_ASSIGN(const std::uint32_t index, named.segment());
      ETSTREAM_TRY(report(named.check_index(known_.named_data.segment_index, index, segments_.size())));
      if (!key) error(named.position(), known_.named_data.key.full_name(), "none");
      // ExecuTorch takes the first key, but refuses both when it merges them with the keys of tensor data
      // files.
      if (key && !keys.insert(*key).second) warning(named.position(), "each key once", quote(*key));
      return {};
    });
  }

  /// Runtimes take constants from a segment if a segment has a place for one, even if only for a placeholder.
  Result<void> verify_inline_constants(const std::optional<pte::Subsegments>& segment) {
    ETSTREAM_ASSIGN(const auto constants, program_.inline_constants());
    const std::uint64_t root = program_.root().position();
    std::uint32_t pieces = 0;
    if (segment) {
      ETSTREAM_ASSIGN(const auto offsets, segment->offsets());
      pieces = offsets.size();
    }
    if (pieces > 1 && constants.size() > 0) {
      error(root, "constants in a segment or in the flatbuffer, or ExecuTorch does not load them",
            "some in both");
    } else if (pieces == 0) {
      warning(root, "constants in a segment, if only a placeholder",
              text("{} in the flatbuffer, where ExecuTorch 1.3 and later look for none and refuse the "
                   "program",
                   counted(constants.size(), "constant")),
              {AdviceTerm::kExtractConstants, " moves them"});
    }
    return {};
  }

  /// Checks the pieces of a segment.
  Result<void> verify_subsegments(const pte::Subsegments& table) {
    ETSTREAM_ASSIGN(const auto offsets, table.offsets());
    ETSTREAM_ASSIGN(const std::uint32_t index, table.segment());
    if (offsets.size() <= 1) return {};  // the placeholder alone: the segment is not used
    ETSTREAM_TRY(report(table.check_index(known_.subsegment_offsets.segment_index, index, segments_.size())));
    if (index >= segments_.size()) return {};
    const std::uint64_t size = segments_[index].size;
    std::uint64_t weak = 0;
    for (std::uint64_t i = 1; i < offsets.size(); ++i) {
      ETSTREAM_ASSIGN(const std::uint64_t offset, offsets.at(i));
      if (offset > size) {
        error(table.position(), text("offsets inside the {} bytes of segment {}", size, index),
              std::to_string(offset));
      }
      weak += offset % kWeakAlignment != 0 ? 1 : 0;
    }
    if (weak > 0) {
      warning(table.position(), text("tensors at multiples of {} in segment {}", kWeakAlignment, index),
              text("{} at other places", weak));
    }
    return {};
  }

  Result<void> verify_method(const pte::Method& method) {
    const auto& known = known_.execution_plan;
    for (const BoundField* field :
         {&known.name, &known.values, &known.inputs, &known.outputs, &known.chains}) {
      ETSTREAM_TRY(check_there(method, *field));
    }
    ETSTREAM_ASSIGN(const auto values, method.values());
    ETSTREAM_ASSIGN(const auto operators, method.operators());
    ETSTREAM_ASSIGN(const auto delegates, method.delegates());
    ETSTREAM_ASSIGN(const auto chains, method.chains());
    ETSTREAM_ASSIGN(memory_sizes_, method.memory_sizes());
    ETSTREAM_TRY(check_indices(method, known.inputs, values.size()));
    ETSTREAM_TRY(check_indices(method, known.outputs, values.size()));
    ETSTREAM_TRY(verify_values(values));
    ETSTREAM_TRY(for_each(delegates, [&](const pte::Delegate& each) { return verify_delegate(each); }));
    return for_each(chains, [&](const pte::Chain& chain) {
      return verify_chain(chain, {values.size(), operators.size(), delegates.size()});
    });
  }

  Result<void> check_there(const pte::View& table, const BoundField& field) {
    ETSTREAM_ASSIGN(const auto vector, table.vector(field));
    if (!vector) error(table.position(), field.full_name(), "none");
    return {};
  }

  /// Checks a vector of indices, each below `limit`, or -1 if one `may_be_none`.
  Result<void> check_indices(const pte::View& table, const BoundField& field, std::uint64_t limit,
                             bool may_be_none = false) {
    ETSTREAM_ASSIGN(const auto indices, table.indices(field));
    for (const std::int64_t index : indices) {
      if (!may_be_none || index != -1) ETSTREAM_TRY(report(table.check_index(field, index, limit)));
    }
    return {};
  }

  Result<void> verify_values(const pte::List<pte::Value>& values) {
    std::optional<std::uint64_t> untyped;  // where the first value of no type is
    ETSTREAM_TRY(for_each(values, [&](const pte::Value& value) -> Result<void> {
      ETSTREAM_ASSIGN(const auto held, value.held());
      if (held) return verify_held(*held, values.size());
      if (!untyped) untyped = value.position();
      return {};
    }));
    if (untyped) warning(*untyped, "a value of some type", "NONE, with which ExecuTorch loads no method");
    return {};
  }

  /// Checks a value in a method with this number of `values`.
  Result<void> verify_held(const pte::Held& held, std::uint64_t values) {
    const pte::ValueKind kind = held.kind();
    if (kind == pte::ValueKind::kTensor) return verify_tensor(held.tensor());
    if (kind == pte::ValueKind::kString) return check_there(held, known_.string.string_val);
    const BoundField* const items = held.items();
    if (!items) return {};
    ETSTREAM_TRY(check_there(held, *items));
    if (kind == pte::ValueKind::kDoubleList || kind == pte::ValueKind::kBoolList) return {};
    return check_indices(held, *items, values, kind == pte::ValueKind::kOptionalTensorList);
  }

  Result<void> verify_tensor(const pte::Tensor& tensor) {
    const BoundField& dynamism = known_.tensor.shape_dynamism;
    ETSTREAM_ASSIGN(const auto kind, tensor.scalar<std::int8_t>(dynamism));
    ETSTREAM_TRY(report(tensor.check_index(dynamism, kind, kShapeDynamisms)));
    ETSTREAM_ASSIGN(const auto bytes, check_shape(tensor, known_.tensor, findings_));
    return bytes ? verify_tensor_data(tensor, *bytes) : Result<void>();
  }

  /// Checks that a tensor's `bytes` have room at the place that it gives: among the constants, in the mutable
  /// data, in planned memory, or in another file.
  Result<void> verify_tensor_data(const pte::Tensor& tensor, std::uint64_t bytes) {
    ETSTREAM_ASSIGN(const auto allocation, tensor.allocation());
    if (allocation) ETSTREAM_TRY(report(allocation->check(bytes, memory_sizes_)));
    ETSTREAM_ASSIGN(const pte::Storage storage, tensor.storage());
    if (storage.kind == TensorStorage::kExternal && storage.name.empty()) {
      error(storage.extra_position.value_or(0), "the name of an external tensor", "none");
    }
    if (storage.kind != TensorStorage::kConstant && storage.kind != TensorStorage::kMutable) return {};
    const auto data = program_.tensor_data(tensor, storage, bytes);
    return data ? Result<void>() : report(data.error());
  }

  Result<void> verify_delegate(const pte::Delegate& delegate) {
    ETSTREAM_ASSIGN(const bool has_id, delegate.has_id());
    ETSTREAM_ASSIGN(const auto place, delegate.place());
    ETSTREAM_ASSIGN(const auto table, delegate.child(known_.backend_delegate.processed));
    if (!has_id || !place || !table) {
      error(delegate.position(), "a delegate's id and processed data", "none");
      return {};
    }
    const pte::View reference(known_, *table);
    ETSTREAM_TRY(
        report(reference.check_index(known_.backend_delegate_data_reference.location, place->location, 2)));
    return report(reference.check_index(known_.backend_delegate_data_reference.index, place->index,
                                        place->location == 0 ? inline_delegates_ : segments_.size()));
  }

  Result<void> verify_chain(const pte::Chain& chain, pte::CallLimits limits) {
    ETSTREAM_TRY(check_there(chain, known_.chain.instructions));
    ETSTREAM_ASSIGN(const auto instructions, chain.instructions());
    limits.instructions = instructions.size();
    return for_each(instructions, [&](const pte::Instruction& instruction) -> Result<void> {
      ETSTREAM_ASSIGN(const auto call, instruction.call());
      if (!call) error(instruction.position(), "an instruction", "none");
      if (!call || !call->kind()) return {};
      ETSTREAM_TRY(call->read(limits, [&](const BoundField& field, std::int32_t index, std::uint64_t limit) {
        return report(call->check_index(field, index, limit));
      }));
      return {};
    });
  }

  const pte::Program& program_;
  const program::Fields& known_;
  Findings& findings_;
  std::span<const SegmentInfo> segments_;
  std::uint64_t inline_delegates_ = 0;
  NumberList<std::int64_t> memory_sizes_;  // of the method that is being verified
};

constexpr std::uint32_t kNewestVersion = 0;  // ExecuTorch 1.5.1 loads no later one

/// Returns the segment of constants, if it is empty though some constants are said to be in it.
Result<std::optional<pte::Subsegments>> find_empty_constants(const pte::Program& program) {
  ETSTREAM_ASSIGN(auto constants, program.constants());
  if (!constants) return constants;
  ETSTREAM_ASSIGN(const auto offsets, constants->offsets());
  ETSTREAM_ASSIGN(const std::uint32_t index, constants->segment());
  ETSTREAM_ASSIGN(const auto segments, program.segments());
  if (offsets.size() <= 1 || index >= segments.size() || segments[index].size != 0) constants.reset();
  return constants;
}

/// Finds constants without bytes. ExecuTorch's loaders of files give an empty segment no place in memory. The
/// runtime then takes the constants for constants in the flatbuffer, and refuses them.
Result<void> verify_constants(const pte::Program& program, LoadedFrom from, Findings& findings) {
  ETSTREAM_ASSIGN(const auto empty, find_empty_constants(program));
  if (!empty) return {};
  ETSTREAM_ASSIGN(const auto all, read_tensors(program));
  const auto tensors = std::ranges::count(all, TensorStorage::kConstant, &ProgramTensor::kind);
  if (tensors == 0) return {};
  const Error found = with_advice(
      program.view().corrupt(
          empty->position(), "a constant that has bytes, or ExecuTorch loads no method from a file (0x23)",
          text("{}, all of them empty", counted(static_cast<std::uint64_t>(tensors), "constant"))),
      {AdviceTerm::kMoveConstantsOut, " moves them to a file of their own, with which the program runs"});
  from == LoadedFrom::kFile ? add_error(findings, found) : add_warning(findings, found);
  return {};
}

Result<void> verify_version(const pte::Program& program, Findings& findings) {
  ETSTREAM_ASSIGN(const std::uint32_t version, program.version());
  if (version > kNewestVersion) {
    add_error(findings,
              program.view().corrupt(
                  program.root().position(),
                  text("schema version {}, the latest that ExecuTorch 1.5 loads (0x23)", kNewestVersion),
                  std::to_string(version)));
  }
  return {};
}

/// Warns of a program of more tables than FlatBuffers' verifier takes by default.
Result<void> verify_tables(const pte::Program& program, Findings& findings) {
  constexpr std::uint64_t kMostTables = 1'000'000;
  struct CountTables : FlatbufferVisitor {
    Result<void> begin_table(const TableView&, const TableType&) { return ++tables, Result<void>(); }
    std::uint64_t tables = 0;
  } count;
  if (program.view().file().size() <= kMostTables) return {};  // fewer bytes than so many tables take
  ETSTREAM_TRY(walk_flatbuffer(program.view(), count));
  if (count.tables > kMostTables) {
    add_warning(findings,
                program.view().corrupt(
                    program.root().position(),
                    text("at most {} tables, or executorch.runtime in Python refuses the program (0x23) "
                         "unless its verification is Minimal",
                         kMostTables),
                    text("{}", count.tables)));
  }
  return {};
}

}  // namespace

Result<void> ProgramFile::verify(Findings& findings) const {
  return without_exceptions([&] { return note_corrupt(ProgramVerifier(*model_, findings).run(), findings); });
}

Result<bool> verify_loadable(const ProgramFile& program, LoadedFrom from, Findings& findings) {
  const std::size_t errors_before = findings.errors.size();
  ETSTREAM_TRY(program.verify(findings));
  if (findings.errors.size() != errors_before) return false;
  ETSTREAM_TRY(verify_version(program.model(), findings));
  ETSTREAM_TRY(verify_tables(program.model(), findings));
  ETSTREAM_TRY(note_corrupt(verify_constants(program.model(), from, findings), findings));
  return true;
}

}  // namespace etstream
