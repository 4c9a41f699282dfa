// SPDX-License-Identifier: BSD-3-Clause
//
// Fuzz target: any bytes as a flatbuffer that is made JSON, and as JSON that is made a flatbuffer. What was
// compiled can be shown.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "etstream/flatbuffer_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto schema = etstream::FlatbufferText::open(ETSTREAM_FUZZ_SCHEMA).value();
  const auto bytes = std::as_bytes(std::span(data, size));
  for (const bool prefixed : {false, true}) {
    static_cast<void>(schema.decompile(bytes, {.identifier = false, .size_prefixed = prefixed}));
  }
  const auto flatbuffer = schema.compile(std::string_view(reinterpret_cast<const char*>(data), size));
  if (flatbuffer && !schema.decompile(*flatbuffer)) std::abort();
  return 0;
}
