// SPDX-License-Identifier: BSD-3-Clause
//
// The readers of payloads, one a format. Each is as read_backend_payload() describes it.
#pragma once

#include <optional>
#include <string>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "formats/pte/backends/backend_payload.h"

namespace etstream {

using ReadPayload = Result<std::optional<BackendPayload>>(const ByteSource& payload, const std::string& name);

/// Reads a stream of blocks: ethos_u_payload.h.
[[nodiscard]] ReadPayload read_ethos_u_payload;

/// Reads a graph behind a header: VH00 at 4, u16 length, u32 offset and u32 size of the graph, u32 offset and
/// u64 size of the data behind it (backends/vulkan/runtime/VulkanDelegateHeader.cpp of ExecuTorch 1.5.1).
/// WebGPU's runtime takes the same payloads under the same id
/// (backends/webgpu/runtime/WebGPUDelegateHeader.cpp).
[[nodiscard]] ReadPayload read_vulkan_payload;

/// Reads a graph, and the constants behind it: xnnpack_payload.h.
[[nodiscard]] ReadPayload read_xnnpack_payload;

}  // namespace etstream
