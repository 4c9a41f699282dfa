// SPDX-License-Identifier: BSD-3-Clause
//
// ExecuTorch 1.5.1: a list of tensors is made of the values before it (tensor_parser_exec_aten.cpp), and the
// name of an operator has room for 99 bytes (Method::resolve_operator).
#include "pte/method_calls.h"

#include <cctype>
#include <utility>

#include "base/text.h"
#include "container/findings.h"
#include "pte/operator_signatures.h"

namespace etstream {
namespace {

constexpr std::uint32_t kMostOfName = 99;

/// That an argument of a signature is taken for.
char kind_of(char letter) {
  const char upper = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return upper == 'M' || upper == 'V' ? 'T' : upper;
}

Result<void> read_tensor(const pte::Tensor& tensor, Slot& slot) {
  ETSTREAM_ASSIGN(const pte::Storage storage, tensor.storage());
  slot.is_constant = storage.kind == TensorStorage::kConstant;
  slot.is_planned = storage.kind != TensorStorage::kProvided;
  ETSTREAM_ASSIGN(const TensorLayout layout, tensor.layout());
  ETSTREAM_ASSIGN(const std::uint64_t width, byte_size(layout.scalar_type, {}));
  slot.width = static_cast<std::uint8_t>(width);
  if (storage.kind == TensorStorage::kPlanned) {
    ETSTREAM_ASSIGN(const TensorInfo info, tensor.info());
    slot.is_empty = info.dynamism != ShapeDynamism::kStatic;
  }
  if (storage.kind != TensorStorage::kProvided) return {};
  slot.has_no_data = true;
  for (const std::int32_t size : layout.sizes) slot.has_no_data &= size != 0;
  slot.is_empty = slot.has_no_data;
  return {};
}

}  // namespace

std::string_view name_of_kind(char letter) {
  constexpr std::pair<char, std::string_view> kNames[] = {
      {'T', "a tensor"},          {'L', "a list of tensors"},  {'O', "a list of optional tensors"},
      {'I', "an integer"},        {'D', "a double"},           {'B', "a boolean"},
      {'S', "a number"},          {'N', "a string"},           {'A', "a list of integers"},
      {'F', "a list of doubles"}, {'G', "a list of booleans"}, {kNull, "null"}};
  for (const auto& [each, name] : kNames) {
    if (each == kind_of(letter)) return name;
  }
  return "another kind of value";
}

bool takes(char letter, char held) {
  const char kind = kind_of(letter);
  if (held == kNull) return std::islower(static_cast<unsigned char>(letter)) != 0;
  return kind == held || (kind == 'S' && (held == 'I' || held == 'D' || held == 'B'));
}

void MethodCalls::error(const pte::View& table, std::string_view expected, std::string_view found) {
  add_error(findings_, table.corrupt(expected, found));
}

Result<void> MethodCalls::read_values() {
  ETSTREAM_ASSIGN(values_, method_.values());
  ETSTREAM_ASSIGN(operators_, method_.operators());
  callees_.resize(operators_->size());
  slots_.resize(values_->size());
  for (std::uint32_t i = 0; i < values_->size(); ++i) {
    ETSTREAM_ASSIGN(const pte::Value value, values_->at(i));
    ETSTREAM_ASSIGN(const auto held, value.held());
    if (!held) continue;
    slots_[i].letter = letter_of(*held);
    if (slots_[i].letter == 'T') ETSTREAM_TRY(read_tensor(held->tensor(), slots_[i]));
    if (slots_[i].letter == 'L' || slots_[i].letter == 'O') ETSTREAM_TRY(check_tensors(*held, i));
  }
  for (const BoundField* given : {&known_.method.inputs, &known_.method.outputs}) {
    ETSTREAM_ASSIGN(const auto indices, items_of<std::int32_t>(method_, *given));
    for (std::uint64_t i = 0; i < indices.size(); ++i) {
      ETSTREAM_ASSIGN(const std::int32_t value, indices.at(i));
      slot(value).has_no_data = false;
      if (given == &known_.method.inputs) slot(value).is_empty = false;
    }
  }
  return {};
}

char MethodCalls::letter_of(const pte::Held& held) const {
  const std::pair<std::size_t, char> letters[] = {{known_.null.index(), kNull},
                                                  {known_.tensor.index(), 'T'},
                                                  {known_.integer.index(), 'I'},
                                                  {known_.boolean.index(), 'B'},
                                                  {known_.number.index(), 'D'},
                                                  {known_.string.index(), 'N'},
                                                  {known_.int_list.index(), 'A'},
                                                  {known_.double_list.index(), 'F'},
                                                  {known_.bool_list.index(), 'G'},
                                                  {known_.tensor_list.index(), 'L'},
                                                  {known_.optional_tensor_list.index(), 'O'}};
  for (const auto& [table, letter] : letters) {
    if (table == held.type()) return letter;
  }
  return kUnknownKind;
}

/// Those of the list that is value `own`.
Result<void> MethodCalls::check_tensors(const pte::Held& list, std::uint32_t own) {
  ETSTREAM_ASSIGN(const auto items, items_of<std::int32_t>(list, list.items()));
  const bool are_optional = slots_[own].letter == 'O';
  for (std::uint64_t i = 0; i < items.size(); ++i) {
    ETSTREAM_ASSIGN(const std::int32_t item, items.at(i));
    if (item == -1) continue;  // which only a list of optional tensors has
    if (std::cmp_greater_equal(item, own)) {
      error(list, text("{} of values before {}, the list's own", list.items().full_name(), own),
            text("{}", item));
    } else if (const char held = slot(item).letter; !takes(are_optional ? 't' : 'T', held)) {
      error(list, text("{} of tensors", list.items().full_name()), name_of_kind(held));
    }
  }
  return {};
}

Result<pte::Held> MethodCalls::held_by(std::int32_t value) const {
  ETSTREAM_ASSIGN(const pte::Value at, values_->at(static_cast<std::uint64_t>(value)));
  ETSTREAM_ASSIGN(const auto held, at.held());
  return *held;
}

Result<std::optional<PlannedPlace>> MethodCalls::place_of(std::int32_t value) const {
  ETSTREAM_ASSIGN(const pte::Held held, held_by(value));
  ETSTREAM_ASSIGN(const auto allocation, held.tensor().allocation());
  if (!allocation) return std::optional<PlannedPlace>();
  PlannedPlace out;
  ETSTREAM_ASSIGN(out.memory, allocation->memory_id());
  ETSTREAM_ASSIGN(out.begin, allocation->memory_offset());
  ETSTREAM_ASSIGN(const TensorLayout layout, held.tensor().layout());
  out.dtype = layout.scalar_type;
  ETSTREAM_ASSIGN(const std::uint64_t bytes, byte_size(layout.scalar_type, layout.sizes));
  out.end = out.begin + bytes;
  return std::optional(out);
}

Result<NumberList<std::int32_t>> MethodCalls::arguments_of(const pte::Call& call) {
  return items_of<std::int32_t>(call, call.args());
}

Result<const Callee*> MethodCalls::callee_of(const pte::Call& call) {
  ETSTREAM_ASSIGN(const auto index, call.scalar<std::int32_t>(known_.kernel_call.op_index));
  Callee& callee = callees_[static_cast<std::size_t>(index)];
  if (!callee.is_read) ETSTREAM_TRY(read_callee(static_cast<std::uint32_t>(index), callee));
  return &callee;
}

Result<void> MethodCalls::read_callee(std::uint32_t index, Callee& callee) {
  callee.is_read = true;
  ETSTREAM_ASSIGN(const pte::Operator called, operators_->at(index));
  ETSTREAM_ASSIGN(const auto name, called.vector(known_.operators.name));
  ETSTREAM_ASSIGN(const auto overload, called.vector(known_.operators.overload));
  if (!name || name->count == 0) {
    error(called, "the name of an operator that is called", "none");
    return {};
  }
  const std::uint64_t length =
      std::uint64_t{name->count} + (overload ? std::uint64_t{overload->count} + 1 : 0);
  if (length > kMostOfName) {
    error(called, text("the name of an operator of at most {} bytes", kMostOfName), text("{}", length));
    return {};
  }
  ETSTREAM_ASSIGN(callee.name, called.name());
  ETSTREAM_ASSIGN(const std::string behind, called.overload());
  if (!behind.empty()) callee.name += "." + behind;
  if (!is_utf8(callee.name)) error(called, "the name of an operator in UTF-8", quote(callee.name));
  callee.signature = find_signature(callee.name);
  if (!callee.signature) ++findings_.unknown_operators;
  return {};
}

}  // namespace etstream
