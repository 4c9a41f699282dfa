// SPDX-License-Identifier: BSD-3-Clause
#include "cli/terminal.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <initializer_list>

namespace etstream::cli {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

volatile std::sig_atomic_t caught_signal = 0;
std::array<struct sigaction, kSignals.size()> before_catching{};

void note(int signal) { caught_signal = signal; }

}  // namespace

bool standard_output_is_a_terminal() { return ::isatty(STDOUT_FILENO) == 1; }
bool standard_error_is_a_terminal() { return ::isatty(STDERR_FILENO) == 1; }

bool leads_to_standard_output(const std::string& path) {
  struct stat ours {};
  struct stat given {};
  if (::fstat(STDOUT_FILENO, &ours) != 0 || ::stat(path.c_str(), &given) != 0) return false;
  if (ours.st_dev != given.st_dev || ours.st_ino != given.st_ino) return false;
  // Outputs that go to /dev/null do not get mixed there.
  return !S_ISCHR(ours.st_mode) || standard_output_is_a_terminal();
}

CaughtInterrupts::CaughtInterrupts() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_catching[i]);
    // A signal that the parent had ignored (nohup) stays ignored.
    if (before_catching[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
  }
}

CaughtInterrupts::~CaughtInterrupts() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_catching[i], nullptr);
}

bool interrupted() { return caught_signal != 0; }

void die_of_interrupt() {
  if (caught_signal != 0) die_of(caught_signal);
}

void die_of(int signal) {
  std::signal(signal, SIG_DFL);
  ::sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  // The other process has left its core dump, if there is to be one.
  const ::rlimit none{};
  ::setrlimit(RLIMIT_CORE, &none);
  std::raise(signal);
}

void occupy_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) != -1) continue;
    // The lowest free descriptor is this one.
    if (::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) == -1) ::_exit(1);
  }
}

void let_writes_fail() {
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
}

}  // namespace etstream::cli
