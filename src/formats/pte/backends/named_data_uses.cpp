// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/backends/named_data_uses.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "formats/pte/backends/backend_payload.h"
#include "formats/pte/backends/data_requests.h"
#include "formats/pte/backends/xnnpack_payload.h"
#include "formats/pte/program_model.h"

namespace etstream {
namespace {

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
    DelegateUses& delegate = out.emplace_back(DelegateUses{reference.method,
                                                           reference.delegate,
                                                           reference.in_segment,
                                                           reference.index,
                                                           describe(names, reference),
                                                           data,
                                                           {}});
    const auto done = read_uses(reference.backend, data, delegate);
    if (done) continue;
    const bool is_damaged =
        done.error().code == ErrorCode::kCorrupt || done.error().code == ErrorCode::kTooLarge;
    if (!is_damaged) return done.error();
    delegate.without_keys = data;
    delegate.uses.clear();
  }
  return out;
}

}  // namespace etstream
