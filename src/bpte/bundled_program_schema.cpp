// SPDX-License-Identifier: BSD-3-Clause
#include "bpte/bundled_program_schema.h"

#include "bundled_program_bfbs_generated.h"
#include "flatbuffer/embedded_schema.h"

namespace etstream {

Result<const Schema*> bundled_program_schema() {
  return embedded_schema<bundled_program::BundledProgramBinarySchema>();
}

PackOptions bundle_pack_options(const WriterVersion& writer) {
  PackOptions options;
  // Until 1.3 bundles went through JSON and flatc.
  if (writer.release <= ExecutorchRelease::k1_3) options.order = ObjectOrder::kFlatc;
  options.vtables = writer.vtables;
  return options;
}

}  // namespace etstream
