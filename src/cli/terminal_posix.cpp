// SPDX-License-Identifier: BSD-3-Clause
#include "cli/terminal.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <string>

#include "core/base/text.h"

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

namespace {

constexpr std::chrono::seconds kPatience{1};
constexpr std::chrono::milliseconds kBetween{100};
constexpr std::size_t kWidth = 30;

}  // namespace

ProgressBar::ProgressBar() : enabled_(standard_error_is_a_terminal()) {}

ProgressBar::~ProgressBar() {
  if (visible_) std::fputs("\r\x1b[K", stderr);
}

void ProgressBar::show(std::uint64_t done, std::uint64_t total) {
  const auto now = Clock::now();
  if (!enabled_ || now - start_ < kPatience || now - last_shown_ < kBetween) return;
  last_shown_ = now;
  visible_ = true;
  const double part = total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const auto filled = static_cast<std::size_t>(part * static_cast<double>(kWidth));
  const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
  const auto rate = static_cast<std::uint64_t>(static_cast<double>(done) / seconds);
  std::fprintf(stderr, "\r%3.0f%% [%s] %s of %s, %s/s\x1b[K", part * 100, bar.c_str(),
               readable_size(done).c_str(), readable_size(total).c_str(), readable_size(rate).c_str());
}

}  // namespace etstream::cli
