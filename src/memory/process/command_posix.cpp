// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/base/text.h"
#include "memory/process/command.h"

namespace etstream {

Error cannot_run(const std::vector<std::string>& command, int failed) {
  return Error{failed == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
               text("cannot run {}: {}", quote(command.front()), std::generic_category().message(failed)),
               failed};
}

Error become(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  return cannot_run(command, errno);
}

}  // namespace etstream
