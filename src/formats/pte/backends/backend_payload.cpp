// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/backends/backend_payload.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "etstream/delegate_payloads.h"
#include "formats/pte/program_model.h"

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

Result<std::vector<DelegatePayload>> read_delegate_payloads(const ProgramFile& program) {
  return without_exceptions([&]() -> Result<std::vector<DelegatePayload>> {
    const pte::Program& model = program.model();
    ETSTREAM_ASSIGN(const auto names, model.method_names());
    ETSTREAM_ASSIGN(const auto references, read_delegate_references(model));
    std::set<std::pair<bool, std::uint32_t>> seen;  // data, by its place
    std::vector<DelegatePayload> out;
    FileBudget budget(model.file());
    for (const DelegateReference& reference : references) {
      if (!seen.insert({reference.in_segment, reference.index}).second) continue;
      DelegatePayload& payload = out.emplace_back();
      payload.method = names[reference.method];
      payload.delegate = reference.delegate;
      payload.backend = reference.backend;
      ETSTREAM_ASSIGN(payload.data, model.delegate_data(reference));
      ETSTREAM_TRY(budget.spend(payload.data.size()));
      auto read = read_backend_payload(reference.backend, payload.data, describe(names, reference));
      const bool is_damaged =
          !read && (read.error().code == ErrorCode::kCorrupt || read.error().code == ErrorCode::kTooLarge);
      if (is_damaged) continue;
      ETSTREAM_ASSIGN(auto known, std::move(read));
      if (!known) continue;
      payload.format = std::move(known->what);
      payload.parts = std::move(known->parts);
      payload.facts = std::move(known->facts);
      payload.keys = known->requests.size();
    }
    return out;
  });
}

Result<ByteSource> part_of(const DelegatePayload& payload, const std::string& name) {
  return without_exceptions([&]() -> Result<ByteSource> {
    const auto found = std::ranges::find(payload.parts, name, &PayloadPart::name);
    if (found != payload.parts.end()) return payload.data.slice(found->offset, found->size);
    return make_error(ErrorCode::kNotFound, "the data of method {}, delegate {} ({}) has no part {}; {}",
                      quote(payload.method), payload.delegate, printable(payload.backend), quote(name),
                      payload.parts.empty()
                          ? "its parts are not known"
                          : text("it has {}", names_text(payload.parts, &PayloadPart::name)));
  });
}

}  // namespace etstream
