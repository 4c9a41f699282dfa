// SPDX-License-Identifier: BSD-3-Clause
#include "peak_memory.h"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>

namespace {

[[noreturn]] void become(const std::vector<std::string>& command, std::optional<std::uint64_t> address_space,
                         const std::string& output) {
  std::vector<char*> arguments;
  for (const auto& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (out < 0 || ::dup2(out, STDOUT_FILENO) < 0) std::_Exit(126);
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) std::_Exit(126);
  if (address_space) {
    const rlimit limit{*address_space, *address_space};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(126);
  }
  ::execv(arguments[0], arguments.data());
  std::_Exit(127);
}

/// Returns the size in a line of /proc/PID/status in bytes; 0 once the process has no memory any more.
std::uint64_t status(pid_t process, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  for (std::string word; file >> word;) {
    std::uint64_t kib = 0;
    if (word == name + ":" && file >> kib) return kib * 1024;
  }
  return 0;
}

}  // namespace

PeakMemory measure(const std::vector<std::string>& command, std::optional<std::uint64_t> address_space,
                   const std::string& output) {
  const pid_t child = ::fork();
  if (child == 0) become(command, address_space, output);
  PeakMemory peak;
  int state = 0;
  ::waitpid(child, &state, 0);  // stopped at exec
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL);
  ::ptrace(PTRACE_CONT, child, nullptr, nullptr);
  while (true) {
    peak.anonymous = std::max(peak.anonymous, status(child, "RssAnon"));
    const pid_t changed = ::waitpid(child, &state, WNOHANG);
    if (changed == 0) {
      ::usleep(200);
    } else if (WIFSTOPPED(state)) {
      // The process is about to exit, and its memory is still there. Any other stop passes the signal on.
      const bool exiting = state >> 8 == (SIGTRAP | (PTRACE_EVENT_EXIT << 8));
      if (exiting) peak.resident = status(child, "VmHWM");
      ::ptrace(PTRACE_CONT, child, nullptr, exiting ? 0 : WSTOPSIG(state));
    } else {
      break;
    }
  }
  peak.exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  return peak;
}
