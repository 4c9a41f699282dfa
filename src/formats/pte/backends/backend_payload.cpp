// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/backends/backend_payload.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <span>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "etstream/program.h"
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

bool is_of_damage(const Error& error) {
  return error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kTooLarge;
}

Result<void> add_requests_of_tensors(const pte::Program& program, DataRequests& out) {
  ETSTREAM_ASSIGN(const auto methods, program.method_names());
  ETSTREAM_ASSIGN(const auto tensors, read_tensors(program));
  std::set<std::pair<std::uint32_t, std::string_view>> seen;  // constants by method and key
  for (const ProgramTensor& tensor : tensors) {
    if (tensor.kind != TensorStorage::kExternal) continue;
    ETSTREAM_ASSIGN(const pte::Tensor table, program.tensor_at(tensor.position));
    ETSTREAM_ASSIGN(TensorLayout layout, table.layout());
    const bool is_first = tensor.is_planned || seen.insert({tensor.method, tensor.name}).second;
    out.tensors.push_back({tensor.name, text("method {}", quote(methods[tensor.method])), std::move(layout),
                           tensor.is_planned, is_first});
  }
  return {};
}

Result<void> add_requests_of_delegates(const pte::Program& program, DataRequests& out) {
  ETSTREAM_ASSIGN(const auto references, read_delegate_references(program));
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;  // data by its offset and size
  std::uint64_t total = 0;
  for (const DelegateReference& reference : references) {
    ETSTREAM_ASSIGN(ByteSource data, program.delegate_data(reference));
    if (!seen.insert({data.offset_in(program.file()).value_or(0), data.size()}).second) continue;
    // Segments that overlap would have the same bytes read over and over.
    total += data.size();
    if (total > program.file().size()) {
      return program.view().corrupt(reference.position, "data of delegates that is apart from each other",
                                    "data over other data");
    }
    ETSTREAM_TRY(add_delegate_requests(program, reference, std::move(data), out));
  }
  return {};
}

/// Returns the payload without the keys, which may lie in any order and overlap.
Result<ByteSource> leave_out_keys(const ByteSource& payload, const std::vector<PayloadConstant>& constants) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  ranges.reserve(constants.size());
  for (const PayloadConstant& constant : constants) {
    ranges.emplace_back(constant.position, constant.position + constant.key.size());
  }
  std::ranges::sort(ranges);
  std::vector<ByteSource> parts;
  std::uint64_t end = 0;
  for (const auto& [from, to] : ranges) {
    if (from > end) {
      ETSTREAM_ASSIGN(parts.emplace_back(), payload.slice(end, from - end));
    }
    end = std::max(end, to);
  }
  ETSTREAM_ASSIGN(parts.emplace_back(), payload.slice(end, payload.size() - end));
  return ByteSource::concatenation(std::move(parts));
}

Result<void> read_xnnpack(const ByteSource& data, DelegateUses& out) {
  ETSTREAM_ASSIGN(auto found, read_xnnpack_uses(data, out.asker));
  std::erase_if(found.constants, [](const PayloadConstant& constant) { return constant.key.empty(); });
  ETSTREAM_ASSIGN(out.without_keys, leave_out_keys(data, found.constants));
  for (PayloadConstant& constant : found.constants) {
    out.uses.push_back({std::move(constant.key), constant.size, std::move(constant.use),
                        std::move(constant.layout), constant.is_of_nibbles});
  }
  return {};
}

Result<void> read_uses(const std::string& backend, const ByteSource& data, DelegateUses& out) {
  if (backend == kXnnpackBackend) return read_xnnpack(data, out);
  ETSTREAM_ASSIGN(auto payload, read_backend_payload(backend, data, out.asker));
  if (!payload) return {};
  for (NamedDataRequest& request : payload->requests)
    out.uses.push_back({std::move(request.key), request.size});
  return {};
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
      if (!read && is_of_damage(read.error())) continue;
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

std::string describe(std::span<const std::string> methods, const DelegateReference& reference) {
  return text("method {}, delegate {} ({})", quote(methods[reference.method]), reference.delegate,
              printable(reference.backend));
}

Result<void> add_delegate_requests(const pte::Program& program, const DelegateReference& reference,
                                   ByteSource data, DataRequests& out) {
  ETSTREAM_ASSIGN(const auto methods, program.method_names());
  const std::string asker = describe(methods, reference);
  const bool is_xnnpack = reference.backend == kXnnpackBackend;
  auto payload = read_backend_payload(reference.backend, data, text("{}: {}", program.name(), asker));
  if (payload && *payload && (*payload)->tells_requests) {
    for (NamedDataRequest& request : (*payload)->requests) {
      out.delegates.push_back({std::move(request.key), asker, request.size, is_xnnpack});
    }
    return {};
  }
  if (!payload) {
    const ErrorCode code = payload.error().code;
    const bool is_refused = code == ErrorCode::kCorrupt || (is_xnnpack && code == ErrorCode::kTooLarge);
    if (!is_refused) return std::move(payload).error();
    out.errors.push_back(std::move(payload).error());
  }
  out.others.push_back(std::move(data));
  return {};
}

Result<DataRequests> read_data_requests(const pte::Program& program) {
  DataRequests out;
  ETSTREAM_ASSIGN(auto named_data, read_named_data(program));
  for (pte::NamedPayload& named : named_data) {
    out.named_data.try_emplace(std::move(named.key), std::move(named.data));
  }
  ETSTREAM_TRY(add_requests_of_tensors(program, out));
  ETSTREAM_TRY(add_requests_of_delegates(program, out));
  return out;
}

std::vector<std::string> external_keys(const DataRequests& requests) {
  std::set<std::string> keys;
  for (const TensorRequest& request : requests.tensors) keys.insert(request.key);
  for (const DelegateRequest& request : requests.delegates) {
    if (!requests.named_data.contains(request.key)) keys.insert(request.key);
  }
  return {keys.begin(), keys.end()};
}

Result<std::vector<DelegateUses>> read_named_data_uses(const ProgramFile& program) {
  const pte::Program& model = program.model();
  ETSTREAM_ASSIGN(const auto names, model.method_names());
  ETSTREAM_ASSIGN(const auto references, read_delegate_references(model));
  std::set<std::pair<bool, std::uint32_t>> seen;  // data, by its place
  std::vector<DelegateUses> out;
  FileBudget budget(model.file());
  for (const DelegateReference& reference : references) {
    if (!seen.insert({reference.in_segment, reference.index}).second) continue;
    ETSTREAM_ASSIGN(const ByteSource data, model.delegate_data(reference));
    ETSTREAM_TRY(budget.spend(data.size()));
    DelegateUses& delegate = out.emplace_back(DelegateUses{reference, describe(names, reference), data, {}});
    const auto done = read_uses(reference.backend, data, delegate);
    if (done) continue;
    if (!is_of_damage(done.error())) return done.error();
    delegate.without_keys = data;
    delegate.uses.clear();
  }
  return out;
}

}  // namespace etstream
