// SPDX-License-Identifier: BSD-3-Clause
#include "format/bundled_program_schema.h"

#include "bundled_program_bfbs_generated.h"
#include "schema/embedded_schema.h"

namespace etstream {

Result<const Schema*> bundled_program_schema() {
  return embedded_schema<bundled_program::BundledProgramBinarySchema>();
}

}  // namespace etstream
