// SPDX-License-Identifier: BSD-3-Clause
//
// Fuzz target: any bytes as a .npy, a GGUF or a safetensors file, by their beginning.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/gguf/gguf.h"
#include "formats/safetensors/safetensors.h"
#include "formats/tensor/npy.h"
#include "require.h"

namespace {

void read_gguf(const etstream::ByteSource& file) {
  const auto gguf = etstream::open_gguf(file);
  if (!gguf) return;
  std::vector<etstream::SourcePlace> places;
  for (const etstream::GgufTensor& tensor : gguf->tensors) places.push_back(tensor.data.place());
  std::ranges::sort(places);
  const auto overlap = [](const auto& one, const auto& next) { return next.begin < one.end; };
  require(std::ranges::adjacent_find(places, overlap) == places.end(), "tensors do not overlap");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = etstream::ByteSource::memory(std::as_bytes(std::span(data, size)));
  const std::string_view begin(reinterpret_cast<const char*>(data), size);
  if (begin.starts_with('G')) {
    read_gguf(file);
  } else if (begin.starts_with('\x93')) {
    static_cast<void>(etstream::open_npy(file));
  } else {
    static_cast<void>(etstream::open_safetensors(file));
  }
  return 0;
}
