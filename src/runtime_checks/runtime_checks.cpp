// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/runtime_checks.h"

#include <utility>

#include "base/try.h"
#include "container/findings.h"
#include "pte/call_verify.h"
#include "pte/program_model.h"

namespace etstream {
namespace {

Result<void> verify_methods(const pte::Program& program, Findings& findings) {
  NamedDataSizes sizes;
  ETSTREAM_ASSIGN(auto named_data, read_named_data(program));
  for (pte::NamedPayload& named : named_data) sizes.try_emplace(std::move(named.key), named.data.size());
  return for_each(program.methods(), [&](const pte::Method& method) {
    return verify_method_calls(program, method, sizes, findings);
  });
}

}  // namespace

Result<void> verify_calls(const ProgramFile& program, Findings& findings) {
  return without_exceptions([&] { return note_corrupt(verify_methods(program.model(), findings), findings); });
}

}  // namespace etstream
