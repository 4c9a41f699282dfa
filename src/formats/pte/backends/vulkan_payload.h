// SPDX-License-Identifier: BSD-3-Clause
//
// The constants of the graphs that Vulkan's backend makes of parts of a program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "formats/pte/backends/payload_constant.h"

namespace etstream {

/// The backend's id, which WebGPU's has too.
inline constexpr std::string_view kVulkanBackend = "VulkanBackend";

/// Reads the constants that `payload` asks for or holds, with the layouts of the tensors that they are, in
/// the payload's order. `name` is what messages call it. Memory: that of the keys, and 300 bytes a constant.
/// Time: in proportion to the graph's size. Errors: kCorrupt, naming offset, expected and found, also for
/// another beginning; kTooLarge for a key over 1 MiB; kIo.
[[nodiscard]] Result<std::vector<PayloadConstant>> read_vulkan_constants(const ByteSource& payload,
                                                                         const std::string& name);

}  // namespace etstream
