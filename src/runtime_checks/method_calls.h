// SPDX-License-Identifier: BSD-3-Clause
//
// The values of a method and the operators that it calls, as they are when it is loaded and as far as verify
// needs them.
//
// ExecuTorch 1.5.1: a list of tensors is made of the values before it (tensor_parser_exec_aten.cpp), and the
// name of an operator has room for 99 bytes (Method::resolve_operator).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "etstream/result.h"
#include "etstream/tensor.h"
#include "formats/pte/program_model.h"
#include "runtime_checks/kernel_rules.h"
#include "runtime_checks/operator_signatures.h"

namespace etstream {

/// A value, and what the instructions do with it.
struct TrackedValue {
  pte::ValueKind kind = pte::ValueKind::kUnknown;
  bool is_constant = false;  // in the program's memory
  bool has_no_data = false;  // before something gives it some
  bool is_empty = false;     // a tensor that a call gives its memory or its shape, in each run
  bool is_replaced = false;  // by another value or an unknown operator's
  bool is_result = false;    // a number, which a call of the runtime's own gives
  bool is_planned = false;   // a tensor in planned memory, or of the program
  bool is_checked = false;   // a list whose items were checked
  bool has_scales = false;   // a tensor of a quantized dtype
  std::uint8_t width = 0;    // the bytes of a tensor's element

  /// Returns whether it holds the tensor that it has when the method is loaded, all the time.
  [[nodiscard]] bool is_own_tensor() const { return kind == pte::ValueKind::kTensor && !is_replaced; }
  [[nodiscard]] bool is_list_of_tensors() const {
    constexpr Kinds kLists = kinds(pte::ValueKind::kTensorList, pte::ValueKind::kOptionalTensorList);
    return (kLists & kinds(kind)) != 0;
  }
};

/// An operator that is called.
struct Callee {
  bool is_read = false;
  std::string name;
  std::optional<Signature> signature;

  /// Returns whether it returns a number, and writes to none of its arguments.
  [[nodiscard]] bool gives_number() const {
    return signature && signature->back() == Parameter::kReturn &&
           std::ranges::none_of(*signature, is_written);
  }
};

/// The place of a tensor in planned memory.
struct PlannedPlace {
  std::uint32_t memory = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  ScalarType dtype{};

  [[nodiscard]] bool overlaps(const PlannedPlace& other) const {
    return memory == other.memory && begin < other.end && other.begin < end;
  }
  [[nodiscard]] bool may_hold_indices() const {
    return dtype == ScalarType::kInt32 || dtype == ScalarType::kInt64;
  }
};

/// ProgramFile::verify() found no error in the program: all indices are in range. Memory: 10 bytes a value
/// and 56 an operator. Errors: those of Program, and kCorrupt if more is shared than FileBudget allows.
class ETSTREAM_HIDDEN MethodCalls {
 public:
  /// The program, the method and the findings outlive it. Problems of lists of tensors and of operators'
  /// names are added to `findings`.
  MethodCalls(const pte::Program& program, const pte::Method& method, Findings& findings)
      : program_(program),
        known_(program.fields()),
        method_(method),
        findings_(findings),
        budget_(program.view().name(), program.view().file().size(), program.file().size()) {}

  /// Reads all values; call it before the others.
  Result<void> read_values() {
    ETSTREAM_ASSIGN(values_, method_.values());
    ETSTREAM_ASSIGN(operators_, method_.operators());
    callees_.resize(operators_->size());
    tracked_.resize(values_->size());
    ETSTREAM_TRY(for_each(*values_, [&](const pte::Value& value, std::uint32_t i) -> Result<void> {
      ETSTREAM_ASSIGN(const auto held, value.held());
      if (!held) return {};
      tracked_[i].kind = held->kind();
      if (tracked_[i].kind == pte::ValueKind::kTensor) return read_tensor(held->tensor(), tracked_[i]);
      return tracked_[i].is_list_of_tensors() ? check_tensors(*held, i) : Result<void>();
    }));
    ETSTREAM_ASSIGN(const auto inputs, items_of(method_, known_.execution_plan.inputs));
    for (const std::int64_t input : inputs) tracked(input).has_no_data = tracked(input).is_empty = false;
    ETSTREAM_ASSIGN(const auto outputs, items_of(method_, known_.execution_plan.outputs));
    for (const std::int64_t output : outputs) tracked(output).has_no_data = false;
    return {};
  }

  [[nodiscard]] const pte::Program& program() const noexcept { return program_; }
  [[nodiscard]] const program::Fields& known() const noexcept { return known_; }
  [[nodiscard]] const pte::Method& method() const noexcept { return method_; }
  [[nodiscard]] Findings& findings() const noexcept { return findings_; }
  [[nodiscard]] FileBudget& budget() noexcept { return budget_; }

  void error(const pte::View& table, std::string_view expected, std::string_view found) {
    add_error(findings_, table.corrupt(expected, found));
  }

  [[nodiscard]] std::uint32_t values() const noexcept { return static_cast<std::uint32_t>(tracked_.size()); }
  [[nodiscard]] TrackedValue& tracked(std::int64_t value) {
    return tracked_[static_cast<std::size_t>(value)];
  }

  /// Returns the content of a value that holds something.
  Result<pte::Held> held_by(std::int64_t value) const {
    ETSTREAM_ASSIGN(const pte::Value at, values_->at(static_cast<std::uint64_t>(value)));
    ETSTREAM_ASSIGN(const auto held, at.held());
    return *held;
  }

  /// Reads the tensor that a value is when the method is loaded.
  Result<TensorInfo> tensor_in(std::int64_t value) const {
    ETSTREAM_ASSIGN(const pte::Held held, held_by(value));
    return held.tensor().info();
  }

  /// Returns nothing for a value that is no tensor in planned memory, or that another value replaces.
  Result<std::optional<PlannedPlace>> place_of(std::int64_t value) const {
    PlannedPlace out;
    if (!tracked_[static_cast<std::size_t>(value)].is_own_tensor()) return std::optional<PlannedPlace>();
    ETSTREAM_ASSIGN(const pte::Held held, held_by(value));
    ETSTREAM_ASSIGN(const auto allocation, held.tensor().allocation());
    if (!allocation) return std::optional<PlannedPlace>();
    ETSTREAM_ASSIGN(out.memory, allocation->memory_id());
    ETSTREAM_ASSIGN(out.begin, allocation->memory_offset());
    ETSTREAM_ASSIGN(const TensorLayout layout, held.tensor().layout());
    out.dtype = layout.scalar_type;
    ETSTREAM_ASSIGN(const std::uint64_t bytes, byte_size(layout.scalar_type, layout.sizes));
    out.end = out.begin + bytes;
    return std::optional(out);
  }

  Result<const Callee*> callee_of(const GraphCall& call) {
    Callee& callee = callees_[call.callee];
    if (!callee.is_read) ETSTREAM_TRY(read_callee(call.callee, callee));
    return &callee;
  }

  /// Reads the items of a list, or of a method's inputs and outputs.
  [[nodiscard]] Result<std::vector<std::int64_t>> items_of(const pte::View& table, const BoundField& field) {
    ETSTREAM_ASSIGN(auto items, table.indices(field));
    ETSTREAM_TRY(budget_.reach(table.position(), items.size() * field.type().width));
    return items;
  }
  /// Reads the items of the list that is value `value`.
  [[nodiscard]] Result<std::vector<std::int64_t>> items_of(std::int64_t value) {
    ETSTREAM_ASSIGN(const pte::Held list, held_by(value));
    return items_of(list, *list.items());
  }

  /// Calls `visit` with each instruction's table, what it says, and its number. An instruction of an unknown
  /// kind frees nothing. The destinations of jumps are numbers among all instructions. Counts the arguments
  /// of all calls, unless walks before have bounded them.
  [[nodiscard]] Result<void> for_each_call(const auto& visit, bool are_bounded = false) {
    std::uint32_t number = 0;
    return for_each(method_.chains(), [&](const pte::Chain& chain) -> Result<void> {
      ETSTREAM_ASSIGN(const auto instructions, chain.instructions());
      ETSTREAM_TRY(budget_.reach(chain.position(), std::uint64_t{instructions.size()} * 4));
      const std::uint32_t first = number;
      return for_each(instructions, [&](const pte::Instruction& instruction) -> Result<void> {
        ETSTREAM_ASSIGN(const auto table, instruction.call());
        if (!table) return instruction.corrupt("an instruction", "none");
        GraphCall call;
        call.kind = CallKind::kFree;
        if (table->kind()) {
          ETSTREAM_ASSIGN(call, table->read({}, [](auto&&...) { return Result<void>(); }));
        }
        if (table->args() && !are_bounded) {
          ETSTREAM_TRY(budget_.reach(table->position(), call.args.size() * 4));
        }
        call.destination += first;
        return visit(*table, call, number++);
      });
    });
  }

 private:
  static Result<void> read_tensor(const pte::Tensor& tensor, TrackedValue& tracked) {
    ETSTREAM_ASSIGN(const pte::Storage storage, tensor.storage());
    ETSTREAM_ASSIGN(const TensorInfo info, tensor.info());
    ETSTREAM_ASSIGN(const std::uint64_t width, byte_size(info.scalar_type, {}));
    tracked.width = static_cast<std::uint8_t>(width);
    tracked.has_scales = name_of(info.scalar_type).starts_with('q');
    tracked.is_constant = storage.kind == TensorStorage::kConstant;
    tracked.is_planned = storage.kind != TensorStorage::kProvided;
    tracked.has_no_data = !tracked.is_planned && std::ranges::count(info.sizes, 0) == 0;
    tracked.is_empty = tracked.has_no_data ||
                       (storage.kind == TensorStorage::kPlanned && info.dynamism != ShapeDynamism::kStatic);
    return {};
  }

  /// Checks the items of `list`, which is value `own`.
  Result<void> check_tensors(const pte::Held& list, std::uint32_t own) {
    const bool may_be_null = tracked_[own].kind == pte::ValueKind::kOptionalTensorList;
    const Kinds taken = kinds_taken(may_be_null ? Parameter::kOptionalTensor : Parameter::kTensor);
    ETSTREAM_ASSIGN(const auto items, items_of(list, *list.items()));
    for (const std::int64_t item : items) {
      if (item == -1) continue;  // which only a list of optional tensors has
      if (std::cmp_greater_equal(item, own)) {
        error(list, text("{} of values before {}, the list's own", list.items()->full_name(), own),
              text("{}", item));
      } else if (const Kinds held = kinds(tracked(item).kind); (held & taken) == 0) {
        error(list, text("{} of tensors", list.items()->full_name()), name_of_kinds(held));
      }
    }
    return {};
  }

  Result<void> read_callee(std::uint32_t index, Callee& callee) {
    callee.is_read = true;
    ETSTREAM_ASSIGN(const pte::Operator called, operators_->at(index));
    ETSTREAM_ASSIGN(const auto name, called.vector(known_.operator_.name));
    ETSTREAM_ASSIGN(const auto overload, called.vector(known_.operator_.overload));
    if (!name || name->count == 0) {
      error(called, "the name of an operator that is called", "none");
      return {};
    }
    const std::uint64_t length =
        std::uint64_t{name->count} + (overload ? std::uint64_t{overload->count} + 1 : 0);
    constexpr std::uint32_t kMostOfName = 99;
    if (length > kMostOfName) {
      error(called, text("the name of an operator of at most {} bytes", kMostOfName), text("{}", length));
      return {};
    }
    ETSTREAM_ASSIGN(callee.name, called.name());
    ETSTREAM_ASSIGN(const std::string behind, called.overload());
    if (!behind.empty()) callee.name += "." + behind;
    if (!is_utf8(callee.name)) error(called, "the name of an operator in UTF-8", quote(callee.name));
    callee.signature = find_signature(callee.name);
    if (!callee.signature) add_unknown_operator(findings_, callee.name);
    if (const auto unchecked = taken_unchecked(callee.name)) {
      add_warning(findings_, called.corrupt(text("calls of kernels that check their {}", *unchecked),
                                            text("{}, which reads past the end of a tensor by wrong ones",
                                                 callee.name)));
    }
    return {};
  }

  const pte::Program& program_;
  const program::Fields& known_;
  const pte::Method& method_;
  Findings& findings_;
  FileBudget budget_;
  std::optional<pte::List<pte::Value>> values_;
  std::optional<pte::List<pte::Operator>> operators_;
  std::vector<TrackedValue> tracked_;  // one a value
  std::vector<Callee> callees_;        // one an operator
};

}  // namespace etstream
