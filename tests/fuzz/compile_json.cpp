// SPDX-License-Identifier: BSD-3-Clause
//
// Fuzz target: any text as JSON that is compiled to a flatbuffer. The result can be shown as JSON.
#include <cstdint>
#include <string_view>

#include "etstream/flatbuffer_text.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto schema = etstream::FlatbufferText::open(ETSTREAM_FUZZ_SCHEMA).value();
  const auto flatbuffer = schema.compile(std::string_view(reinterpret_cast<const char*>(data), size));
  require(!flatbuffer || schema.decompile(*flatbuffer), "what is compiled can be shown");
  return 0;
}
