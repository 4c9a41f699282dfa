// SPDX-License-Identifier: BSD-3-Clause
#include "pte/rewrite/named_data.h"

#include <cstdint>

namespace etstream {

void remove_named_data(EditableProgram& editable, const std::set<std::string>& keys) {
  std::set<std::uint32_t> kept;
  std::set<std::uint32_t> gone;
  for (const EditableProgram::NamedData& named : editable.named_data) {
    (keys.contains(named.key) ? gone : kept).insert(named.segment);
  }
  if (gone.empty()) return;
  std::erase_if(editable.named_data, [&](const auto& named) { return keys.contains(named.key); });
  std::erase_if(editable.order, [&](std::uint32_t i) {
    return gone.contains(i) && !kept.contains(i) && editable.segments[i].label == kNamedDataLabel;
  });
  editable.has_same_named_data = false;
}

}  // namespace etstream
