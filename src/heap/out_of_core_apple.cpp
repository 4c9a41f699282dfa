// SPDX-License-Identifier: BSD-3-Clause
#include "base/text.h"
#include "etstream/out_of_core.h"

namespace etstream {

Result<CommandEnd> run_out_of_core(const std::vector<std::string>& /*command*/,
                                   const OutOfCoreOptions& /*options*/, OutOfCoreUse& /*use*/) {
  return make_error(ErrorCode::kUnsupported,
                    "what a command takes of memory is told on Linux alone; run it without the report");
}

}  // namespace etstream
