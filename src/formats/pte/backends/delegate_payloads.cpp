// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/delegate_payloads.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "formats/pte/backends/backend_payload.h"
#include "formats/pte/backends/data_requests.h"
#include "formats/pte/program_model.h"

namespace etstream {

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
