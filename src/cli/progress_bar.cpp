// SPDX-License-Identifier: BSD-3-Clause
#include "cli/progress_bar.h"

#include <cstddef>
#include <cstdio>
#include <string>

#include "cli/terminal.h"
#include "core/base/text.h"

namespace etstream::cli {
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
