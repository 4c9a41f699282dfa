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

/// Reads CUDA's weights by name: a magic, the key of a library, or of one for each kind of processor, and for
/// each weight its name, the key of its storage and the way to read it
/// (backends/cuda/runtime/cuda_weight_cache.cpp and backends/cuda/cuda_weights.py of ExecuTorch, September
/// 2026).
[[nodiscard]] ReadPayload read_cuda_payload;

/// Reads a folder of files: their bytes, then JSON with its characters in reverse, so that it is read from
/// the payload's end: names, places and which folder has which
/// (backends/apple/coreml/runtime/inmemoryfs/inmemory_filesystem.cpp of ExecuTorch 1.5.1). Or CMJR and JSON
/// with the key of such a folder (backends/apple/coreml/runtime/delegate/coreml_backend_delegate.mm).
[[nodiscard]] ReadPayload read_coreml_payload;

/// Reads a stream of blocks: ethos_u_payload.h.
[[nodiscard]] ReadPayload read_ethos_u_payload;

/// Reads a graph behind a header of 24 bytes: MLX0 at 4, u64 offset and u64 size of the data behind the graph
/// (backends/mlx/serialization/mlx_graph_serialize.py and MLXLoader.cpp.tmpl of ExecuTorch 1.5.1).
[[nodiscard]] ReadPayload read_mlx_payload;

/// Reads the header of 256 bytes around a context binary of Qualcomm's: u32 magic, i64 signature, u64 size
/// (backends/qualcomm/runtime/backends/QnnCustomProtocol.h of ExecuTorch 1.5.1).
[[nodiscard]] ReadPayload read_qnn_payload;

/// Reads a graph of TOSA, which Arm's backend writes as it is (backends/arm/tosa/backend.py of ExecuTorch
/// 1.5.1; tosa.fbs of TOSA 1.0).
[[nodiscard]] ReadPayload read_tosa_payload;

/// Reads the header of 128 bytes of Arm's ML SDK for Vulkan: VGF1, or an older magic, versions, and the
/// places of four sections (src/header.hpp and src/decoder.cpp of its VGF library 0.10).
[[nodiscard]] ReadPayload read_vgf_payload;

/// Reads a graph behind a header: VH00 at 4, u16 length, u32 offset and u32 size of the graph, u32 offset and
/// u64 size of the data behind it (backends/vulkan/runtime/VulkanDelegateHeader.cpp of ExecuTorch 1.5.1).
/// WebGPU's runtime takes the same payloads under the same id
/// (backends/webgpu/runtime/WebGPUDelegateHeader.cpp).
[[nodiscard]] ReadPayload read_vulkan_payload;

/// Reads a graph, and the constants behind it: xnnpack_payload.h.
[[nodiscard]] ReadPayload read_xnnpack_payload;

}  // namespace etstream
