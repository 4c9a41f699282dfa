// SPDX-License-Identifier: BSD-3-Clause
//
// Schemas that are compiled in: those of schema/.
#pragma once

#include <span>

#include "etstream/result.h"
#include "flatbuffer/schema.h"

namespace etstream {

/// `Binary` is the class that schema/compile_schema.cpp makes of a schema. The same object at every call.
template <class Binary>
[[nodiscard]] Result<const Schema*> embedded_schema() {
  static const Result<Schema> kSchema =
      Schema::from_binary(std::as_bytes(std::span(Binary::data(), Binary::size())));
  if (!kSchema) return kSchema.error();
  return &*kSchema;
}

}  // namespace etstream
