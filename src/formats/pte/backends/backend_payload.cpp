// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/backends/backend_payload.h"

#include <algorithm>
#include <array>

#include "formats/pte/backends/ethos_u_payload.h"
#include "formats/pte/backends/payload_readers.h"

namespace etstream {
namespace {

struct PayloadFormat {
  std::string_view backend;    // its id
  std::string_view beginning;  // as beginning_of_payloads() returns it
  ReadPayload* read;
};

constexpr std::array kPayloadFormats{
    PayloadFormat{kXnnpackBackend, "", read_xnnpack_payload},
    PayloadFormat{"CudaBackend", "", read_cuda_payload},
    PayloadFormat{"CoreMLBackend", "", read_coreml_payload},
    PayloadFormat{kEthosUBackend, "vela_bin_stream", read_ethos_u_payload},
    PayloadFormat{"MLXBackend", "MLX0 at offset 4", read_mlx_payload},
    PayloadFormat{"QnnBackend", "", read_qnn_payload},
    PayloadFormat{"TOSABackend", "TOSA at offset 4", read_tosa_payload},
    PayloadFormat{"VgfBackend", "VGF1 and has version 0 at offset 8", read_vgf_payload},
    PayloadFormat{"VulkanBackend", "VH00 at offset 4", read_vulkan_payload},
};

const PayloadFormat* find_format(std::string_view backend) {
  const auto* const found = std::ranges::find(kPayloadFormats, backend, &PayloadFormat::backend);
  return found == kPayloadFormats.end() ? nullptr : found;
}

}  // namespace

Result<std::optional<BackendPayload>> read_backend_payload(std::string_view backend,
                                                           const ByteSource& payload,
                                                           const std::string& name) {
  const PayloadFormat* format = find_format(backend);
  return format ? format->read(payload, name) : std::optional<BackendPayload>();
}

std::string_view beginning_of_payloads(std::string_view backend) {
  const PayloadFormat* format = find_format(backend);
  return format ? format->beginning : std::string_view();
}

}  // namespace etstream
