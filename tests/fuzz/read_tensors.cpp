// SPDX-License-Identifier: BSD-3-Clause
//
// Fuzz target: any bytes as a .npy and as a safetensors file.
#include <cstdint>
#include <span>

#include "format/npy.h"
#include "format/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = etstream::ByteSource::memory(std::as_bytes(std::span(data, size)));
  static_cast<void>(etstream::open_npy(file));
  static_cast<void>(etstream::open_safetensors(file));
  return 0;
}
