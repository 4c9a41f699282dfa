// SPDX-License-Identifier: BSD-3-Clause
#include "cli/other_command.h"

#include "core/base/text.h"

namespace etstream::cli {

void add_other_command(CLI::App& command, std::vector<std::string>& misplaced) {
  command.add_option(kOtherCommand, misplaced, "The command and its arguments, after --");
}

void require_other_command(const Run& run, const std::vector<std::string>& misplaced) {
  if (run.command.empty() || !misplaced.empty()) throw CLI::RequiredError(kOtherCommand);
}

std::filesystem::path installed_folder() {
  return (own_program().parent_path() / ETSTREAM_HEAP_FOLDER).lexically_normal();
}

Error not_run(Run& run, Error error) {
  run.failed = error.code == ErrorCode::kNotFound ? 127 : error.code == ErrorCode::kIo ? 126 : 125;
  return error;
}

std::string count_processes(std::size_t n) { return text("{} process{}", n, n == 1 ? "" : "es"); }

}  // namespace etstream::cli
