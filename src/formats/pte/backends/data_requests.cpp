// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/backends/data_requests.h"

#include <set>
#include <span>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "formats/pte/backends/backend_payload.h"
#include "formats/pte/backends/xnnpack_payload.h"
#include "formats/pte/program_model.h"

namespace etstream {
namespace {

Result<void> add_requests_of_tensors(const pte::Program& program, DataRequests& out) {
  ETSTREAM_ASSIGN(const auto methods, program.method_names());
  ETSTREAM_ASSIGN(const auto tensors, read_tensors(program));
  std::set<std::pair<std::uint32_t, std::string_view>> seen;  // constants by method and key
  for (const ProgramTensor& tensor : tensors) {
    if (!tensor.is_external) continue;
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

}  // namespace

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

}  // namespace etstream
