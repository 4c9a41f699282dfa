// SPDX-License-Identifier: BSD-3-Clause
//
// Fuzz target: any bytes are inspected, asked for their memory budget, searched for duplicates and compared
// with themselves, verified or not.
#include <cstdint>
#include <span>

#include "etstream/diff.h"
#include "etstream/duplicates.h"
#include "etstream/inspect.h"
#include "etstream/memory_budget.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = etstream::ByteSource::memory(std::as_bytes(std::span(data, size)));
  static_cast<void>(etstream::inspect(file));
  static_cast<void>(etstream::read_memory_budget(file));
  static_cast<void>(etstream::find_duplicates(file));
  if (const auto difference = etstream::diff(file, file)) {
    require(difference->same_bytes, "a file is the same as itself");
  }
  return 0;
}
