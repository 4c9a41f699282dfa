// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/value_kind.h"

#include <string_view>
#include <utility>

namespace etstream {

std::string name_of_kinds(Kinds set) {
  using enum pte::ValueKind;
  constexpr std::pair<Kinds, std::string_view> kNames[] = {
      {kAnyNumber, "a number"},
      {kinds(kTensor), "a tensor"},
      {kinds(kInt), "an integer"},
      {kinds(kBool), "a boolean"},
      {kinds(kDouble), "a double"},
      {kinds(kString), "a string"},
      {kinds(kIntList), "a list of integers"},
      {kinds(kDoubleList), "a list of doubles"},
      {kinds(kBoolList), "a list of booleans"},
      {kinds(kTensorList), "a list of tensors"},
      {kinds(kOptionalTensorList), "a list of optional tensors"}};
  if (set == kinds(kNull)) return "null";
  std::string out;
  for (const auto& [each, name] : kNames) {
    if ((set & each) != each) continue;
    if (!out.empty()) out += " or ";
    out += name;
    set = static_cast<Kinds>(set & ~each);
  }
  return out.empty() ? "another kind of value" : out;
}

}  // namespace etstream
