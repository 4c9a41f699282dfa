// SPDX-License-Identifier: BSD-3-Clause
//
// ExecuTorch 1.5.1: a list of tensors is made of the values before it (tensor_parser_exec_aten.cpp), and the
// name of an operator has room for 99 bytes (Method::resolve_operator).
#include "runtime_checks/method_calls.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/findings.h"
#include "core/base/text.h"
#include "runtime_checks/kernel_rules.h"
#include "runtime_checks/operator_signatures.h"

namespace etstream {
namespace {

std::map<std::string_view, Signature> signatures_by_name() {
  std::map<std::string_view, Signature> out;
  for (const OperatorSignature& each : kOperatorSignatures) {
    const auto end = std::ranges::find(each.parameters, Parameter::kNone);
    const Signature signature(each.parameters.begin(), end);
    std::string_view names = each.operators;
    while (!names.empty()) {
      const std::size_t size = std::min(names.find(' '), names.size());
      out.emplace(names.substr(0, size), signature);
      names.remove_prefix(std::min(size + 1, names.size()));
    }
  }
  return out;
}

constexpr std::uint32_t kMostOfName = 99;

Result<void> read_tensor(const pte::Tensor& tensor, TrackedValue& tracked) {
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

}  // namespace

std::optional<Signature> find_signature(std::string_view name) {
  static const auto kSignatures = signatures_by_name();
  const auto found = kSignatures.find(name);
  return found == kSignatures.end() ? std::nullopt : std::optional(found->second);
}

Kinds kinds_taken(Parameter parameter) {
  using enum pte::ValueKind;
  switch (parameter) {
    case Parameter::kTensor:
    case Parameter::kOut:
    case Parameter::kShape:
    case Parameter::kView:
      return kinds(kTensor);
    case Parameter::kOptionalTensor:
      return kinds(kTensor, kNull);
    case Parameter::kTensorList:
    case Parameter::kOutList:
      return kinds(kTensorList);
    case Parameter::kOptionalTensorList:
      return kinds(kOptionalTensorList);
    case Parameter::kInt:
      return kinds(kInt);
    case Parameter::kOptionalInt:
      return kinds(kInt, kNull);
    case Parameter::kDouble:
      return kinds(kDouble);
    case Parameter::kOptionalDouble:
      return kinds(kDouble, kNull);
    case Parameter::kBool:
      return kinds(kBool);
    case Parameter::kOptionalBool:
      return kinds(kBool, kNull);
    case Parameter::kScalar:
      return kAnyNumber;
    case Parameter::kOptionalScalar:
      return kAnyNumber | kinds(kNull);
    case Parameter::kString:
      return kinds(kString);
    case Parameter::kOptionalString:
      return kinds(kString, kNull);
    case Parameter::kIntList:
      return kinds(kIntList);
    case Parameter::kOptionalIntList:
      return kinds(kIntList, kNull);
    case Parameter::kDoubleList:
      return kinds(kDoubleList);
    case Parameter::kOptionalDoubleList:
      return kinds(kDoubleList, kNull);
    case Parameter::kBoolList:
      return kinds(kBoolList);
    case Parameter::kNone:
    case Parameter::kReturn:
      break;
  }
  return kAnything;
}

void MethodCalls::error(const pte::View& table, std::string_view expected, std::string_view found) {
  add_error(findings_, table.corrupt(expected, found));
}

Result<void> MethodCalls::read_values() {
  ETSTREAM_ASSIGN(values_, method_.values());
  ETSTREAM_ASSIGN(operators_, method_.operators());
  callees_.resize(operators_->size());
  tracked_.resize(values_->size());
  ETSTREAM_TRY(for_each(*values_, [&](const pte::Value& value, std::uint32_t i) -> Result<void> {
    ETSTREAM_ASSIGN(const auto held, value.held());
    if (!held) return {};
    tracked_[i].kind = held->kind();
    if (tracked_[i].kind == pte::ValueKind::kTensor) return read_tensor(held->tensor(), tracked_[i]);
    return is_list_of_tensors(i) ? check_tensors(*held, i) : Result<void>();
  }));
  ETSTREAM_TRY(
      for_each(items_of<std::int32_t>(method_, known_.execution_plan.inputs),
               [&](std::int32_t input) { tracked(input).has_no_data = tracked(input).is_empty = false; }));
  return for_each(items_of<std::int32_t>(method_, known_.execution_plan.outputs),
                  [&](std::int32_t output) { tracked(output).has_no_data = false; });
}

/// Checks the items of `list`, which is value `own`.
Result<void> MethodCalls::check_tensors(const pte::Held& list, std::uint32_t own) {
  const bool may_be_null = tracked_[own].kind == pte::ValueKind::kOptionalTensorList;
  const Kinds taken = kinds_taken(may_be_null ? Parameter::kOptionalTensor : Parameter::kTensor);
  return for_each(items_of<std::int32_t>(list, *list.items()), [&](std::int32_t item) {
    if (item == -1) return;  // which only a list of optional tensors has
    if (std::cmp_greater_equal(item, own)) {
      error(list, text("{} of values before {}, the list's own", list.items()->full_name(), own),
            text("{}", item));
    } else if (const Kinds held = kinds(tracked(item).kind); (held & taken) == 0) {
      error(list, text("{} of tensors", list.items()->full_name()), name_of_kinds(held));
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
  const TrackedValue& own = tracked_[static_cast<std::size_t>(value)];
  if (own.kind != pte::ValueKind::kTensor || own.is_replaced) return std::optional<PlannedPlace>();
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
  ETSTREAM_ASSIGN(const auto name, called.vector(known_.operator_.name));
  ETSTREAM_ASSIGN(const auto overload, called.vector(known_.operator_.overload));
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
  if (const auto unchecked = taken_unchecked(callee.name)) {
    add_warning(findings_,
                called.corrupt(text("calls of kernels that check their {}", *unchecked),
                               text("{}, which reads past the end of a tensor by wrong ones", callee.name)));
  }
  return {};
}

}  // namespace etstream
