// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>

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

}  // namespace etstream
