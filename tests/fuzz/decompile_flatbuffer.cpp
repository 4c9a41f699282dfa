// SPDX-License-Identifier: BSD-3-Clause
//
// Fuzz target: any bytes as a flatbuffer that is converted to JSON; an odd number of bytes is one with its
// size before it.
#include <cstdint>
#include <span>

#include "etstream/flatbuffer_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto schema = etstream::FlatbufferText::open(ETSTREAM_FUZZ_SCHEMA).value();
  static_cast<void>(schema.decompile(std::as_bytes(std::span(data, size)),
                                     {.identifier = false, .size_prefixed = size % 2 != 0}));
  return 0;
}
