// SPDX-License-Identifier: BSD-3-Clause
//
// Fuzz target: any bytes as a .npy, as a safetensors and as a GGUF file.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "tensor/npy.h"
#include "weights/gguf.h"
#include "weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = etstream::ByteSource::memory(std::as_bytes(std::span(data, size)));
  static_cast<void>(etstream::open_npy(file));
  static_cast<void>(etstream::open_safetensors(file));
  const auto gguf = etstream::open_gguf(file);
  if (!gguf) return 0;
  std::uint64_t bytes = 0;
  for (const etstream::GgufTensor& tensor : gguf->tensors) bytes += tensor.data.size();
  if (bytes > size) std::abort();
  return 0;
}
