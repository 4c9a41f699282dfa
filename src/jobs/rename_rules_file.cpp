// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/rename_rules_file.h"

#include "base/text.h"
#include "etstream/byte_source.h"

namespace etstream {

Result<RenameRules> open_rename_rules(const std::string& name) {
  auto rules = RenameRules::ready_made(name);
  if (rules || rules.error().code != ErrorCode::kNotFound) return rules;
  const auto file = ByteSource::file(name);
  if (file) return RenameRules::read(*file);
  if (file.error().code != ErrorCode::kNotFound) return file.error();
  return make_error(ErrorCode::kNotFound, "{}; {}", file.error().message, rules.error().message);
}

}  // namespace etstream
