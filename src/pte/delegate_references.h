// SPDX-License-Identifier: BSD-3-Clause
//
// Where a program's delegates have their data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flatbuffer/table_reader.h"

namespace etstream {

struct DelegateReference {
  std::uint64_t position = 0;  // of the reference's table in the file
  std::uint32_t method = 0;    // an index in Program.execution_plan
  std::uint32_t delegate = 0;  // an index in the method's delegates
  std::string backend;
  bool in_segment = false;  // or in the flatbuffer
  std::uint32_t index = 0;  // of the segment, or of the flatbuffer's entry; not checked
};

/// Those of all methods in file order. `root` is the program's root table. Errors: those of FlatbufferView.
[[nodiscard]] Result<std::vector<DelegateReference>> read_delegate_references(const TableReader& root);

/// The table of `reference`. Errors: those of FlatbufferView.
[[nodiscard]] Result<TableReader> table_of(const FlatbufferView& view, const DelegateReference& reference);

}  // namespace etstream
