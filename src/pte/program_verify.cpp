// SPDX-License-Identifier: BSD-3-Clause
//
// What a program must be beyond a well-formed flatbuffer: every index in range, every segment in its place.
// ExecuTorch 1.5.1 checks some of this when it loads (runtime/executor/program_validation.cpp, method.cpp).
#include <algorithm>
#include <optional>
#include <set>

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"
#include "bpte/test_case_check.h"
#include "container/data_segments.h"
#include "container/tensor_shape.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/table_reader.h"
#include "pte/lost_alignment.h"
#include "pte/program_parts.h"
#include "pte/program_payloads.h"

namespace etstream {
namespace {

constexpr std::uint32_t kProgramVersion = 0;  // that ExecuTorch 1.5.1 writes
constexpr std::uint64_t kWeakAlignment = 16;  // below it kernels may not read tensors in place

class ProgramVerifier {
 public:
  ProgramVerifier(const ProgramFile& program, const ProgramFile::Parts& parts, Findings& findings)
      : program_(program), parts_(parts), findings_(findings) {}

  Result<void> run() {
    ETSTREAM_ASSIGN(auto flaws, find_flaws_of_layout(parts_.view, {parts_.header.range()}));
    add_warnings(findings_, std::move(flaws));
    ETSTREAM_ASSIGN(const TableReader root, TableReader::root(parts_.view));
    ETSTREAM_ASSIGN(const auto version, root.scalar<std::uint32_t>("version"));
    if (version != kProgramVersion) warning(0, text("schema version ", kProgramVersion), text(version));
    ETSTREAM_ASSIGN(segments_, program_.segments());
    ETSTREAM_ASSIGN(payloads_, ProgramPayloads::read(program_));
    ETSTREAM_TRY(verify_segments());
    ETSTREAM_TRY(verify_data(root));
    ETSTREAM_ASSIGN(const TableList plans, root.tables("execution_plan"));
    if (plans.size() == 0) error(root.position(), "at least one method", "none");
    for (std::uint32_t i = 0; i < plans.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader plan, plans.at(i));
      ETSTREAM_TRY(verify_plan(plan));
    }
    return warn_of_lost_alignment(program_, segments_, findings_);
  }

 private:
  void error(std::uint64_t position, std::string_view expected, std::string_view found) {
    add_error(findings_, parts_.view.corrupt(position, expected, found).message);
  }
  void warning(std::uint64_t position, std::string_view expected, std::string_view found) {
    add_warning(findings_, parts_.view.corrupt(position, expected, found).message);
  }
  /// Adds an error unless 0 <= index < limit.
  void check_index(const TableReader& table, std::string_view what, std::int64_t index, std::uint64_t limit) {
    if (index >= 0 && static_cast<std::uint64_t>(index) < limit) return;
    error(table.position(), text(what, " from 0 to below ", limit), text(index));
  }

  Result<void> verify_segments() {
    const ExtendedHeader& header = parts_.header;
    const auto is_used = [](const SegmentInfo& segment) { return segment.size != 0; };
    if (header.length == 0 && std::any_of(segments_.begin(), segments_.end(), is_used)) {
      error(ExtendedHeader::kPosition, "an extended header, as there are segments", "none");
      return {};
    }
    const SegmentRoom room{"the program", header.program_size, header.segment_base_offset,
                           header.segment_data_size, ExtendedHeader::kPosition + 24};
    return check_segments(parts_.view, parts_.file, segments_, room, findings_);
  }

  /// Constants, mutable data and named data.
  Result<void> verify_data(const TableReader& root) {
    ETSTREAM_ASSIGN(const TableList inline_delegates, root.tables("backend_delegate_data"));
    inline_delegates_ = inline_delegates.size();
    ETSTREAM_ASSIGN(const auto constants, root.child("constant_segment"));
    if (constants) ETSTREAM_TRY(verify_subsegments(*constants));
    ETSTREAM_TRY(verify_inline_constants(root, constants));
    ETSTREAM_ASSIGN(const TableList mutable_data, root.tables("mutable_data_segments"));
    for (std::uint32_t i = 0; i < mutable_data.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader data, mutable_data.at(i));
      ETSTREAM_TRY(verify_subsegments(data));
    }
    ETSTREAM_ASSIGN(const TableList named_data, root.tables("named_data"));
    std::set<std::string> keys;
    for (std::uint32_t i = 0; i < named_data.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader named, named_data.at(i));
      ETSTREAM_ASSIGN(const auto key, named.string("key"));
      ETSTREAM_ASSIGN(const auto index, named.scalar<std::uint32_t>("segment_index"));
      check_index(named, "NamedData.segment_index", index, segments_.size());
      if (!key) error(named.position(), "NamedData.key", "none");
      // ExecuTorch takes the first, but refuses both where it merges them with those of a file of weights.
      if (key && !keys.insert(*key).second) warning(named.position(), "each key once", quote(*key));
    }
    return {};
  }

  /// Runtimes take constants from a segment where one says where they are in it, if only a placeholder.
  Result<void> verify_inline_constants(const TableReader& root, const std::optional<TableReader>& segment) {
    ETSTREAM_ASSIGN(const TableList constants, root.tables("constant_buffer"));
    std::uint32_t pieces = 0;
    if (segment) {
      ETSTREAM_ASSIGN(const auto offsets, segment->vector("offsets"));
      if (offsets) pieces = offsets->count;
    }
    if (pieces > 1 && constants.size() > 0) {
      error(root.position(), "constants in a segment or in the flatbuffer, or ExecuTorch does not load them",
            "some in both");
    } else if (pieces == 0) {
      warning(root.position(), "constants in a segment, if only a placeholder",
              text(counted(constants.size(), "constant"),
                   " in the flatbuffer, where ExecuTorch 1.3 and later look for ",
                   "none and refuse the program; writing it again with extract_constants moves them"));
    }
    return {};
  }

  /// Pieces of a segment.
  Result<void> verify_subsegments(const TableReader& table) {
    constexpr unsigned kWidth = 8;
    ETSTREAM_ASSIGN(const auto offsets, table.vector("offsets"));
    ETSTREAM_ASSIGN(const auto index, table.scalar<std::uint32_t>("segment_index"));
    if (!offsets || offsets->count <= 1) return {};  // the placeholder alone: the segment is not used
    check_index(table, "SubsegmentOffsets.segment_index", index, segments_.size());
    if (index >= segments_.size()) return {};
    const std::uint64_t size = segments_[index].size;
    std::uint64_t weak = 0;
    for (std::uint64_t i = 1; i < offsets->count; ++i) {
      ETSTREAM_ASSIGN(const std::uint64_t offset,
                      parts_.view.read_bits(offsets->elements() + kWidth * i, kWidth));
      if (offset > size) {
        error(table.position(), text("offsets inside the ", size, " bytes of segment ", index), text(offset));
      }
      weak += offset % kWeakAlignment != 0 ? 1 : 0;
    }
    if (weak > 0) {
      warning(table.position(), text("tensors at multiples of ", kWeakAlignment, " in segment ", index),
              text(weak, " that are not"));
    }
    return {};
  }

  Result<void> verify_plan(const TableReader& plan) {
    for (const std::string_view name : {"name", "values", "inputs", "outputs", "chains"}) {
      ETSTREAM_ASSIGN(const auto vector, plan.vector(name));
      if (!vector) error(plan.position(), text("ExecutionPlan.", name), "none");
    }
    ETSTREAM_ASSIGN(const TableList values, plan.tables("values"));
    ETSTREAM_ASSIGN(const TableList operators, plan.tables("operators"));
    ETSTREAM_ASSIGN(const TableList delegates, plan.tables("delegates"));
    ETSTREAM_ASSIGN(const TableList chains, plan.tables("chains"));
    ETSTREAM_ASSIGN(const auto memories, plan.vector("non_const_buffer_sizes"));
    memories_ = memories.value_or(VectorView());
    ETSTREAM_TRY(check_indices(plan, "inputs", values.size()));
    ETSTREAM_TRY(check_indices(plan, "outputs", values.size()));
    ETSTREAM_TRY(verify_values(values));
    for (std::uint32_t i = 0; i < delegates.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader delegate, delegates.at(i));
      ETSTREAM_TRY(verify_delegate(delegate));
    }
    for (std::uint32_t i = 0; i < chains.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader chain, chains.at(i));
      ETSTREAM_TRY(verify_chain(chain, values.size(), operators.size(), delegates.size()));
    }
    return {};
  }

  /// A vector of 32-bit indices, each below `limit` or `also`. They are read one by one: they may be many.
  Result<void> check_indices(const TableReader& table, std::string_view name, std::uint64_t limit,
                             std::optional<std::int32_t> also = {}) {
    ETSTREAM_ASSIGN(const auto vector, table.vector(name));
    for (std::uint64_t i = 0; vector && i < vector->count; ++i) {
      ETSTREAM_ASSIGN(const std::uint64_t bits, parts_.view.read_bits(vector->elements() + 4 * i, 4));
      const auto index = static_cast<std::int32_t>(bits);
      if (also != index) check_index(table, text(table.type_name(), ".", name), index, limit);
    }
    return {};
  }

  Result<void> verify_values(const TableList& values) {
    std::optional<std::uint64_t> untyped;  // where the first value of no type is
    for (std::uint32_t i = 0; i < values.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader value, values.at(i));
      ETSTREAM_ASSIGN(const auto held, value.member("val"));
      if (!held) {
        if (!untyped) untyped = value.position();
        continue;
      }
      const std::string& kind = held->type_name();
      if (kind == "Tensor") ETSTREAM_TRY(verify_tensor(*held));
      if (kind == "String") ETSTREAM_TRY(check_there(*held, "string_val"));
      if (kind.ends_with("List")) ETSTREAM_TRY(check_there(*held, "items"));
      if (kind == "TensorList") ETSTREAM_TRY(check_indices(*held, "items", values.size()));
      if (kind == "OptionalTensorList") ETSTREAM_TRY(check_indices(*held, "items", values.size(), -1));
      if (kind == "IntList") ETSTREAM_TRY(check_wide_indices(*held, values.size()));
    }
    if (untyped) warning(*untyped, "a value of some type", "NONE, with which ExecuTorch loads no method");
    return {};
  }

  Result<void> check_there(const TableReader& table, std::string_view name) {
    ETSTREAM_ASSIGN(const auto vector, table.vector(name));
    if (!vector) error(table.position(), text(table.type_name(), ".", name), "none");
    return {};
  }

  /// An IntList holds indices of values too, 64 bits wide.
  Result<void> check_wide_indices(const TableReader& list, std::uint64_t limit) {
    ETSTREAM_ASSIGN(const auto vector, list.vector("items"));
    for (std::uint64_t i = 0; vector && i < vector->count; ++i) {
      ETSTREAM_ASSIGN(const std::uint64_t bits, parts_.view.read_bits(vector->elements() + 8 * i, 8));
      check_index(list, "IntList.items", static_cast<std::int64_t>(bits), limit);
    }
    return {};
  }

  Result<void> verify_tensor(const TableReader& tensor) {
    ETSTREAM_ASSIGN(const auto bytes, check_shape(parts_.view, tensor, findings_));
    return bytes ? verify_tensor_data(tensor, *bytes) : Result<void>();
  }

  /// That a tensor of `bytes` has room where it says that its data is: among the constants, in the mutable
  /// data, in planned memory, or in another file.
  Result<void> verify_tensor_data(const TableReader& tensor, std::uint64_t bytes) {
    ETSTREAM_ASSIGN(const auto extra, tensor.child("extra_tensor_info"));
    ETSTREAM_ASSIGN(const auto buffer, tensor.scalar<std::uint32_t>("data_buffer_idx"));
    ETSTREAM_ASSIGN(const auto allocation, tensor.child("allocation_info"));
    std::uint64_t mutable_index = 0;
    if (allocation) ETSTREAM_TRY(verify_allocation(*allocation, bytes));
    if (extra) {
      ETSTREAM_ASSIGN(const auto location, extra->scalar<std::int8_t>("location"));
      ETSTREAM_ASSIGN(const auto name, extra->string("fully_qualified_name"));
      ETSTREAM_ASSIGN(mutable_index, extra->scalar<std::uint64_t>("mutable_data_segments_idx"));
      constexpr std::int8_t kExternal = 1;
      if (location == kExternal) {
        if (!name || name->empty()) error(extra->position(), "the name of an external tensor", "none");
        return {};
      }
    }
    if (buffer == 0) return {};
    const auto data = allocation ? payloads_->mutable_data(tensor, mutable_index, buffer, bytes)
                                 : payloads_->constant(tensor, buffer, bytes);
    if (data) return {};
    if (data.error().code != ErrorCode::kCorrupt) return data.error();
    add_error(findings_, data.error().message);
    return {};
  }

  /// Memory ids count from 1; their sizes from 0, where the first is reserved.
  Result<void> verify_allocation(const TableReader& allocation, std::uint64_t bytes) {
    ETSTREAM_ASSIGN(const auto memory, allocation.scalar<std::uint32_t>("memory_id"));
    ETSTREAM_ASSIGN(const auto low, allocation.scalar<std::uint32_t>("memory_offset_low"));
    ETSTREAM_ASSIGN(const auto high, allocation.scalar<std::uint32_t>("memory_offset_high"));
    if (memory == 0 || memory >= memories_.count) {
      error(allocation.position(), text("a memory_id from 1 to below ", memories_.count), text(memory));
      return {};
    }
    ETSTREAM_ASSIGN(const std::uint64_t size,
                    parts_.view.read_bits(memories_.elements() + 8 * std::uint64_t{memory}, 8));
    const std::uint64_t offset = std::uint64_t{high} << 32 | low;
    if (!range_fits(offset, bytes, size)) {
      error(allocation.position(), text(bytes, " bytes inside the ", size, " of memory ", memory),
            text("them at ", offset));
    }
    return {};
  }

  Result<void> verify_delegate(const TableReader& delegate) {
    ETSTREAM_ASSIGN(const auto id, delegate.string("id"));
    ETSTREAM_ASSIGN(const auto processed, delegate.child("processed"));
    if (!id || !processed) {
      error(delegate.position(), "a delegate's id and processed data", "none");
      return {};
    }
    ETSTREAM_ASSIGN(const auto location, processed->scalar<std::int8_t>("location"));
    ETSTREAM_ASSIGN(const auto index, processed->scalar<std::uint32_t>("index"));
    check_index(*processed, "BackendDelegateDataReference.location", location, 2);
    check_index(*processed, "BackendDelegateDataReference.index", index,
                location == 0 ? inline_delegates_ : segments_.size());
    return {};
  }

  Result<void> verify_chain(const TableReader& chain, std::uint64_t values, std::uint64_t operators,
                            std::uint64_t delegates) {
    ETSTREAM_TRY(check_there(chain, "instructions"));
    ETSTREAM_ASSIGN(const TableList instructions, chain.tables("instructions"));
    for (std::uint32_t i = 0; i < instructions.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader instruction, instructions.at(i));
      ETSTREAM_ASSIGN(const auto call, instruction.member("instr_args"));
      if (!call) {
        error(instruction.position(), "an instruction", "none");
        continue;
      }
      struct Index {
        std::string_view table, field;
        std::uint64_t limit;
      };
      const Index indices[] = {
          {"KernelCall", "op_index", operators},
          {"DelegateCall", "delegate_index", delegates},
          {"MoveCall", "move_from", values},
          {"MoveCall", "move_to", values},
          {"JumpFalseCall", "cond_value_index", values},
          {"JumpFalseCall", "destination_instruction", std::uint64_t{instructions.size()} + 1},
          {"FreeCall", "value_index", values}};
      for (const Index& index : indices) {
        if (call->type_name() != index.table) continue;
        ETSTREAM_ASSIGN(const auto found, call->scalar<std::int32_t>(index.field));
        check_index(*call, text(index.table, ".", index.field), found, index.limit);
      }
      if (call->type_name() == "KernelCall" || call->type_name() == "DelegateCall") {
        ETSTREAM_TRY(check_indices(*call, "args", values));
      }
    }
    return {};
  }

  const ProgramFile& program_;
  const ProgramFile::Parts& parts_;
  Findings& findings_;
  std::vector<SegmentInfo> segments_;
  std::optional<ProgramPayloads> payloads_;
  std::uint64_t inline_delegates_ = 0;
  VectorView memories_;  // the sizes of the planned memories of the method that is being verified
};

}  // namespace

Result<void> ProgramFile::verify(Findings& findings) const {
  return without_exceptions([&]() -> Result<void> {
    auto done = ProgramVerifier(*this, *parts_, findings).run();
    if (done || done.error().code != ErrorCode::kCorrupt) return done;
    add_error(findings, std::move(done).error().message);
    return {};
  });
}

}  // namespace etstream
