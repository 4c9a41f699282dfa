// SPDX-License-Identifier: BSD-3-Clause
//
// Profiles can be read here, but not made: making one needs what Linux tells about other processes.
#include "core/base/text.h"
#include "etstream/profile.h"
#include "etstream/profiled_phase.h"

namespace etstream {

Result<CommandEnd> run_profiled(const std::vector<std::string>& /*command*/, Profile& profile,
                                const ProfileOptions& /*options*/) {
  profile = {};
  return make_error(ErrorCode::kUnsupported,
                    "a command is profiled on Linux alone, whose kernel tells high-water marks of memory; "
                    "here `/usr/bin/time -l` tells the largest of a whole process");
}

Result<CommandEnd> run_in_phase(const std::vector<std::string>& /*command*/, const std::string& /*name*/) {
  return make_error(ErrorCode::kUnsupported, "a command is profiled on Linux alone; run it without a phase");
}

// Phases do nothing here, as there is no profile for them.
ProfiledPhase::ProfiledPhase(std::string_view /*name*/) noexcept {}
ProfiledPhase::~ProfiledPhase() = default;

}  // namespace etstream
