// SPDX-License-Identifier: BSD-3-Clause
#include "format/bundled_program_schema.h"

#include "bundled_program_bfbs_generated.h"

namespace etstream {

Result<const Schema*> bundled_program_schema() {
  using Binary = bundled_program::BundledProgramBinarySchema;
  static const Result<Schema> kSchema =
      Schema::from_binary(std::as_bytes(std::span(Binary::data(), Binary::size())));
  if (!kSchema) return kSchema.error();
  return &*kSchema;
}

}  // namespace etstream
