// SPDX-License-Identifier: BSD-3-Clause
#include "tracee.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kCannotTrace = 125;

template <class Address, class Data>
void trace(__ptrace_request request, pid_t process, Address address, Data data) {
  const long done = ::ptrace(request, process, address, data);
  if (done >= 0 || errno == ESRCH) return;
  std::fprintf(stderr, "fault_tracer: ptrace: %s\n", std::strerror(errno));
  std::exit(kCannotTrace);
}

void* as_pointer(std::uint64_t value) { return reinterpret_cast<void*>(value); }

#if defined(__x86_64__)

void set_register(pid_t process, std::size_t offset, std::uint64_t value) {
  trace(PTRACE_POKEUSER, process, as_pointer(offset), as_pointer(value));
}

#elif defined(__aarch64__)

void set_register(pid_t process, std::size_t index, std::uint64_t value) {
  user_regs_struct registers{};
  iovec area{&registers, sizeof registers};
  trace(PTRACE_GETREGSET, process, as_pointer(NT_PRSTATUS), &area);
  registers.regs[index] = value;
  trace(PTRACE_SETREGSET, process, as_pointer(NT_PRSTATUS), &area);
}

#else
#error "registers are known for x86-64 and aarch64 only"
#endif

}  // namespace

Tracee::Tracee(const std::vector<std::string>& command) : id_(::fork()) {
  if (id_ < 0) std::exit(kCannotTrace);
  if (id_ == 0) {
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) std::_Exit(kCannotTrace);
    ::execv(arguments[0], arguments.data());
    std::_Exit(kCannotTrace);
  }
  int state = 0;
  ::waitpid(id_, &state, 0);
  if (!WIFSTOPPED(state)) {
    std::fprintf(stderr, "fault_tracer: cannot trace or run %s\n", command[0].c_str());
    std::exit(kCannotTrace);
  }
  trace(PTRACE_SETOPTIONS, id_, nullptr, as_pointer(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
}

Stop Tracee::run(int signal) {
  trace(PTRACE_SYSCALL, id_, nullptr, as_pointer(static_cast<std::uint64_t>(signal)));
  int state = 0;
  ::waitpid(id_, &state, 0);
  Stop stop;
  if (!WIFSTOPPED(state)) {
    stop.kind = Stop::Kind::kEnded;
    if (WIFEXITED(state)) stop.exit_code = WEXITSTATUS(state);
    if (WIFSIGNALED(state)) stop.death_signal = WTERMSIG(state);
    return stop;
  }
  if (WSTOPSIG(state) != (SIGTRAP | 0x80)) {
    stop.signal = WSTOPSIG(state);
    return stop;
  }
  __ptrace_syscall_info info{};
  trace(PTRACE_GET_SYSCALL_INFO, id_, as_pointer(sizeof info), &info);
  if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
    stop.kind = Stop::Kind::kEntry;
    stop.call.number = info.entry.nr;
    for (std::size_t i = 0; i < stop.call.arguments.size(); ++i) stop.call.arguments[i] = info.entry.args[i];
  } else if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
    stop.kind = Stop::Kind::kExit;
    stop.result = info.exit.rval;
  }
  return stop;
}

#if defined(__x86_64__)

void Tracee::set_argument(std::size_t index, std::uint64_t value) const {
  constexpr std::size_t kRegisters[] = {offsetof(user_regs_struct, rdi), offsetof(user_regs_struct, rsi),
                                        offsetof(user_regs_struct, rdx), offsetof(user_regs_struct, r10),
                                        offsetof(user_regs_struct, r8),  offsetof(user_regs_struct, r9)};
  set_register(id_, kRegisters[index], value);
}

void Tracee::skip_call() const { set_register(id_, offsetof(user_regs_struct, orig_rax), ~std::uint64_t{0}); }

void Tracee::set_result(std::int64_t value) const {
  set_register(id_, offsetof(user_regs_struct, rax), static_cast<std::uint64_t>(value));
}

#else

void Tracee::set_argument(std::size_t index, std::uint64_t value) const { set_register(id_, index, value); }

void Tracee::skip_call() const {
  int none = -1;
  iovec area{&none, sizeof none};
  trace(PTRACE_SETREGSET, id_, as_pointer(NT_ARM_SYSTEM_CALL), &area);
}

void Tracee::set_result(std::int64_t value) const { set_register(id_, 0, static_cast<std::uint64_t>(value)); }

#endif
