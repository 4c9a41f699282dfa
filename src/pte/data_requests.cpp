// SPDX-License-Identifier: BSD-3-Clause
#include "pte/data_requests.h"

#include <set>
#include <span>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "io/file_budget.h"
#include "pte/backend_payload.h"
#include "pte/delegate_references.h"
#include "pte/program_model.h"
#include "pte/program_tensors.h"
#include "pte/xnnpack_payload.h"

namespace etstream {
namespace {

/// "method 'forward', delegate 0 (XnnpackBackend)"
std::string describe(std::span<const std::string> methods, const DelegateReference& reference) {
  return text("method {}, delegate {} ({})", quote(methods[reference.method]), reference.delegate,
              printable(reference.backend));
}

class RequestReader {
 public:
  explicit RequestReader(const pte::Program& program) : program_(program) {}

  Result<DataRequests> run() {
    ETSTREAM_ASSIGN(const auto names, program_.method_names());
    for (const std::string& name : names) methods_.push_back(text("method {}", quote(name)));
    ETSTREAM_ASSIGN(auto named_data, read_named_data(program_));
    for (pte::NamedPayload& named : named_data) {
      out_.named_data.try_emplace(std::move(named.key), std::move(named.data));
    }
    ETSTREAM_TRY(read_tensor_requests());
    ETSTREAM_TRY(read_delegate_requests());
    return std::move(out_);
  }

 private:
  Result<void> read_tensor_requests() {
    ETSTREAM_ASSIGN(const auto tensors, read_tensors(program_));
    std::set<std::pair<std::uint32_t, std::string_view>> seen;  // constants by method and key
    for (const ProgramTensor& tensor : tensors) {
      if (!tensor.is_external) continue;
      ETSTREAM_ASSIGN(const pte::Tensor table, program_.tensor_at(tensor.position));
      ETSTREAM_ASSIGN(TensorLayout layout, table.layout());
      const bool is_first = tensor.is_planned || seen.insert({tensor.method, tensor.name}).second;
      out_.tensors.push_back(
          {tensor.name, methods_[tensor.method], std::move(layout), tensor.is_planned, is_first});
    }
    return {};
  }

  Result<void> read_delegate_requests() {
    ETSTREAM_ASSIGN(const auto references, read_delegate_references(program_));
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen;  // data by its offset and size
    std::uint64_t total = 0;
    for (const DelegateReference& reference : references) {
      ETSTREAM_ASSIGN(ByteSource data,
                      program_.delegate_data(reference.position, reference.in_segment, reference.index));
      if (!seen.insert({data.offset_in(program_.file()).value_or(0), data.size()}).second) continue;
      // Segments that lie over each other would have the same bytes read over and over.
      total += data.size();
      if (total > program_.file().size()) {
        return program_.view().corrupt(reference.position, "data of delegates that is apart from each other",
                                       "data over other data");
      }
      ETSTREAM_TRY(add_delegate_requests(program_, reference, std::move(data), out_));
    }
    return {};
  }

  const pte::Program& program_;
  std::vector<std::string> methods_;
  DataRequests out_;
};

Result<void> add_xnnpack_requests(const std::string& file, const std::string& asker, ByteSource data,
                                  DataRequests& out) {
  auto constants = read_xnnpack_constants(data, text("{}: {}", file, asker));
  if (constants) {
    for (XnnpackConstant& constant : *constants) {
      out.delegates.push_back({std::move(constant.key), asker, constant.size, true});
    }
    return {};
  }
  const ErrorCode code = constants.error().code;
  if (code != ErrorCode::kCorrupt && code != ErrorCode::kTooLarge) return std::move(constants).error();
  out.errors.push_back(std::move(constants).error());
  out.others.push_back(std::move(data));
  return {};
}

}  // namespace

Result<void> add_delegate_requests(const pte::Program& program, const DelegateReference& reference,
                                   ByteSource data, DataRequests& out) {
  ETSTREAM_ASSIGN(const auto methods, program.method_names());
  const std::string asker = describe(methods, reference);
  if (reference.backend == kXnnpackBackend) {
    return add_xnnpack_requests(program.name(), asker, std::move(data), out);
  }
  auto payload = read_backend_payload(reference.backend, data, text("{}: {}", program.name(), asker));
  if (!payload) {
    if (payload.error().code != ErrorCode::kCorrupt) return std::move(payload).error();
    out.errors.push_back(std::move(payload).error());
  } else if (*payload) {
    for (NamedDataRequest& request : (*payload)->requests) {
      out.delegates.push_back({std::move(request.key), asker, request.size});
    }
    return {};
  }
  out.others.push_back(std::move(data));
  return {};
}

Result<DataRequests> read_data_requests(const pte::Program& program) { return RequestReader(program).run(); }

std::vector<std::string> external_keys(const DataRequests& requests) {
  std::set<std::string> keys;
  for (const TensorRequest& request : requests.tensors) keys.insert(request.key);
  for (const DelegateRequest& request : requests.delegates) {
    if (!requests.named_data.contains(request.key)) keys.insert(request.key);
  }
  return {keys.begin(), keys.end()};
}

Result<std::vector<RecognisedDelegate>> read_recognised_delegates(const ProgramFile& program) {
  const pte::Program& model = program.model();
  ETSTREAM_ASSIGN(const auto names, model.method_names());
  ETSTREAM_ASSIGN(const auto references, read_delegate_references(model));
  std::set<std::pair<bool, std::uint32_t>> seen;  // data, by its place
  std::vector<RecognisedDelegate> out;
  FileBudget budget(model.file());
  for (const DelegateReference& reference : references) {
    if (!seen.insert({reference.in_segment, reference.index}).second) continue;
    ETSTREAM_ASSIGN(const ByteSource data,
                    model.delegate_data(reference.position, reference.in_segment, reference.index));
    ETSTREAM_TRY(budget.spend(data.size()));
    const std::string asker = describe(names, reference);
    const auto payload = read_backend_payload(reference.backend, data, asker);
    if (!payload && payload.error().code != ErrorCode::kCorrupt) return payload.error();
    if (payload && *payload) out.push_back({asker, (*payload)->what, (*payload)->requests.size()});
  }
  return out;
}

}  // namespace etstream
