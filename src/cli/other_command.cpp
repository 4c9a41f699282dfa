// SPDX-License-Identifier: BSD-3-Clause
#include "cli/other_command.h"

#include <cstdlib>
#include <span>
#include <sstream>
#include <system_error>

#include "core/base/text.h"
#include "etstream/input_record.h"

namespace etstream::cli {

void add_other_command(CLI::App& command, std::vector<std::string>& misplaced) {
  command.add_option(kOtherCommand, misplaced, "The command and its arguments, after --");
}

void require_other_command(const ChosenCommand& chosen, const std::vector<std::string>& misplaced) {
  if (chosen.command.empty() || !misplaced.empty()) throw CLI::RequiredError(kOtherCommand);
}

std::filesystem::path installed_folder() {
  std::error_code failed;
  const auto own_program = std::filesystem::read_symlink("/proc/self/exe", failed);
  return (own_program.parent_path() / ETSTREAM_HEAP_FOLDER).lexically_normal();
}

Error not_run(ChosenCommand& chosen, Error error) {
  chosen.failed = error.code == ErrorCode::kNotFound ? 127 : error.code == ErrorCode::kIo ? 126 : 125;
  return error;
}

void add_inputs_of(const std::vector<std::string>& command) {
  InputRecord* const inputs = InputRecord::current();
  if (inputs == nullptr) return;
  const auto add = [&](const std::filesystem::path& file) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(file, ignored)) inputs->add(file.string());
  };
  for (const std::string& argument : std::span(command).subspan(1)) add(argument);
  const std::string& program = command.front();
  if (program.find('/') != std::string::npos) return add(program);
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/bin:/usr/bin");
  // An empty folder is the current one.
  for (std::string folder; std::getline(folders, folder, ':');) add(std::filesystem::path(folder) / program);
}

std::string count_processes(std::size_t n) { return text("{} process{}", n, n == 1 ? "" : "es"); }

}  // namespace etstream::cli
