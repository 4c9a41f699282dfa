// SPDX-License-Identifier: BSD-3-Clause
//
// Fuzz target: any bytes are inspected, asked for their memory budget, searched for duplicates and compared
// with themselves, verified or not. The first pieces are found by their paths.
#include <algorithm>
#include <cstdint>
#include <span>

#include "etstream/diff.h"
#include "etstream/inspect.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = etstream::ByteSource::memory(std::as_bytes(std::span(data, size)));
  if (const auto found = etstream::inspect(file)) {
    for (std::size_t i = 0; i < std::min<std::size_t>(found->parts.size(), 4); ++i) {
      const auto piece = etstream::find_piece(file, found->parts[i].path);
      require(!piece || piece->size() == found->parts[i].size, "a path stands for one piece");
    }
  }
  static_cast<void>(etstream::read_memory_budget(file));
  static_cast<void>(etstream::find_duplicates(file));
  if (const auto difference = etstream::diff(file, file)) {
    require(difference->same_bytes, "a file is the same as itself");
  }
  return 0;
}
