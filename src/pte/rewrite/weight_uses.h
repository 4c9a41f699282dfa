// SPDX-License-Identifier: BSD-3-Clause
//
// The data in a program, and who asks for it how: what of it could be in a file of its own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/shared_weights.h"
#include "etstream/tensor_layout.h"

namespace etstream {

/// A constant, or a segment, with all that ask for it.
struct WeightUses {
  struct Tensor {
    std::size_t index = 0;  // in EditableProgram::tensors
    std::string name;       // fully qualified, or empty
    TensorLayout layout;
  };

  ByteSource data;
  std::string label;              // for people: "constant 'linear.weight'"
  std::vector<Tensor> tensors;    // of a constant
  std::vector<std::string> keys;  // of named data
  /// Why it stays in the program whatever others have; none where it may go.
  std::optional<KeptBecause> kept;
};

struct ProgramWeights {
  std::vector<WeightUses> weights;     // constants first, then named data, then what can't go
  std::vector<std::string> asked_for;  // keys that the program does not have: its other files'
};

/// Errors: those of read_editable_program(), of splitting its constants and of read_data_requests().
[[nodiscard]] Result<ProgramWeights> read_weight_uses(const ProgramFile& program);

}  // namespace etstream
