// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/schema_names.h"

#include <flatbuffers/reflection.h>

#include <string_view>
#include <vector>

#include "core/base/repeated.h"
#include "core/base/text.h"
#include "core/base/try.h"

namespace etstream {
namespace {

template <class Declared>
using List = flatbuffers::Vector<flatbuffers::Offset<Declared>>;

std::string_view name_of(const reflection::KeyValue& attribute) { return attribute.key()->string_view(); }

template <class Declared>
std::string_view name_of(const Declared& declared) {
  return declared.name()->string_view();
}

/// Checks that the names in all of the lists, which `where` declares, are different. A list may be null.
template <class... Declared>
Result<void> check_lists(std::string_view where, const List<Declared>*... lists) {
  std::vector<std::string_view> names;
  const auto add = [&](const auto* list) {
    if (list == nullptr) return;
    for (const auto* declared : *list) names.push_back(name_of(*declared));
  };
  (add(lists), ...);
  const auto repeated = first_repeated(names);
  if (!repeated) return {};
  return make_error(ErrorCode::kCorrupt, "schema: {} declares {} twice", where, quote(*repeated));
}

template <class Declared>
Result<void> check_attributes(const Declared& declared) {
  // Values of enums have attributes since FlatBuffers 23.
  if constexpr (requires { declared.attributes(); }) {
    return check_lists(name_of(declared), declared.attributes());
  }
  return {};
}

/// Checks the attributes and the members of each in the list, and the attributes of these members.
template <class Declared, class Members>
Result<void> check_each(const List<Declared>* list, Members members_of) {
  if (list == nullptr) return {};
  for (const auto* declared : *list) {
    const auto* const members = (declared->*members_of)();
    ETSTREAM_TRY(check_attributes(*declared));
    ETSTREAM_TRY(check_lists(name_of(*declared), members));
    if (members == nullptr) continue;
    for (const auto* member : *members) ETSTREAM_TRY(check_attributes(*member));
  }
  return {};
}

}  // namespace

Result<void> check_names(const reflection::Schema& schema) {
  ETSTREAM_TRY(check_lists("it", schema.objects(), schema.enums()));
  ETSTREAM_TRY(check_lists("it", schema.services()));
  ETSTREAM_TRY(check_each(schema.objects(), &reflection::Object::fields));
  ETSTREAM_TRY(check_each(schema.enums(), &reflection::Enum::values));
  return check_each(schema.services(), &reflection::Service::calls);
}

}  // namespace etstream
