// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/backends/backend_payload.h"

#include <algorithm>
#include <array>

#include "core/base/try.h"
#include "formats/pte/backends/ethos_u_payload.h"
#include "formats/pte/backends/payload_header.h"
#include "formats/pte/backends/payload_readers.h"

namespace etstream {
namespace {

struct PayloadFormat {
  std::string_view backend;    // its id
  std::string_view beginning;  // as beginning_of_payloads() returns it
  ReadPayload* read;           // null for a payload that the fields below tell
  std::string_view what = {};
  std::size_t position = 0;  // of the magic
  std::string_view magic = {};
  std::size_t size = 0;  // of the header, in bytes
};

constexpr std::array kPayloadFormats{
    PayloadFormat{kXnnpackBackend, "", read_xnnpack_payload},
    PayloadFormat{"CudaBackend", "", nullptr, "weights by name (ETCUDAFQN)", 0, "ETCUDAFQN", 10},
    PayloadFormat{"CoreMLBackend", "", nullptr, "a reference (CMJR)", 0, "CMJR", 4},
    PayloadFormat{kEthosUBackend, "vela_bin_stream", read_ethos_u_payload},
    PayloadFormat{"MLXBackend", "MLX0 at offset 4", nullptr, "a graph (MLX0)", 4, "MLX0", 24},
    PayloadFormat{"QnnBackend", "", nullptr, "a context binary (0x5678ABCD)", 0, "\xCD\xAB\x78\x56", 256},
    PayloadFormat{"TOSABackend", "TOSA at offset 4", nullptr, "a graph (TOSA)", 4, "TOSA", 8},
    PayloadFormat{"VgfBackend", "", nullptr, "sections (VGF1)", 0, "VGF1", 128},
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
  if (!format) return std::optional<BackendPayload>();
  if (format->read) return format->read(payload, name);
  ETSTREAM_ASSIGN(const PayloadHeader header, PayloadHeader::read(payload, format->size, name));
  if (!header.has(format->position, format->magic) || header.bytes().size() < format->size) {
    return std::optional<BackendPayload>();
  }
  return std::optional(BackendPayload{.what = std::string(format->what), .tells_requests = false});
}

std::string_view beginning_of_payloads(std::string_view backend) {
  const PayloadFormat* format = find_format(backend);
  return format ? format->beginning : std::string_view();
}

}  // namespace etstream
