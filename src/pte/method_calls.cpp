// SPDX-License-Identifier: BSD-3-Clause
//
// ExecuTorch 1.5.1: a list of tensors is made of the values before it (tensor_parser_exec_aten.cpp), and the
// name of an operator has room for 99 bytes (Method::resolve_operator).
#include "pte/method_calls.h"

#include <cctype>
#include <map>
#include <utility>

#include "base/text.h"
#include "container/findings.h"

namespace etstream {
namespace {

constexpr std::uint32_t kMostOfName = 99;

/// The kind of value that an argument with this letter in a signature is.
char kind_of(char letter) {
  const char upper = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  if (upper == 'M' || upper == 'V' || upper == 'W') return 'T';
  return upper == 'U' ? 'L' : upper;
}

Result<void> read_tensor(const pte::Tensor& tensor, Slot& slot) {
  ETSTREAM_ASSIGN(const pte::Storage storage, tensor.storage());
  ETSTREAM_ASSIGN(const TensorInfo info, tensor.info());
  ETSTREAM_ASSIGN(const std::uint64_t width, byte_size(info.scalar_type, {}));
  slot.width = static_cast<std::uint8_t>(width);
  slot.is_constant = storage.kind == TensorStorage::kConstant;
  slot.is_planned = storage.kind != TensorStorage::kProvided;
  slot.has_no_data = !slot.is_planned && std::ranges::count(info.sizes, 0) == 0;
  slot.is_empty = slot.has_no_data ||
                  (storage.kind == TensorStorage::kPlanned && info.dynamism != ShapeDynamism::kStatic);
  return {};
}

/// kOperatorSignatures by the operators' names.
std::map<std::string_view, std::string_view> signatures_by_name() {
  std::map<std::string_view, std::string_view> out;
  std::string_view letters;
  for (std::size_t begin = 0, end = 0; begin < kOperatorSignatures.size(); begin = end + 1) {
    end = kOperatorSignatures.find_first_of(" \n", begin);
    const std::string_view word = kOperatorSignatures.substr(begin, end - begin);
    const bool is_name = word.find(':') != std::string_view::npos;
    if (is_name) out.emplace(word, letters);
    if (!is_name && !word.empty()) letters = word;
  }
  return out;
}

}  // namespace

std::optional<std::string_view> find_signature(std::string_view name) {
  static const auto kSignatures = signatures_by_name();
  const auto found = kSignatures.find(name);
  return found == kSignatures.end() ? std::nullopt : std::optional(found->second);
}

std::string_view name_of_kind(char letter) {
  constexpr std::pair<char, std::string_view> kNames[] = {
      {'T', "a tensor"},          {'L', "a list of tensors"},  {'O', "a list of optional tensors"},
      {'I', "an integer"},        {'D', "a double"},           {'B', "a boolean"},
      {'S', "a number"},          {'N', "a string"},           {'A', "a list of integers"},
      {'F', "a list of doubles"}, {'G', "a list of booleans"}, {kNullKind, "null"}};
  for (const auto& [each, name] : kNames) {
    if (each == kind_of(letter)) return name;
  }
  return "another kind of value";
}

bool takes(char letter, char held) {
  const char kind = kind_of(letter);
  if (held == kNullKind) return std::islower(static_cast<unsigned char>(letter)) != 0;
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
  ETSTREAM_TRY(for_each(*values_, [&](const pte::Value& value, std::uint32_t i) -> Result<void> {
    ETSTREAM_ASSIGN(const auto held, value.held());
    if (!held) return {};
    slots_[i].letter = static_cast<char>(held->kind());
    if (slots_[i].letter == 'T') return read_tensor(held->tensor(), slots_[i]);
    return is_list_of_tensors(i) ? check_tensors(*held, i) : Result<void>();
  }));
  ETSTREAM_TRY(for_each(items_of<std::int32_t>(method_, known_.method.inputs),
                        [&](std::int32_t input) { slot(input).has_no_data = slot(input).is_empty = false; }));
  return for_each(items_of<std::int32_t>(method_, known_.method.outputs),
                  [&](std::int32_t output) { slot(output).has_no_data = false; });
}

/// Of the list that is value `own`.
Result<void> MethodCalls::check_tensors(const pte::Held& list, std::uint32_t own) {
  const char letter = slots_[own].letter == 'O' ? 't' : 'T';
  return for_each(items_of<std::int32_t>(list, *list.items()), [&](std::int32_t item) {
    if (item == -1) return;  // which only a list of optional tensors has
    if (std::cmp_greater_equal(item, own)) {
      error(list, text("{} of values before {}, the list's own", list.items()->full_name(), own),
            text("{}", item));
    } else if (const char held = slot(item).letter; !takes(letter, held)) {
      error(list, text("{} of tensors", list.items()->full_name()), name_of_kind(held));
    }
  });
}

Result<pte::Held> MethodCalls::held_by(std::int32_t value) const {
  ETSTREAM_ASSIGN(const pte::Value at, values_->at(static_cast<std::uint64_t>(value)));
  ETSTREAM_ASSIGN(const auto held, at.held());
  return *held;
}

Result<std::optional<PlannedPlace>> MethodCalls::place_of(std::int32_t value) const {
  PlannedPlace out;
  const Slot& own = slots_[static_cast<std::size_t>(value)];
  if (own.letter != 'T' || own.is_replaced) return std::optional<PlannedPlace>();
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

Result<NumberList<std::int32_t>> MethodCalls::arguments_of(const pte::Call& call) {
  return items_of<std::int32_t>(call, *call.args());
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
  if (!callee.signature) add_unknown_operator(findings_, callee.name);
  return {};
}

}  // namespace etstream
