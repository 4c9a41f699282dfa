// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/runtime_checks.h"

#include <utility>

#include "core/base/findings.h"
#include "core/base/try.h"
#include "formats/pte/program_model.h"
#include "runtime_checks/call_verify.h"

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
  return without_exceptions(
      [&] { return note_corrupt(verify_methods(program.model(), findings), findings); });
}

}  // namespace etstream
