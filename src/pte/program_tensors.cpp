// SPDX-License-Identifier: BSD-3-Clause
#include "pte/program_tensors.h"

#include <utility>

#include "base/try.h"

namespace etstream {

Result<std::vector<ProgramTensor>> read_tensors(const pte::Program& program) {
  std::vector<ProgramTensor> out;
  ETSTREAM_ASSIGN(const auto methods, program.methods());
  for (std::uint32_t i = 0; i < methods.size(); ++i) {
    ETSTREAM_ASSIGN(const pte::Method method, methods.at(i));
    ETSTREAM_ASSIGN(const auto values, method.values());
    for (std::uint32_t j = 0; j < values.size(); ++j) {
      ETSTREAM_ASSIGN(const pte::Value value, values.at(j));
      ETSTREAM_ASSIGN(const auto held, value.held());
      if (!held || held->kind() != pte::ValueKind::kTensor) continue;
      ETSTREAM_ASSIGN(pte::Storage storage, held->tensor().storage());
      out.push_back({held->position(), i, storage.index, storage.is_planned,
                     storage.kind == TensorStorage::kExternal, std::move(storage.name),
                     storage.extra_position, storage.has_other_info});
    }
  }
  return out;
}

}  // namespace etstream
