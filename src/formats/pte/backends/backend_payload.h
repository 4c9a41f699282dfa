// SPDX-License-Identifier: BSD-3-Clause
//
// The data of delegates of CUDA's, Vulkan's and Ethos-U's backends, as far as it says which named data it
// takes.
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

/// What a payload of the backend with this id is: CUDA's weights by name, a graph of Vulkan, a stream of
/// blocks for Ethos-U. None for other backends, and for payloads that begin in another way. `name` is what
/// messages call it. Memory: that of the keys. Errors: kCorrupt, naming offset, expected and found; kIo.
[[nodiscard]] Result<std::optional<BackendPayload>> read_backend_payload(std::string_view backend,
                                                                         const ByteSource& payload,
                                                                         const std::string& name);

}  // namespace etstream
