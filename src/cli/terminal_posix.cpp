// SPDX-License-Identifier: BSD-3-Clause
#include "cli/terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace etstream::cli {
namespace {

volatile std::sig_atomic_t caught_signal = 0;

void note(int signal) { caught_signal = signal; }

}  // namespace

bool standard_output_is_a_terminal() { return ::isatty(STDOUT_FILENO) == 1; }
bool standard_error_is_a_terminal() { return ::isatty(STDERR_FILENO) == 1; }

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    // One that the parent had ignored (nohup) stays ignored.
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    ::sigaction(signal, &action, nullptr);
  }
}

bool interrupted() { return caught_signal != 0; }

void die_of_interrupt() {
  if (caught_signal == 0) return;
  std::signal(caught_signal, SIG_DFL);
  std::raise(caught_signal);
}

void occupy_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) != -1) continue;
    // The lowest free descriptor is this one.
    if (::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) == -1) ::_exit(1);
  }
}

void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace etstream::cli
