// SPDX-License-Identifier: BSD-3-Clause
//
// The named data that delegates of CUDA's, Vulkan's and Ethos-U's backends take, as far as their own data
// names it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "formats/pte/backends/xnnpack_payload.h"

namespace etstream {

struct BackendPayload {
  std::string what;  // "weights by name (ETCUDAFQN3)"
  std::vector<NamedDataRequest> requests;
};

/// Recognises a payload of the backend with this id: CUDA's weights by name, a graph of Vulkan, a stream of
/// blocks for Ethos-U. Returns nothing for other backends, and for payloads that begin in another way. `name`
/// is what messages call it. Memory: that of the keys. Errors: kCorrupt, naming offset, expected and found;
/// kIo.
[[nodiscard]] Result<std::optional<BackendPayload>> read_backend_payload(std::string_view backend,
                                                                         const ByteSource& payload,
                                                                         const std::string& name);

}  // namespace etstream
