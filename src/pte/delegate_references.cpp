// SPDX-License-Identifier: BSD-3-Clause
#include "pte/delegate_references.h"

#include <utility>

#include "base/try.h"

namespace etstream {

Result<std::vector<DelegateReference>> read_delegate_references(const pte::Program& program) {
  std::vector<DelegateReference> out;
  ETSTREAM_ASSIGN(const auto methods, program.methods());
  for (std::uint32_t i = 0; i < methods.size(); ++i) {
    ETSTREAM_ASSIGN(const pte::Method method, methods.at(i));
    ETSTREAM_ASSIGN(const auto delegates, method.delegates());
    for (std::uint32_t j = 0; j < delegates.size(); ++j) {
      ETSTREAM_ASSIGN(const pte::Delegate delegate, delegates.at(j));
      ETSTREAM_ASSIGN(auto id, delegate.id());
      ETSTREAM_ASSIGN(const auto data, delegate.data());
      if (!data) continue;
      ETSTREAM_ASSIGN(const bool in_segment, data->is_in_segment());
      ETSTREAM_ASSIGN(const std::uint32_t index, data->index());
      out.push_back({data->position(), i, j, std::move(id).value_or(""), in_segment, index});
    }
  }
  return out;
}

}  // namespace etstream
