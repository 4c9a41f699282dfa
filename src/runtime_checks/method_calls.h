// SPDX-License-Identifier: BSD-3-Clause
//
// The values of a method and the operators that it calls, as they are when it is loaded and as far as verify
// needs them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "etstream/result.h"
#include "etstream/tensor.h"
#include "formats/pte/program_model.h"
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
  [[nodiscard]] Result<void> read_values();

  [[nodiscard]] const pte::Program& program() const noexcept { return program_; }
  [[nodiscard]] const program::Fields& known() const noexcept { return known_; }
  [[nodiscard]] const pte::Method& method() const noexcept { return method_; }
  [[nodiscard]] Findings& findings() const noexcept { return findings_; }
  [[nodiscard]] FileBudget& budget() noexcept { return budget_; }
  void error(const pte::View& table, std::string_view expected, std::string_view found);

  [[nodiscard]] std::uint32_t values() const noexcept { return static_cast<std::uint32_t>(tracked_.size()); }
  [[nodiscard]] TrackedValue& tracked(std::int64_t value) {
    return tracked_[static_cast<std::size_t>(value)];
  }
  /// Returns the content of a value that holds something.
  [[nodiscard]] Result<pte::Held> held_by(std::int32_t value) const;
  /// Returns nothing for a value that is no tensor in planned memory, or that another value replaces.
  [[nodiscard]] Result<std::optional<PlannedPlace>> place_of(std::int32_t value) const;
  [[nodiscard]] Result<const Callee*> callee_of(const pte::Call& call);
  [[nodiscard]] Result<NumberList<std::int32_t>> arguments_of(const pte::Call& call);
  [[nodiscard]] bool is_list_of_tensors(std::int64_t value) {
    constexpr Kinds kLists = kinds(pte::ValueKind::kTensorList, pte::ValueKind::kOptionalTensorList);
    return (kLists & kinds(tracked(value).kind)) != 0;
  }
  /// Reads the items of a list, or of a method's inputs and outputs.
  template <class T>
  [[nodiscard]] Result<NumberList<T>> items_of(const pte::View& table, const BoundField& field) {
    ETSTREAM_ASSIGN(auto items, table.numbers<T>(field));
    ETSTREAM_TRY(budget_.reach(table.position(), std::uint64_t{items.size()} * sizeof(T)));
    return items;
  }

  /// Reads the items of the list that is value `value`.
  template <class T>
  [[nodiscard]] Result<NumberList<T>> items_of(std::int32_t value) {
    ETSTREAM_ASSIGN(const pte::Held list, held_by(value));
    return items_of<T>(list, *list.items());
  }

  /// Calls `visit` with each instruction's call, its number, and that of the first instruction of its chain.
  [[nodiscard]] Result<void> for_each_call(const auto& visit) {
    std::uint32_t number = 0;
    return for_each(method_.chains(), [&](const pte::Chain& chain) -> Result<void> {
      ETSTREAM_ASSIGN(const auto instructions, chain.instructions());
      ETSTREAM_TRY(budget_.reach(chain.position(), std::uint64_t{instructions.size()} * 4));
      const std::uint32_t first = number;
      return for_each(instructions, [&](const pte::Instruction& instruction) -> Result<void> {
        ETSTREAM_ASSIGN(const auto call, instruction.call());
        return call ? visit(*call, number++, first) : instruction.corrupt("an instruction", "none");
      });
    });
  }

 private:
  Result<void> check_tensors(const pte::Held& list, std::uint32_t own);
  Result<void> read_callee(std::uint32_t index, Callee& callee);

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
