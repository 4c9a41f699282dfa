// SPDX-License-Identifier: BSD-3-Clause
//
// The payloads of backends, as far as their own headers tell what they are: one table of formats,
// with a reader for some of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/delegate_payloads.h"
#include "etstream/result.h"
#include "formats/pte/backends/xnnpack_payload.h"

namespace etstream {

struct BackendPayload {
  std::string what;  // "a graph (VH00)"
  std::vector<PayloadPart> parts = {};
  std::vector<PayloadFact> facts = {};
  std::vector<NamedDataRequest> requests = {};
  bool tells_requests = true;  // or it may have any
};

/// Reads a payload of the backend with this id. Returns nothing for unknown backends, and for payloads that
/// begin in another way. `name` is what messages call it. Memory: that of the parts, facts and keys. Errors:
/// kCorrupt, naming offset, expected and found; kTooLarge for names over 1 MiB; kIo.
[[nodiscard]] Result<std::optional<BackendPayload>> read_backend_payload(std::string_view backend,
                                                                         const ByteSource& payload,
                                                                         const std::string& name);

/// Returns the beginning that all payloads of the backend have: "VH00 at offset 4". Empty for unknown
/// backends, and for those that take payloads without a known beginning too.
[[nodiscard]] std::string_view beginning_of_payloads(std::string_view backend);

}  // namespace etstream
