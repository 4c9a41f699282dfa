// SPDX-License-Identifier: BSD-3-Clause
//
// Fuzz target: any bytes that are opened as a program, a bundle or tensor data. FlatBuffers' verifier must
// accept what is opened.
#include <cstdint>
#include <span>

#include "bundled_program_generated.h"
#include "etstream/bundled_program.h"
#include "etstream/program.h"
#include "etstream/tensor_data.h"
#include "flat_tensor_generated.h"
#include "program_generated.h"
#include "require.h"

namespace {

template <class Verify>
void require_sound(std::span<const std::uint8_t> bytes, std::uint64_t size, Verify verify) {
  flatbuffers::Verifier verifier(bytes.data(), static_cast<std::size_t>(size));
  require(verify(verifier), "what is opened, FlatBuffers accepts");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(data, size);
  const auto file = etstream::ByteSource::memory(std::as_bytes(bytes));
  if (const auto program = etstream::ProgramFile::open(file)) {
    require_sound(bytes, program->flatbuffer_size(),
                  [](auto& v) { return etstream::program::VerifyProgramBuffer(v); });
  }
  const auto bundle = etstream::BundledProgramFile::open(file);
  if (bundle && bundle->format() == etstream::BundleFormat::kBp08) {
    require_sound(bytes, size,
                  [](auto& v) { return etstream::bundled_program::VerifyBundledProgramBuffer(v); });
  }
  if (const auto weights = etstream::TensorDataFile::open(file)) {
    require_sound(bytes, weights->flatbuffer_size(),
                  [](auto& v) { return etstream::flat_tensor::VerifyFlatTensorBuffer(v); });
  }
  return 0;
}
