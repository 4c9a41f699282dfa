// SPDX-License-Identifier: BSD-3-Clause
//
// Where a program's delegates have their data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etstream/result.h"
#include "pte/program_model.h"

namespace etstream {

struct DelegateReference {
  std::uint64_t position = 0;  // of the reference's table in the file
  std::uint32_t method = 0;    // its number
  std::uint32_t delegate = 0;  // an index in the method's delegates
  std::string backend;
  bool in_segment = false;  // or in the flatbuffer
  std::uint32_t index = 0;  // of the segment, or of the flatbuffer's entry; not checked
};

/// Those of all methods in file order. Errors: those of FlatbufferView.
[[nodiscard]] Result<std::vector<DelegateReference>> read_delegate_references(const pte::Program& program);

}  // namespace etstream
