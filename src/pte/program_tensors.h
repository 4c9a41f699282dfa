// SPDX-License-Identifier: BSD-3-Clause
//
// A program's tensors: what each gets its data from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "etstream/result.h"
#include "pte/program_model.h"

namespace etstream {

struct ProgramTensor {
  std::uint64_t position = 0;                   // of its table in the file
  std::uint32_t method = 0;                     // its number
  std::uint32_t buffer = 0;                     // among the constants or the mutable data; not checked
  bool is_planned = false;                      // its memory is planned: it has allocation_info
  bool is_external = false;                     // its data is in another file
  std::string name;                             // fully qualified, or empty
  std::optional<std::uint64_t> extra_position;  // of its extra_tensor_info
  bool has_other_info = false;                  // there, besides where its data is and under what name

  /// Of the constant segment.
  [[nodiscard]] bool is_constant() const noexcept { return buffer != 0 && !is_planned && !is_external; }
  /// Of the mutable data's.
  [[nodiscard]] bool has_initial_state() const noexcept { return buffer != 0 && is_planned && !is_external; }
};

/// Those of all methods in file order. Memory: 80 bytes a tensor.
/// Errors: those of FlatbufferView.
[[nodiscard]] Result<std::vector<ProgramTensor>> read_tensors(const pte::Program& program);

}  // namespace etstream
