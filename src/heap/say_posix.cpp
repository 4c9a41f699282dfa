// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <cstring>

#include "heap/say.h"

namespace etstream::heap {

// strerror() would allocate where it has to translate.
const char* reason_of(int code) noexcept {
  const char* const reason = ::strerrordesc_np(code);
  return reason == nullptr ? "unknown error" : reason;
}

void write_line(std::string_view line) noexcept {
  Line whole;
  whole.add("etstream: heap: ");
  whole.add(line);
  whole.add("\n");
  const std::string_view text = whole.view();
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

}  // namespace etstream::heap
