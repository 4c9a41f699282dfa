// SPDX-License-Identifier: BSD-3-Clause
//
// Fuzz target: any bytes are verified as a file of any kind. A file that passes can be inspected and read.
#include <cstdint>
#include <span>

#include "etstream/bundled_program.h"
#include "etstream/inspect.h"
#include "etstream/tensor_data.h"
#include "etstream/verify.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = etstream::ByteSource::memory(std::as_bytes(std::span(data, size)));
  const auto findings = etstream::verify(file);
  if (!findings || !findings->ok()) return 0;
  const auto inspection = etstream::inspect(file);
  // An exception is a file with so many lists that they are not followed.
  require(inspection || inspection.error().code == etstream::ErrorCode::kTooLarge,
          "what verifies can be inspected");
  if (const auto bundle = etstream::BundledProgramFile::open(file)) {
    require(bundle->read().has_value(), "what verifies can be read");
  }
  if (const auto weights = etstream::TensorDataFile::open(file)) {
    require(weights->entries().has_value(), "what verifies can be listed");
  }
  return 0;
}
