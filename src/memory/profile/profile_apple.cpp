// SPDX-License-Identifier: BSD-3-Clause
//
// Profiles are read here, not made: that takes what Linux tells of other processes.
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

// There is no profile that could be told of them.
ProfiledPhase::ProfiledPhase(std::string_view /*name*/) noexcept {}
ProfiledPhase::~ProfiledPhase() = default;

}  // namespace etstream
