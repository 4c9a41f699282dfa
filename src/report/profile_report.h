// SPDX-License-Identifier: BSD-3-Clause
//
// What `etstream profile` writes of a profile: JSON, a page for a browser, and a trace for Perfetto and
// Chrome.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "etstream/profile.h"

namespace etstream {

[[nodiscard]] nlohmann::ordered_json profile_to_json(const Profile& profile);

/// One file that needs no other, nor a network.
[[nodiscard]] std::string profile_page(const Profile& profile);
/// Of the Trace Event Format: phases as slices, memory as counters.
[[nodiscard]] nlohmann::ordered_json profile_trace(const Profile& profile);

}  // namespace etstream
